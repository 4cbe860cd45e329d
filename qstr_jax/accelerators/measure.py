"""Compiles the programs of a cell for an accelerator that is not there, and reads what they will need."""

import importlib.metadata
import time
from typing import Any

from qstr_jax import learners
from qstr_jax.accelerators import hlo, roofline, targets
from qstr_jax.accelerators.chips import Chip
from qstr_jax.learners import screening
from qstr_jax.learners.problem import Problem
from qstr_jax.storage import files
from qstr_jax.sweeps import cost, lanes_per_batch, platforms, programs

# JAX's own names of the platforms that programs are lowered for.
LOWERED_FOR = {'tpu': 'tpu', 'gpu': 'cuda'}


def measure(problem: Problem, lanes: int, chip: Chip) -> dict[str, Any]:
    """What the compiler says of a cell's programs, and estimates from it.

    Args:
        problem: the cell's.
        lanes: that the sweep would begin with; they are halved until the programs fit, as in a sweep.
        chip: to compile for.

    Returns:
        The fields of an entry of `accelerators.json` that follow from the programs.

    Raises:
        MemoryError: a single lane does not fit.
    """
    (device, *_), limit = targets.devices(chip), int(lanes_per_batch.MEMORY_SHARE * chip.memory_bytes)
    start, cpu_start = time.perf_counter(), time.process_time()
    compiled = lanes_per_batch.fitting_programs(problem, lanes, device, limit)
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_start
    text = compiled.advance.as_text()
    kernels = hlo.step_kernels(text)
    flops = compiled.size * cost.step_flops(problem)
    seconds_of_step = None if kernels is None else roofline.step_seconds(chip, flops, kernels, precision_of(problem))
    return {
        'lanes': compiled.size,
        'compile_seconds': round(seconds, 1),
        'compile_cpu_seconds': round(cpu_seconds, 1),
        'memory_bytes': compiled.memory_bytes,
        'most_lanes_estimated': limit * compiled.size // compiled.memory_bytes,
        'flops': flops,
        'bytes_accessed': None if kernels is None else sum(kernels),
        'kernels_per_step': None if kernels is None else len(kernels),
        'estimated_step_seconds': seconds_of_step,
        **_tests(problem, compiled.size, chip),
        'host_transfers': len(hlo.host_transfers(text)),
        'aliased': hlo.num_aliased(text),
        'compiler_flops': _of_cost(compiled.advance, 'flops'),
        'compiler_bytes_accessed': _of_cost(compiled.advance, 'bytes accessed'),
    }


def _tests(problem: Problem, size: int, chip: Chip) -> dict[str, float]:
    """Estimated seconds of looking at the test prompts, of the learner that does so while it trains."""
    learner = problem.learner
    if not isinstance(learner, learners.Online):
        return {}
    flops, precision = size * cost.prediction_flops(problem), precision_of(problem)
    subset = screening.subset_size(learner.test_samples)
    return {
        'estimated_screen_seconds': roofline.products_seconds(chip, flops * subset, precision),
        'estimated_test_seconds': roofline.products_seconds(chip, flops * learner.test_samples, precision),
        'steps_per_check': learner.check_every,
    }


def precision_of(problem: Problem) -> str:
    """The precision of a cell's matrix products.

    Args:
        problem: the cell's.
    """
    return getattr(problem.learner, 'precision', None) or 'highest'


def versions(chip: Chip) -> dict[str, str]:
    """Versions of the packages that compile for an accelerator.

    Args:
        chip: the accelerator.
    """
    name = targets.PACKAGES[chip.platform].replace('_', '-')
    return {package: importlib.metadata.version(package) for package in ('jax', 'jaxlib', name)}


def lowered(problem: Problem, lanes: int, platform: str) -> tuple[Any, Any]:
    """Both programs of a cell as they are handed to a platform's compiler; no such compiler is needed.

    Args:
        problem: the cell's.
        lanes: of a batch.
        platform: 'tpu' or 'gpu'.
    """
    init, advance = programs.traced(platforms.suited(problem, platform), lanes)
    names = (LOWERED_FOR[platform],)
    return init.lower(lowering_platforms=names), advance.lower(lowering_platforms=names)


def fingerprint(problem: Problem, lanes: int, chip: Chip) -> str:
    """A name of what the compiler is given, and of the compiler.

    Args:
        problem: the cell's.
        lanes: that the sweep would begin with.
        chip: to compile for.
    """
    texts = [program.as_text() for program in lowered(problem, lanes, chip.platform)]
    options = [platforms.options(chip.platform, name) for name in ('init', 'advance')]
    return files.digest(*texts, options, chip.name, versions(chip))


def _of_cost(program: Any, name: str) -> float | None:
    """A number of the compiler's own account, which counts the body of a loop once; None where it has none."""
    try:
        return float((program.cost_analysis() or {})[name])
    except (KeyError, NotImplementedError, RuntimeError):
        return None
