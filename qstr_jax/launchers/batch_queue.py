"""Which lane batch a device gets: one of the cell that it has compiled, else one of the longest cell not yet begun."""

import heapq
from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple


class Batch(NamedTuple):
    """A lane batch by its numbers, for those who have no JAX."""

    cell: str  # id of its cell
    number: int  # within the cell, as in `lane_batches.LaneBatch`
    name: str  # of its files
    lanes: tuple[int, ...]  # which of the batch's lanes have no row yet, by their numbers in it
    work: float  # in any unit
    values: tuple[tuple, ...] = ()  # all lanes of the batch, each as its numbers
    size: int = 1  # lanes in batches of the cell
    folder: str = ''  # of its files in the results directory; '' is the directory itself
    columns: tuple[tuple[str, Any], ...] = ()  # further columns of its rows, as (name, value)


class BatchQueue:
    """The lane batches that nobody runs."""

    def __init__(self) -> None:
        self._left: dict[str, list[tuple[float, int, Batch]]] = {}  # heaps, by cell
        self._new: list[tuple[float, str]] = []  # a heap of cells that no device is at
        self._cell_of: dict[Hashable, str] = {}  # by device

    def add(self, batches: Iterable[Batch]) -> None:
        """Takes more batches; none may be left here of their cells."""
        most: dict[str, float] = {}
        for batch in batches:
            self._push(batch)
            most[batch.cell] = max(batch.work, most.get(batch.cell, 0.0))
        for cell, work in most.items():
            heapq.heappush(self._new, (-work, cell))

    def _push(self, batch: Batch) -> None:
        heapq.heappush(self._left.setdefault(batch.cell, []), (-batch.work, batch.number, batch))

    def put_back(self, batch: Batch) -> None:
        """Takes back a batch whose device is gone; any other device may take it at once."""
        self._push(batch)
        heapq.heappush(self._new, (-batch.work, batch.cell))

    def has_of(self, device: Hashable) -> bool:
        """Whether batches are left of the cell that a device has compiled."""
        return self._cell_of.get(device) in self._left

    def take(self, device: Hashable) -> Batch | None:
        """The next batch of a device, None if no batch is left."""
        if not self._left:
            return None
        cell = self._cell_of.get(device)
        if cell not in self._left:
            while self._new and self._new[0][1] not in self._left:
                heapq.heappop(self._new)
            cell = heapq.heappop(self._new)[1] if self._new else self._largest()
            self._cell_of[device] = cell
        *_, batch = heapq.heappop(self._left[cell])
        if not self._left[cell]:
            del self._left[cell]
        return batch

    def _largest(self) -> str:
        """The cell with the most work left, which another device is at."""
        return min(self._left, key=lambda cell: sum(minus_work for minus_work, *_ in self._left[cell]))

    def __len__(self) -> int:
        return sum(map(len, self._left.values()))
