"""One lane batch on one device: its two programs, the memory they need, and the loop that drives them."""

import collections
import contextlib
import functools
import os
import threading
import time
from typing import Any, NamedTuple

import jax
import numpy as np
from absl import logging

from qstr_jax import learners, models, tasks
from qstr_jax.learners import problem as outcomes

# A call of `advance` should take this long: short enough for a live bar and for a SIGTERM, long enough to
# hide the host.
SECONDS_PER_CALL = 2.0
# Share of a device's memory that a lane batch may take.
MEMORY_SHARE = 0.8
# Lanes that one program of an accelerator vectorises at most; see experiments/lanes_per_batch.py.
MOST_LANES = 64
# LLVM's level for `init` on a CPU, where XLA's own is 3: it runs once a batch, and compiling it took longer than
# compiling training. Now it takes half as long, and draws are the same bits, which those of level 0 are not; the test
# prompts' labels may round otherwise.
INIT_LEVEL = 2


class Programs(NamedTuple):
    """The compiled programs of a cell for `size` lanes on one device."""

    init: Any
    advance: Any
    size: int
    device: Any
    compile_seconds: float
    memory_bytes: int


def default_size(module, num_lanes, platform):
    """How many lanes one program vectorises: one on a CPU, whose cores each take a lane, else up to 64, evenly.

    Baselines in closed form take one at a time: their systems are large and solved at once.
    """
    if platform == 'cpu' or models.is_closed_form(module):
        return 1
    # A hundred lanes as fifty and fifty, not as 64 and 36: a batch is filled up, and fillers cost as much as lanes.
    return -(-num_lanes // -(-num_lanes // MOST_LANES))


def available_memory(device):
    """Bytes that programs on this device may use: an accelerator's own limit, a share of what the host has left."""
    stats = device.memory_stats() or {}
    if 'bytes_limit' in stats:
        return int(stats['bytes_limit'] - stats.get('bytes_in_use', 0))
    return _host_memory() // len(jax.local_devices())


def _host_memory():
    try:
        lines = open('/proc/meminfo').read().splitlines()
        fields = dict(line.split(':') for line in lines)
        return int(fields['MemAvailable'].split()[0]) * 1024
    except (OSError, KeyError):  # not Linux
        return os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE')


def lane_arrays(lanes, device=None):
    """A learner's `Lane` of arrays (k,), on a device."""
    kind = type(lanes[0])
    columns = zip(kind._fields, zip(*lanes, strict=True), strict=True)
    lanes_K = kind(*(np.array(values, _lane_dtype(name)) for name, values in columns))
    return jax.device_put(lanes_K, device)


def _lane_dtype(field):
    return np.int32 if field in ('seed', 'task_seed', 'sample_size') else np.float32


# By (problem, size): where several devices want a program, one compiles it and the rest find it in JAX's cache.
_compiling = collections.defaultdict(threading.Lock)


def compile_programs(problem, size, device):
    """Compiles a cell for `size` lanes; nothing is run."""
    start = time.perf_counter()
    with _compiling[problem, size] if jax.config.jax_compilation_cache_dir else contextlib.nullcontext():
        init, advance = _compile(problem, size, device)
    memory = sum(program_bytes(program) for program in (init, advance))
    return Programs(init, advance, size, device, time.perf_counter() - start, memory)


def _compile(problem, size, device):
    learner = learners.of(problem)
    lanes_K = lane_arrays([learner.Lane(*(0 for _ in learner.Lane._fields))] * size, device)
    init = learner.init.lower(lanes_K, problem).compile(compiler_options=_init_options(device.platform))
    place = functools.partial(_on_device, sharding=jax.sharding.SingleDeviceSharding(device))
    data_K, state_K = jax.tree.map(place, jax.eval_shape(functools.partial(learner.init, problem=problem), lanes_K))
    num_checks = jax.device_put(np.int32(1), device)
    return init, learner.advance.lower(state_K, data_K, lanes_K, num_checks, problem).compile()


def _init_options(platform):
    # Whoever names a level for all programs keeps it.
    is_told = 'xla_backend_optimization_level' in os.environ.get('XLA_FLAGS', '')
    return {'xla_backend_optimization_level': INIT_LEVEL} if platform == 'cpu' and not is_told else None


def _on_device(leaf, sharding):
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding, weak_type=leaf.weak_type)


def program_bytes(program):
    """Bytes of a program: arguments, results and scratch; 0 where the backend does not tell."""
    analysis = program.memory_analysis()
    if analysis is None:
        return 0
    kept = analysis.argument_size_in_bytes + analysis.output_size_in_bytes
    return kept + analysis.temp_size_in_bytes - analysis.alias_size_in_bytes


def fitting_programs(problem, size, device, memory_limit=None):
    """Programs of the largest batch of at most `size` lanes, halved until its memory fits.

    An allocation that fails kills the process on a CPU and loses the donated state on a GPU, so the size is
    settled beforehand, by the compiler's own account.

    Raises:
        MemoryError: one lane alone needs more than there is.
    """
    limit = memory_limit or MEMORY_SHARE * available_memory(device)
    while True:
        programs = compile_programs(problem, size, device)
        if programs.memory_bytes <= limit:
            return programs
        need = f'{size} lanes need {programs.memory_bytes / 2**20:,.0f} MiB of {limit / 2**20:,.0f} MiB'
        if size == 1:
            raise MemoryError(f'{need}: take fewer test_samples or max_samples, a smaller batch or model')
        size = size // 2
        logging.warning('%s: going on with lanes_per_batch=%d', need, size)


def start(programs, lanes):
    """Lane arrays and constants of a batch, and its first state.

    A batch with fewer lanes is filled up with copies of its last one that never start, so that every batch of
    a cell runs the same program.
    """
    size = programs.size
    lanes_K = lane_arrays([*lanes, *[lanes[-1]] * (size - len(lanes))], programs.device)
    data_K, state_K = programs.init(lanes_K)
    is_filler_K = np.arange(size) >= len(lanes)
    outcome_K = np.where(is_filler_K, outcomes.CENSORED, np.asarray(state_K.outcome)).astype(np.int32)
    return lanes_K, data_K, state_K._replace(outcome=jax.device_put(outcome_K, programs.device))


def train(programs, problem, lanes, saved=None, on_call=None):
    """Trains one lane batch to its end.

    Args:
        programs: of the batch's cell.
        problem: the cell's `Problem`.
        lanes: at most `programs.size` lanes.
        saved: a state of this batch to go on from; the result is the same bits as without the stop.
        on_call: called with the state after every call of `advance`; may raise to stop.

    Returns:
        `(Data, State)`, with `programs.size` lanes.

    Raises:
        ValueError: the task's encodings cannot be drawn.
    """
    lanes_K, data_K, state_K = start(programs, lanes)
    tasks.check_draw(data_K.task_draw.encodings.complete, problem.task)
    if saved is not None:
        state_K = jax.device_put(saved, programs.device)
    num_checks = 1
    while np.any(np.asarray(state_K.outcome) == outcomes.RUNNING):
        call_start = time.perf_counter()
        checks = jax.device_put(np.int32(num_checks), programs.device)
        state_K = programs.advance(state_K, data_K, lanes_K, checks)
        jax.block_until_ready(state_K.outcome)
        seconds = time.perf_counter() - call_start
        if on_call is not None:
            on_call(state_K)
        # Small factors: the first calls are slower than the rest.
        factor = np.clip(SECONDS_PER_CALL / max(seconds, 1e-6), 0.25, 4.0)
        num_checks = int(np.clip(num_checks * factor, 1, problem.learner.max_checks))
    return data_K, state_K


def abstract_state(problem, size):
    """Shapes of a lane batch's state, to restore a checkpoint into."""
    learner = learners.of(problem)
    lanes_K = learner.Lane(*(jax.ShapeDtypeStruct((size,), _lane_dtype(name)) for name in learner.Lane._fields))
    _, state_K = jax.eval_shape(functools.partial(learner.init, problem=problem), lanes_K)
    return state_K
