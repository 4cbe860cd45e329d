"""Estimates of how long a step takes: no kernel is faster than the chip's memory, its products or its launches."""

from collections.abc import Sequence

from qstr_jax.accelerators.chips import Chip


def step_seconds(chip: Chip, flops: float, kernels: Sequence[int], precision: str = 'highest') -> float:
    """Estimated seconds of a training step, a lower bound by the chip's published numbers.

        max(flops / peak, Σ_kernels max(launch, bytes / bandwidth))

    Args:
        chip: the accelerator.
        flops: of the matrix products of the step.
        kernels: bytes that each kernel reads and writes.
        precision: of the products, as JAX calls it.
    """
    moved = sum(max(chip.kernel_seconds, num_bytes / chip.bandwidth) for num_bytes in kernels)
    return max(flops / chip.flops[precision], moved)


def products_seconds(chip: Chip, flops: float, precision: str = 'highest') -> float:
    """Estimated seconds of predictions on many prompts at once, whose products take longest.

    Args:
        chip: the accelerator.
        flops: of the products.
        precision: of the products.
    """
    return flops / chip.flops[precision]
