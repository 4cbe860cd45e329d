"""Lane batches: how the lanes of a cell are divided among program runs, and the cells among processes."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from qstr_jax.sweeps import cost
from qstr_jax.sweeps.cells import Cell


class LaneBatch(NamedTuple):
    """Lanes of one cell that one program runs together.

    Attributes:
        cell: what they share.
        lanes: the lanes.
        number: of the batch within its cell, from 0.
    """

    cell: Cell
    lanes: tuple[Any, ...]
    number: int

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
    """About how much work a lane of a cell is, beside those of other cells."""
    # Samples to the threshold grow with N too: one more factor of N than the operations of a prompt.
    return cost.prediction_flops(cell.problem) * cell.problem.task.seq_len


def share(cells: Sequence[Cell], index: int, count: int) -> tuple[Cell, ...]:
    """The cells of one of `count` shares of about equal work: largest cells first, each to the lightest share."""
    check_share(index, count)
    if count == 1:
        return tuple(cells)
    loads = [0.0] * min(count, len(cells))  # the lightest share is then always among these
    mine = []
    costs = [work(cell) for cell in cells]
    for place in sorted(range(len(cells)), key=lambda i: (-costs[i], cells[i].id)):
        lightest = min(range(len(loads)), key=lambda i: loads[i])
        loads[lightest] += costs[place]
        if lightest == index:
            mine.append(place)
    return tuple(cells[place] for place in sorted(mine))


def check_share(index: int, count: int) -> None:
    """Checks the number of a share."""
    if count < 1 or not 0 <= index < count:
        raise ValueError(f'shard_index={index}, num_shards={count}: need 0 ≤ shard_index < num_shards')
