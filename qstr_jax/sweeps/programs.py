"""The two compiled programs of a cell on one device, `init` and `advance`, and the memory that they need."""

import collections
import contextlib
import functools
import os
import threading
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from qstr_jax import learners
from qstr_jax.learners.problem import Problem

# LLVM's level of optimisation of `init` on a CPU; XLA's own is 3. `init` runs once a batch but takes longer to compile
# than training, which this level halves. It changes draws by no more than rounding.
INIT_LEVEL = 2


class Programs(NamedTuple):
    """The compiled programs of a cell for `size` lanes on one device."""

    init: Any
    advance: Any
    size: int
    device: Any
    compile_seconds: float
    memory_bytes: int


def lane_arrays(lanes: Sequence[Any], device: Any = None) -> Any:
    """Lanes of plain numbers as one lane of arrays (k,): integers as int32, all else as float32.

    Args:
        lanes: NamedTuples of one learner.
        device: where they go; None is JAX's choice.
    """
    kind = type(lanes[0])
    dtypes = [np.int32 if isinstance(value, int) else np.float32 for value in lanes[0]]
    columns = zip(dtypes, zip(*lanes, strict=True), strict=True)
    return jax.device_put(kind(*(np.array(values, dtype) for dtype, values in columns)), device)


def abstract_lanes(problem: Problem, size: int) -> Any:
    """Shapes of the lanes of a cell.

    Args:
        problem: the cell's.
        size: k.
    """
    learner = problem.learner
    values = {name: getattr(learner, name) for name in learner.lane_settings()}
    one = learners.lane(learner, seed=0, task_seed=0, **values)
    dtypes = [np.int32 if isinstance(value, int) else np.float32 for value in one]
    return type(one)(*(jax.ShapeDtypeStruct((size,), dtype) for dtype in dtypes))


def abstract_state(problem: Problem, size: int) -> Any:
    """Shapes of a lane batch's state, to restore a checkpoint into.

    Args:
        problem: the cell's.
        size: k.
    """
    return jax.eval_shape(functools.partial(learners.init, problem=problem), abstract_lanes(problem, size))[1]


# By (problem, size): of several devices that need a program one compiles it, and the others find it in JAX's cache.
_compiling: collections.defaultdict[tuple, threading.Lock] = collections.defaultdict(threading.Lock)


def compile_programs(problem: Problem, size: int, device: Any) -> Programs:
    """Compiles a cell; nothing is run.

    Args:
        problem: the cell's.
        size: lanes.
        device: to compile for.
    """
    start = time.perf_counter()
    with _compiling[problem, size] if jax.config.jax_compilation_cache_dir else contextlib.nullcontext():
        init, advance = _compile(problem, size, device)
    memory = sum(program_bytes(program) for program in (init, advance))
    return Programs(
        init=init,
        advance=advance,
        size=size,
        device=device,
        compile_seconds=time.perf_counter() - start,
        memory_bytes=memory,
    )


def _compile(problem: Problem, size: int, device: Any) -> tuple[Any, Any]:
    place = functools.partial(_on_device, sharding=jax.sharding.SingleDeviceSharding(device))
    lanes_K = jax.tree.map(place, abstract_lanes(problem, size))
    init = learners.init.lower(lanes_K, problem).compile(compiler_options=init_options(device.platform))
    made = jax.eval_shape(functools.partial(learners.init, problem=problem), lanes_K)
    data_K, state_K = jax.tree.map(place, made)
    num_checks = place(jax.ShapeDtypeStruct((), np.int32))
    return init, learners.advance.lower(state_K, data_K, lanes_K, num_checks, problem).compile()


def init_options(platform: str) -> dict[str, Any] | None:
    """Compiler options of `init`; a level that the user sets for all programs is kept.

    Args:
        platform: of the device.
    """
    is_set = 'xla_backend_optimization_level' in os.environ.get('XLA_FLAGS', '')
    return {'xla_backend_optimization_level': INIT_LEVEL} if platform == 'cpu' and not is_set else None


def _on_device(leaf: Any, sharding: Any) -> Any:
    weak_type = getattr(leaf, 'weak_type', False)
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding, weak_type=weak_type)


def program_bytes(program: Any) -> int:
    """Bytes of a program: arguments, results and scratch; 0 where the backend does not tell.

    Args:
        program: compiled.
    """
    analysis = program.memory_analysis()
    if analysis is None:
        return 0
    kept = analysis.argument_size_in_bytes + analysis.output_size_in_bytes
    return kept + analysis.temp_size_in_bytes - analysis.alias_size_in_bytes
