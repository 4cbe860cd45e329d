"""Programs of cells that processes of the tests share whole.

JAX's cache saves a process the compilation of a program, but not the tracing and lowering, which take as long. Here a
program is found by what it depends on: the code is the same throughout a session.
"""

import hashlib
import math
import os
import pathlib
import pickle
import re

import jax
from jax._src import config
from jax.experimental import serialize_executable

from qstr_jax.sweeps import programs


def share(folder, *conditions):
    """Keeps the programs that this process compiles for the cells of sweeps where others find them.

    Args:
        folder: of the programs; a session's own, since JAX pickles programs.
        *conditions: what they depend on beside problem, number of lanes and device, such as XLA's flags.
    """
    compile_anew, trace_anew, states = programs._compile, programs.abstract_state, {}
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)

    def compile_once(problem, size, device):
        # A function prints with its address, which differs between processes.
        described = re.sub(' at 0x[0-9a-f]+', '', repr((problem, size, device.id, jax.device_count(), conditions)))
        path = folder / hashlib.sha256(described.encode()).hexdigest()
        if not path.exists():
            # JAX's cache gets none of these, since a program that was found there cannot be written once more.
            with config.persistent_cache_min_compile_time_secs(math.inf):
                compiled = compile_anew(problem, size, device)
            _write(compiled, path)
            return compiled
        found = _read(path, programs.abstract_lanes(problem, size), device)
        states[problem, size] = found[0].out_info[1]
        return found

    def state_of(problem, size):
        # A worker asks for it at each start, and here nothing has traced the program.
        return states[problem, size] if (problem, size) in states else trace_anew(problem, size)

    programs._compile, programs.abstract_state = compile_once, state_of


def _write(compiled, path):
    init, advance, fingerprint = compiled
    init_bytes, _, made = serialize_executable.serialize(init)
    advance_bytes, _, state = serialize_executable.serialize(advance)
    temporary = path.with_suffix(f'.{os.getpid()}')
    temporary.write_bytes(pickle.dumps((init_bytes, made, advance_bytes, state, fingerprint)))
    temporary.rename(path)


def _read(path, lanes_K, device):
    init_bytes, made, advance_bytes, state, fingerprint = pickle.loads(path.read_bytes())
    data_K, state_K = jax.tree.unflatten(made, range(made.num_leaves))

    def load(serialized, arguments, out_tree):
        in_tree = jax.tree.structure((arguments, {}))
        return serialize_executable.deserialize_and_load(
            serialized, in_tree, out_tree, backend=device.platform, execution_devices=[device]
        )

    init = load(init_bytes, (lanes_K,), made)
    return init, load(advance_bytes, (state_K, data_K, lanes_K, 0), state), fingerprint
