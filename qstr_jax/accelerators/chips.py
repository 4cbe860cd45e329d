"""Accelerators that this machine lacks; their makers' compilers need only a device's name, or a text that describes it.

JAX finds the compilers in `libtpu` and in the plugin for CUDA, which are installed in environments of their own (the
extras `tpu-compile` and `gpu-compile`).
"""

import dataclasses
import os
from importlib import util
from typing import Any

from jax.experimental import topologies

from qstr_jax.settings import checks

PACKAGES = {'tpu': 'libtpu', 'gpu': 'jax_cuda12_plugin'}
# What all CUDA devices since 8.0 have in common.
_COMMON = {
    'threads_per_block_limit': 1024, 'threads_per_warp': 32, 'shared_memory_per_block': 49152,
    'threads_per_core_limit': 2048, 'block_dim_limit_x': 2**31 - 1, 'block_dim_limit_y': 65535,
    'block_dim_limit_z': 65535, 'registers_per_core_limit': 65536, 'registers_per_block_limit': 65536,
    'thread_dim_limit_x': 1024, 'thread_dim_limit_y': 1024, 'thread_dim_limit_z': 64,
}  # fmt: skip
# XLA would choose kernels by timing them, which takes the device.
_GPU_FLAGS = '--xla_gpu_enable_triton_gemm=false --xla_gpu_autotune_level=0'
_CUDNN, _CUDA = (9, 10, 0), (12, 8, 0)


@dataclasses.dataclass(frozen=True)
class Chip:
    """One accelerator."""

    name: str  # as on the command line
    platform: str  # 'tpu' or 'gpu'
    memory_bytes: int  # of one device
    topology: str  # the smallest group of such chips that the compiler knows by name
    accelerator_type: str = ''  # TPU_ACCELERATOR_TYPE of a host with this topology
    # What the compiler is told about a GPU: fields of XLA's `GpuDeviceInfoProto`.
    target: tuple[tuple[str, int | float], ...] = ()


def _gpu(name: str, **target: int | float) -> Chip:
    return Chip(name, 'gpu', int(target['device_memory_size']), '1x1x1', target=tuple(target.items()))


# Memory of TPUs by https://cloud.google.com/tpu/docs, GPUs by XLA's own descriptions (`h100_sxm.txtpb`,
# `a100_sxm_80.txtpb` in https://github.com/openxla/xla/tree/main/xla/backends/gpu/target_config/specs).
_CHIPS = (
    Chip('v5e', 'tpu', 16 * 2**30, 'v5e:2x2', 'v5litepod-4'),
    _gpu(
        'h100', major=9, core_count=132, fpus_per_core=128, clock_rate_ghz=1.98, device_memory_size=84942979072,
        memory_bandwidth=3352320000000, l2_cache_size=52428800, shared_memory_per_core=233472,
        shared_memory_per_block_optin=232448,
    ),
    Chip('v6e', 'tpu', 32 * 2**30, 'v6e:2x2', 'v6e-4'),
    Chip('v4', 'tpu', 32 * 2**30, 'v4:2x2x1', 'v4-8'),
    _gpu(
        'a100', major=8, core_count=108, fpus_per_core=64, clock_rate_ghz=1.41, device_memory_size=85100068864,
        memory_bandwidth=2039040000000, l2_cache_size=41943040, shared_memory_per_core=167936,
        shared_memory_per_block_optin=166912,
    ),
)  # fmt: skip
CHIPS = {chip.name: chip for chip in _CHIPS}


def get(name: str) -> Chip:
    """The accelerator of a name; raises ValueError for an unknown one."""
    checks.choice('devices', name, CHIPS)
    return CHIPS[name]


def is_installed(chip: Chip) -> bool:
    """Whether the compiler of an accelerator is in this environment."""
    return util.find_spec(PACKAGES[chip.platform]) is not None


def check_installed(chip: Chip) -> None:
    """Raises ValueError if the compiler of an accelerator is not in this environment."""
    if not is_installed(chip):
        package, extra = PACKAGES[chip.platform], f'{chip.platform}-compile'
        raise ValueError(f'devices={chip.name}: needs {package} from the extra {extra}: make accelerators')


def environment(chip: Chip) -> dict[str, str]:
    """Variables of a process that compiles for an accelerator, to be set before it imports JAX."""
    if chip.platform == 'tpu':
        # The library then asks no server which TPU this is, and several processes may compile at once.
        host = {'TPU_SKIP_MDS_QUERY': '1', 'TPU_WORKER_HOSTNAMES': 'localhost', 'ALLOW_MULTIPLE_LIBTPU_LOAD': '1'}
        return {**host, 'TPU_ACCELERATOR_TYPE': chip.accelerator_type, 'JAX_PLATFORMS': 'cpu'}
    nvcc = util.find_spec('nvidia.cuda_nvcc')
    folders = list(nvcc.submodule_search_locations or ()) if nvcc else []
    folder = ''.join(f' --xla_gpu_cuda_data_dir={one}' for one in folders[:1])
    return {'XLA_FLAGS': f'{os.environ.get("XLA_FLAGS", "")} {_GPU_FLAGS}{folder}'.strip(), 'JAX_PLATFORMS': 'cpu'}


def devices(chip: Chip) -> list[Any]:
    """Devices of the smallest group of such accelerators: programs can be compiled for them but not run."""
    check_installed(chip)
    if chip.platform == 'tpu':
        return topologies.get_topology_desc(chip.topology, platform='tpu').devices
    description = {'target_config': target_config(chip), 'topology': chip.topology}
    return topologies.get_topology_desc(platform='cuda', **description).devices


def target_config(chip: Chip) -> str:
    """What XLA's compiler for CUDA is told of a GPU, a `GpuTargetConfigProto` as text."""
    fields = {**_COMMON, **dict(chip.target)}
    major = fields.pop('major')
    info = '\n'.join(f'  {name}: {value}' for name, value in fields.items())
    version = '\n'.join(f'  {name}: {value}' for name, value in zip(('major', 'minor', 'patch'), _CUDNN, strict=True))
    return (
        f'gpu_device_info {{\n{info}\n  cuda_compute_capability {{ major: {major} }}\n'
        f'  runtime_version: "{".".join(map(str, _CUDA))}"\n}}\n'
        f'platform_name: "CUDA"\ndnn_version_info {{\n{version}\n}}\n'
        f'device_description_str: "{chip.name}"\n'
    )
