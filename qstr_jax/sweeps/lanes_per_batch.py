"""How many lanes one program vectorises: by the device's platform, then by what fits its memory.

The sizes were measured by `experiments.lanes_per_batch`.
"""

import os
from typing import Any

import jax
from absl import logging

from qstr_jax import models
from qstr_jax.learners.problem import Problem
from qstr_jax.sweeps import programs

# Lanes that one program vectorises at most, by platform; on a CPU each core takes a lane.
MOST_LANES = {'cpu': 1, 'gpu': 64, 'tpu': 64}
# Share of a device's memory that a lane batch may take.
MEMORY_SHARE = 0.8


def default_size(module: Any, num_lanes: int, platform: str) -> int:
    """Lanes of one program where the sweep does not say: as many as its platform takes, evenly divided.

    Baselines in closed form take one at a time: their systems are large and solved at once.

    Args:
        module: the model.
        num_lanes: of the cell.
        platform: of the device, 'cpu', 'gpu' or 'tpu'.
    """
    most = 1 if models.is_closed_form(module) else MOST_LANES.get(platform, MOST_LANES['gpu'])
    # A hundred lanes as 50 + 50 rather than 64 + 36: the smaller batch is filled up, and fillers cost as much as lanes.
    return -(-num_lanes // -(-num_lanes // most))


def available_memory(device: Any) -> int:
    """Bytes that programs may use: an accelerator's own limit, or a CPU device's share of what the host has left.

    Args:
        device: a local device.
    """
    stats = device.memory_stats() or {}
    if 'bytes_limit' in stats:
        return int(stats['bytes_limit'] - stats.get('bytes_in_use', 0))
    return _host_memory() // len(jax.local_devices())


def _host_memory() -> int:
    try:
        lines = open('/proc/meminfo').read().splitlines()
        fields = dict(line.split(':') for line in lines)
        return int(fields['MemAvailable'].split()[0]) * 1024
    except (OSError, KeyError):  # not Linux
        return os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE')


def fitting_programs(problem: Problem, size: int, device: Any, memory_limit: int | None = None) -> programs.Programs:
    """Programs of the largest batch of at most `size` lanes, halved until its memory fits.

    An allocation that fails kills the process on a CPU and loses the donated state on a GPU, so the size is chosen
    beforehand, from the memory that the compiler reports.

    Args:
        problem: the cell's.
        size: lanes to begin with.
        device: to compile for.
        memory_limit: bytes; None measures what there is.

    Raises:
        MemoryError: one lane alone needs more than there is.
    """
    limit = memory_limit or MEMORY_SHARE * available_memory(device)
    while True:
        compiled = programs.compile_programs(problem, size, device)
        if compiled.memory_bytes <= limit:
            return compiled
        need = f'{size} lanes need {compiled.memory_bytes / 2**20:,.0f} MiB of {limit / 2**20:,.0f} MiB'
        if size == 1:
            raise MemoryError(f'{need}: take fewer test_samples or max_samples, a smaller batch or model')
        size = size // 2
        logging.warning('%s: going on with lanes_per_batch=%d', need, size)
