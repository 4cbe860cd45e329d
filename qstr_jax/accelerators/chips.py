"""Accelerators whose compilers are asked: sizes and speeds as their makers publish them."""

import dataclasses
from collections.abc import Mapping

from qstr_jax import checks

_TPU = 'https://cloud.google.com/tpu/docs/'
_H100 = 'https://www.nvidia.com/en-us/data-center/h100/'
_A100 = 'https://www.nvidia.com/en-us/data-center/a100/'
_XLA = 'https://github.com/openxla/xla/tree/main/xla/backends/gpu/target_config/specs/'
# What a float32 product costs at each of JAX's precisions: on a TPU so many products of bfloat16.
_PASSES = 'https://docs.jax.dev/en/latest/jax.lax.html#jax.lax.Precision'
TPU_PASSES = {'highest': 6, 'high': 3, 'default': 1}
# Seconds from one short kernel to the next when they are launched one after the other without waiting, measured by
# NVIDIA on a V100. A TPU is given whole programs, and its maker publishes no such cost, so that its estimates leave it
# out.
_LAUNCHES = 'https://developer.nvidia.com/blog/cuda-graphs/'
KERNEL_SECONDS = 3.8e-6


@dataclasses.dataclass(frozen=True)
class Chip:
    """One accelerator.

    Attributes:
        name: as on the command line.
        platform: 'tpu' or 'gpu'.
        topology: the smallest group of such chips that the compiler knows by name.
        group: the topology of a larger one: a pod of several hosts, or a host of eight devices; '' is none to compare.
        memory_bytes: of one device.
        bandwidth: bytes a second of its memory.
        flops: floating-point operations a second of matrix products, by precision.
        kernel_seconds: least time from one kernel to the next.
        sources: where these numbers are published.
        accelerator_type: of a TPU host with this topology.
        target: of a GPU, what the compiler is told of it: fields of XLA's `GpuDeviceInfoProto`.
    """

    name: str
    platform: str
    topology: str
    memory_bytes: int
    bandwidth: float
    flops: Mapping[str, float]
    sources: tuple[str, ...]
    group: str = ''
    kernel_seconds: float = 0.0
    accelerator_type: str = ''
    target: tuple[tuple[str, int | float | str], ...] = ()


def _tpu(
    name: str, topology: str, accelerator_type: str, gigabytes: int, bandwidth: float, bf16: float, group: str = ''
) -> Chip:
    return Chip(
        name=name,
        platform='tpu',
        topology=topology,
        accelerator_type=accelerator_type,
        memory_bytes=gigabytes * 2**30,
        bandwidth=bandwidth,
        flops={precision: bf16 / passes for precision, passes in TPU_PASSES.items()},
        sources=(_TPU + name, _PASSES),
        group=group,
    )


def _gpu(name: str, flops: Mapping[str, float], source: str, spec: str, **target: int | float | str) -> Chip:
    return Chip(
        name=name,
        platform='gpu',
        topology='1x1x1',
        memory_bytes=int(target['device_memory_size']),
        bandwidth=float(target['memory_bandwidth']),
        flops=flops,
        kernel_seconds=KERNEL_SECONDS,
        sources=(source, _XLA + spec, _LAUNCHES),
        group='1x1x8',
        target=tuple(target.items()),
    )


_CHIPS = (
    _tpu('v5e', 'v5e:2x2', 'v5litepod-4', 16, 819e9, 197e12, group='v5e:4x4'),
    _gpu(
        'h100',
        {'highest': 67e12, 'high': 494e12, 'default': 494e12},
        _H100,
        'h100_sxm.txtpb',
        major=9, core_count=132, fpus_per_core=128, clock_rate_ghz=1.98, device_memory_size=84942979072,
        memory_bandwidth=3352320000000, l2_cache_size=52428800, shared_memory_per_core=233472,
        shared_memory_per_block_optin=232448,
    ),
    _tpu('v6e', 'v6e:2x2', 'v6e-4', 32, 1640e9, 918e12),
    _tpu('v4', 'v4:2x2x1', 'v4-8', 32, 1228e9, 275e12),
    _gpu(
        'a100',
        {'highest': 19.5e12, 'high': 156e12, 'default': 156e12},
        _A100,
        'a100_sxm_80.txtpb',
        major=8, core_count=108, fpus_per_core=64, clock_rate_ghz=1.41, device_memory_size=85100068864,
        memory_bandwidth=2039040000000, l2_cache_size=41943040, shared_memory_per_core=167936,
        shared_memory_per_block_optin=166912,
    ),
)  # fmt: skip
CHIPS = {chip.name: chip for chip in _CHIPS}


def get(name: str) -> Chip:
    """An accelerator by its name.

    Args:
        name: as on the command line.

    Raises:
        ValueError: unknown.
    """
    checks.choice('devices', name, CHIPS)
    return CHIPS[name]
