"""Lane batches: how a cell is cut into batches that fit the memory, and how processes share cells.

How many lanes a program should have on each accelerator stands in `platforms.py`.
"""

import os
import pathlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
from absl import logging

from qstr_jax import models
from qstr_jax.learners.problem import Problem
from qstr_jax.sweeps import cost, platforms, programs
from qstr_jax.sweeps.cells import Cell

# Share of a device's memory that a lane batch may take.
MEMORY_SHARE = 0.8


class LaneBatch(NamedTuple):
    """Lanes of one cell that one program runs together."""

    cell: Cell
    lanes: tuple[Any, ...]
    number: int  # of the batch within its cell, from 0

    @property
    def name(self) -> str:
        """Name for files; the same for all workers that divide the cell in the same way."""
        return f'{self.cell.id}-batch{self.number}of{len(self.lanes)}'


def cut(cells: Sequence[Cell], size_of: Callable[[Cell], int]) -> list[LaneBatch]:
    """The lane batches of some cells; the last one of a cell may be smaller."""
    batches = []
    for cell in cells:
        size = size_of(cell)
        parts = [cell.lanes[i : i + size] for i in range(0, len(cell.lanes), size)]
        batches += [LaneBatch(cell=cell, lanes=part, number=number) for number, part in enumerate(parts)]
    return batches


def work(cell: Cell) -> int:
    """About how much work a lane of a cell is, relative to the lanes of other cells."""
    # Samples to the threshold grow with N too: one more factor of N than the operations of a prompt.
    return cost.prediction_flops(cell.problem) * cell.problem.task.seq_len


def share(cells: Sequence[Cell], index: int, count: int) -> tuple[Cell, ...]:
    """The cells of one of `count` shares of about equal work: largest cells first, each to the lightest share."""
    if count == 1:
        return tuple(cells)
    loads = [0.0] * min(count, len(cells))  # the lightest share is then always among these
    mine = []
    costs = [work(cell) for cell in cells]
    for i in sorted(range(len(cells)), key=lambda i: (-costs[i], cells[i].id)):
        lightest = min(range(len(loads)), key=loads.__getitem__)
        loads[lightest] += costs[i]
        if lightest == index:
            mine.append(i)
    return tuple(cells[i] for i in sorted(mine))


def default_size(module: Any, num_lanes: int, platform: str) -> int:
    """Lanes of one program unless the sweep sets them: as many as the platform allows, in batches of equal size.

    Baselines in closed form run one lane at a time, since they solve large linear systems.
    """
    most = 1 if models.is_closed_form(module) else platforms.of(platform).most_lanes
    # 100 lanes become 50 + 50, not 64 + 36: smaller batches are filled up, and a filler costs as much as a lane.
    return -(-num_lanes // -(-num_lanes // most))


def available_memory(device: Any) -> int:
    """Bytes that programs may use: an accelerator's own limit, or a CPU device's share of the host's free memory."""
    stats = device.memory_stats() or {}
    if 'bytes_limit' in stats:
        return int(stats['bytes_limit'] - stats.get('bytes_in_use', 0))
    return _host_memory() // len(jax.local_devices())


def _host_memory() -> int:
    try:
        lines = pathlib.Path('/proc/meminfo').read_text().splitlines()
        fields = dict(line.split(':') for line in lines)
        return int(fields['MemAvailable'].split()[0]) * 1024
    except (OSError, KeyError):  # not Linux
        return os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE')


def fitting_programs(problem: Problem, size: int, device: Any, memory_limit: int | None = None) -> programs.Programs:
    """Programs of the largest batch of at most `size` lanes, halved until its memory fits.

    A failed allocation kills the process on a CPU and loses the donated state on a GPU, so the size is decided
    beforehand, from the compiler's own estimate.
    """
    limit = memory_limit or MEMORY_SHARE * available_memory(device)
    while True:
        compiled = programs.compile_programs(problem, size, device)
        if compiled.memory_bytes <= limit:
            return compiled
        need = f'{size} lanes need {compiled.memory_bytes / 2**20:,.0f} MiB of {limit / 2**20:,.0f} MiB'
        if size == 1:
            raise MemoryError(f'{need}: use fewer test_samples or max_samples, a smaller batch_size, seq_len or model')
        # 45 lanes become 23 + 22, not 22 + 22 + 1.
        size = -(-size // 2)
        logging.warning('%s: continuing with lanes_per_batch=%d', need, size)
