"""Compiles the programs of a cell for an accelerator that is not there, and asks the compiler what they need."""

import importlib.metadata
import time
from typing import Any

from qstr_jax.accelerators import chips
from qstr_jax.accelerators.chips import Chip
from qstr_jax.learners.problem import Problem
from qstr_jax.storage import files
from qstr_jax.sweeps import lane_batches, platforms, programs

# JAX's own names of the platforms that programs are lowered for.
LOWERED_FOR = {'tpu': 'tpu', 'gpu': 'cuda'}


def measure(problem: Problem, lanes: int, chip: Chip) -> dict[str, Any]:
    """What the compiler says about a cell's programs: the fields of an entry that follow from them.

    The lanes are halved until the programs fit, as in a sweep; a MemoryError says that a single one does not.
    """
    device, limit = chips.devices(chip)[0], int(lane_batches.MEMORY_SHARE * chip.memory_bytes)
    start, cpu_start = time.perf_counter(), time.process_time()
    compiled = lane_batches.fitting_programs(problem, lanes, device, limit)
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_start
    try:
        cost = compiled.advance.cost_analysis() or {}
    except (NotImplementedError, RuntimeError):  # without a device the compiler for CUDA counts nothing
        cost = {}
    return {
        'lanes': compiled.size,
        'compile_seconds': round(seconds, 1),
        'compile_cpu_seconds': round(cpu_seconds, 1),
        'memory_bytes': compiled.memory_bytes,
        'flops': cost.get('flops'),
        'bytes_accessed': cost.get('bytes accessed'),
    }


def versions(chip: Chip) -> dict[str, str]:
    """Versions of the packages that compile for an accelerator."""
    name = chips.PACKAGES[chip.platform].replace('_', '-')
    return {package: importlib.metadata.version(package) for package in ('jax', 'jaxlib', name)}


def lowered(problem: Problem, lanes: int, platform: str) -> tuple[Any, Any]:
    """Both programs of a cell as they are handed to the compiler of 'tpu' or 'gpu', which need not be there."""
    init, advance = programs.traced(platforms.for_platform(problem, platform), lanes)
    names = (LOWERED_FOR[platform],)
    return init.lower(lowering_platforms=names), advance.lower(lowering_platforms=names)


def fingerprint(problem: Problem, lanes: int, chip: Chip) -> str:
    """A name of what the compiler is given, and of the compiler."""
    texts = [program.as_text() for program in lowered(problem, lanes, chip.platform)]
    options = [platforms.options(chip.platform, name) for name in ('init', 'advance')]
    return files.digest(*texts, options, chip.name, versions(chip))
