"""The two compiled programs of a cell on one device, `init` and `advance`, and the memory that they need."""

import contextlib
import functools
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from qstr_jax import fingerprints, learners
from qstr_jax.learners.problem import Problem
from qstr_jax.sweeps import platforms


class Programs(NamedTuple):
    """The compiled programs of a cell."""

    init: Any  # makes the constants and the first state of a lane batch
    advance: Any  # runs checks
    size: int  # lanes of a batch
    device: Any
    compile_seconds: float
    memory_bytes: int  # what both need together
    fingerprint: str  # equal for programs that compute the same, see `fingerprints`


def lane_arrays(lanes: Sequence[Any], device: Any = None) -> Any:
    """The lanes of a batch as one NamedTuple of arrays (k,): integers as int32, all other numbers as float32."""
    kind = type(lanes[0])
    dtypes = [np.int32 if isinstance(value, int) else np.float32 for value in lanes[0]]
    columns = zip(dtypes, zip(*lanes, strict=True), strict=True)
    return jax.device_put(kind(*(np.array(values, dtype) for dtype, values in columns)), device)


def abstract_lanes(problem: Problem, size: int) -> Any:
    """Shapes of the lanes of a cell."""
    return jax.eval_shape(lambda: lane_arrays([learners.lane(problem.learner, seed=0, task_seed=0)] * size))


def abstract_state(problem: Problem, size: int) -> Any:
    """Shapes of a lane batch's state, for restoring a checkpoint."""
    # `compile_programs` has traced the same, so this finds it.
    return learners.init.trace(abstract_lanes(problem, size), problem).out_info[1]


# By (problem, size): if several GPUs need a program, one thread compiles it and the others find it in JAX's cache.
# Elsewhere a program's name in the cache has its device in it, so each device compiles for itself, beside the others.
_guard = threading.Lock()
_compiling: weakref.WeakValueDictionary[tuple, threading.Lock] = weakref.WeakValueDictionary()


def _lock_of(problem: Problem, size: int) -> threading.Lock:
    """The lock of those who compile a program; it is kept as long as one of them holds it or waits for it."""
    with _guard:
        return _compiling.setdefault((problem, size), threading.Lock())


def compile_programs(problem: Problem, size: int, device: Any) -> Programs:
    """Compiles the programs of a cell; nothing is run."""
    start = time.perf_counter()
    is_shared = device.platform == 'gpu' and bool(getattr(jax.config, 'jax_compilation_cache_dir', None))
    with _lock_of(problem, size) if is_shared else contextlib.nullcontext():
        init, advance, fingerprint = _compile(problem, size, device)
    memory = sum(program_bytes(program) for program in (init, advance))
    return Programs(
        init=init,
        advance=advance,
        size=size,
        device=device,
        compile_seconds=time.perf_counter() - start,
        memory_bytes=memory,
        fingerprint=fingerprint,
    )


def _compile(problem: Problem, size: int, device: Any) -> tuple[Any, Any, str]:
    """Both programs, compiled for one device, and their fingerprint."""
    put = functools.partial(_put, sharding=jax.sharding.SingleDeviceSharding(device))
    programs = traced(platforms.for_platform(problem, device.platform), size, put)
    init, advance = (
        program.lower().compile(compiler_options=platforms.options(device.platform, name))
        for program, name in zip(programs, ('init', 'advance'), strict=True)
    )
    return init, advance, fingerprints.of(*(program.jaxpr for program in programs))


def fingerprint(problem: Problem, size: int, platform: str) -> str:
    """The fingerprint that the programs of a cell would have; they are traced and not compiled, on any machine."""
    programs = traced(platforms.for_platform(problem, platform), size)
    return fingerprints.of(*(program.jaxpr for program in programs))


def traced(problem: Problem, size: int, put: Callable[[Any], Any] = lambda leaf: leaf) -> tuple[Any, Any]:
    """`init` and `advance` of a cell that suits a platform already, traced; `put` says where each array lies."""
    lanes_K = jax.tree.map(put, abstract_lanes(problem, size))
    init = learners.init.trace(lanes_K, problem)
    data_K, state_K = jax.tree.map(put, init.out_info)
    num_checks = put(jax.ShapeDtypeStruct((), np.int32))
    return init, learners.advance.trace(state_K, data_K, lanes_K, num_checks, problem)


def _put(leaf: Any, sharding: Any) -> Any:
    weak_type = getattr(leaf, 'weak_type', False)
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding, weak_type=weak_type)


def program_bytes(program: Any) -> int:
    """Bytes of a program: arguments, results and scratch; 0 if the backend does not report them."""
    analysis = program.memory_analysis()
    if analysis is None:
        return 0
    kept = analysis.argument_size_in_bytes + analysis.output_size_in_bytes
    return kept + analysis.temp_size_in_bytes - analysis.alias_size_in_bytes
