"""Claims: which worker runs which lane batch.

Several processes may work on one directory. Each claims a lane batch by an operating-system lock on a file. The system
releases the lock when its holder ends, in whatever way, so another worker can continue the batch of a killed one. This
needs a file system with locks (local disks, NFS 4, Lustre with `flock`). `gs://` and the like have none: there the
processes of one job divide whole cells among themselves, and other jobs need directories of their own.
"""

import contextlib
import operator
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from qstr_jax.storage import cell_columns, checkpoint, locks, names
from qstr_jax.sweeps import monitor
from qstr_jax.sweeps.cells import Cell
from qstr_jax.sweeps.lane_batches import LaneBatch

# Seconds between two attempts to claim a batch that another worker holds.
POLL_SECONDS = 1.0
# A worker that waits this long names the process that it waits for, if that process was silent for as long.
QUIET_SECONDS = 60.0


@contextlib.contextmanager
def locked(workdir: Any, name: str, timeout: float = -1) -> Iterator[bool]:
    """Holds a lock of a directory; yields False if another worker has it after `timeout` seconds."""
    mutex = _mutex_of(workdir, name)
    if not mutex.acquire(timeout=timeout):
        yield False
        return
    try:
        with locks.locked(workdir, name, timeout) as is_mine:
            yield is_mine
    finally:
        mutex.release()


def _mutex_of(workdir: Any, name: str) -> threading.Lock:
    """The lock that the threads of this process share: each device has one, and they write the same tables."""
    with _guard:
        return _mutexes.setdefault((str(workdir), name), threading.Lock())


_guard = threading.Lock()
_mutexes: weakref.WeakValueDictionary[tuple[str, str], threading.Lock] = weakref.WeakValueDictionary()


def missing(workdir: Any, batch: LaneBatch) -> tuple[Any, ...]:
    """Lanes of a batch that have no row yet."""
    fields = batch.lanes[0]._fields
    return _without_rows(cell_columns.columns_of(workdir, batch.cell.id, fields), batch.lanes, fields)


def missing_of(workdir: Any, cells: Sequence[Cell], tuned: Sequence[str] = ()) -> dict[str, tuple[Any, ...]]:
    """The lanes of some cells that have no row yet, by cell id; tuned settings do not tell lanes apart."""
    found = cell_columns.columns_of_each(workdir, {cell.id: cell.lanes[0]._fields for cell in cells})
    missing = {}
    for cell in cells:
        names = [name for name in cell.lanes[0]._fields if name not in tuned]
        missing[cell.id] = _without_rows(found.get(cell.id, {}), cell.lanes, names)
    return missing


def _without_rows(found: dict[str, list], lanes: Sequence[Any], names: Sequence[str]) -> tuple[Any, ...]:
    """The lanes that are not among the rows of their cell."""
    if not found:
        return tuple(lanes)
    done, values = set(zip(*(found[name] for name in names), strict=True)), operator.attrgetter(*names)
    return tuple(lane for lane in lanes if values(lane) not in done)


def remove_checkpoints(workdir: Any, cell_id: str) -> None:
    """Removes the checkpoints of a complete cell.

    They are left by a worker that was killed after it had written the rows, or by one that cut the cell into other
    batches. Those of a batch that a living worker holds stay.
    """
    for path in (workdir / 'checkpoints').glob(f'{names.check(cell_id)}-batch*'):
        folder = names.inside(workdir, 'checkpoints', path.name)
        name, _, _ = folder.name.rsplit('-', 2)
        with locked(workdir, name, timeout=0) as is_free:
            if is_free:
                checkpoint.remove(folder)


class Claims:
    """Hands out the lane batches of a sweep to the threads of this process, each batch once."""

    def __init__(
        self,
        workdir: Any,
        batches: Sequence[LaneBatch],
        stop: threading.Event,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._workdir = workdir
        self._pending = list(batches)
        self._owners: dict[str, int] = {}  # the thread that began a cell, by cell id
        self._stop, self._say = stop, say
        self._told: set[str] = set()  # batches whose holders were named
        self._drained = threading.Event()  # set when no batch is left, to wake the threads that wait for one
        self._mutex = threading.Lock()

    @contextlib.contextmanager
    def claim(self) -> Iterator[tuple[LaneBatch, tuple] | None]:
        """Yields (batch, missing lanes) with the batch's lock held, or None when nothing is left to do.

        Each device compiles a cell for itself. A thread therefore takes batches of cells that it has begun first, then
        of cells that nobody has begun, and then of other threads' cells, so that no device is idle. While other
        processes hold everything that is left it waits, and takes over what they leave unfinished.
        """
        told = time.monotonic()
        with contextlib.ExitStack() as held:
            while not self._stop.is_set():
                with self._mutex:
                    found, is_empty = self._next(held, threading.get_ident())
                if found is not None or is_empty:
                    yield found
                    return
                if time.monotonic() - told >= QUIET_SECONDS:
                    self._tell()
                    told = time.monotonic()
                self._drained.wait(POLL_SECONDS)
            yield None

    def _tell(self) -> None:
        """Names, once per batch, the silent process that holds it, since it may hang."""
        with self._mutex:
            waits = {batch.name for batch in self._pending} - self._told
            holders = monitor.silent_holders(self._workdir, waits, QUIET_SECONDS)
            self._told.update(holders)
        for name, holder in holders.items():
            with locked(self._workdir, name, timeout=0) as is_free:  # it may have ended meanwhile
                if not is_free:
                    self._say(f'waits for {name}, held by {holder}')

    def _next(self, held: contextlib.ExitStack, thread: int) -> tuple[tuple[LaneBatch, tuple] | None, bool]:
        def distance(batch: LaneBatch) -> int:
            owner = self._owners.get(batch.cell.id)
            return 1 if owner is None else 2 * (owner != thread)

        for batch in sorted(self._pending, key=distance):
            with contextlib.ExitStack() as attempt:
                if not attempt.enter_context(locked(self._workdir, batch.name, timeout=0)):
                    continue
                self._pending.remove(batch)
                if not self._pending:
                    self._drained.set()
                if lanes := missing(self._workdir, batch):
                    self._owners.setdefault(batch.cell.id, thread)
                    held.push(attempt.pop_all())
                    return (batch, lanes), False
        return None, not self._pending
