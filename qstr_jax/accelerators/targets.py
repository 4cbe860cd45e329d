"""Devices that are not there, to compile for: the makers' compilers know them by name or by a description.

JAX finds the compilers in `libtpu` and in the plugin for CUDA, which are installed in environments of their own (the
extras `tpu-compile` and `gpu-compile`).
"""

import os
from importlib import util
from typing import Any

from jax.experimental import topologies

from qstr_jax.accelerators.chips import Chip

PACKAGES = {'tpu': 'libtpu', 'gpu': 'jax_cuda12_plugin'}
# What all CUDA devices since 8.0 have in common.
_COMMON = {
    'threads_per_block_limit': 1024, 'threads_per_warp': 32, 'shared_memory_per_block': 49152,
    'threads_per_core_limit': 2048, 'block_dim_limit_x': 2**31 - 1, 'block_dim_limit_y': 65535,
    'block_dim_limit_z': 65535, 'registers_per_core_limit': 65536, 'registers_per_block_limit': 65536,
    'thread_dim_limit_x': 1024, 'thread_dim_limit_y': 1024, 'thread_dim_limit_z': 64,
}  # fmt: skip
# Nothing is timed on a device that is not there, so no kernel can be chosen by its time.
_GPU_FLAGS = '--xla_gpu_enable_triton_gemm=false --xla_gpu_autotune_level=0'
_CUDNN, _CUDA = (9, 10, 0), (12, 8, 0)


def is_installed(chip: Chip) -> bool:
    """Whether the compiler of an accelerator is in this environment.

    Args:
        chip: the accelerator.
    """
    return util.find_spec(PACKAGES[chip.platform]) is not None


def check_installed(chip: Chip) -> None:
    """Checks that the compiler of an accelerator is in this environment.

    Args:
        chip: the accelerator.

    Raises:
        ValueError: it is not.
    """
    if not is_installed(chip):
        extra = f'{chip.platform}-compile'
        raise ValueError(
            f'devices={chip.name}: needs {PACKAGES[chip.platform]}, of the extra {extra}: make accelerators'
        )


def environment(chip: Chip) -> dict[str, str]:
    """Variables of a process that compiles for an accelerator, to be set before it imports JAX.

    Args:
        chip: the accelerator.
    """
    if chip.platform == 'tpu':
        # So that the library asks no server which TPU this is, and several processes may compile at once.
        host = {'TPU_SKIP_MDS_QUERY': '1', 'TPU_WORKER_HOSTNAMES': 'localhost', 'ALLOW_MULTIPLE_LIBTPU_LOAD': '1'}
        return {**host, 'TPU_ACCELERATOR_TYPE': chip.accelerator_type, 'JAX_PLATFORMS': 'cpu'}
    nvcc = util.find_spec('nvidia.cuda_nvcc')
    folders = list(nvcc.submodule_search_locations or ()) if nvcc else []
    folder = ''.join(f' --xla_gpu_cuda_data_dir={one}' for one in folders[:1])
    return {'XLA_FLAGS': f'{os.environ.get("XLA_FLAGS", "")} {_GPU_FLAGS}{folder}'.strip(), 'JAX_PLATFORMS': 'cpu'}


def devices(chip: Chip, topology: str = '') -> list[Any]:
    """Devices of a group of such accelerators, which programs can be compiled for and nothing else.

    Args:
        chip: the accelerator.
        topology: of the group; by default the chip's own.

    Raises:
        ValueError: its compiler is not installed.
    """
    check_installed(chip)
    topology = topology or chip.topology
    if chip.platform == 'tpu':
        return topologies.get_topology_desc(topology, platform='tpu').devices
    description = {'target_config': target_config(chip), 'topology': topology}
    return topologies.get_topology_desc(platform='cuda', **description).devices


def target_config(chip: Chip) -> str:
    """What XLA's compiler for CUDA is told of a device, a `GpuTargetConfigProto` as text.

    Args:
        chip: a GPU.
    """
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
