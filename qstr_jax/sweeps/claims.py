"""Who runs what: claims on lane batches that end with their holder.

Several processes may work on one directory. Each claims a lane batch by an operating-system lock on a file, which the
system releases however its holder ends, so that the batch of a killed worker is taken up by another. Several processes
need a file system with locks (local disks, NFS 4, Lustre with `flock`); on `gs://` and the like run one process per
directory.
"""

import collections
import contextlib
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import filelock

from qstr_jax.storage import files, results
from qstr_jax.sweeps.lane_batches import LaneBatch

# Between two looks at the batches that other workers hold.
POLL_SECONDS = 1.0
# After so long at its first batches a thread is offered help with its cell: compiling takes less.
PATIENCE = 20.0


@contextlib.contextmanager
def locked(workdir: Any, name: str, timeout: float = -1) -> Iterator[bool]:
    """Holds a lock of a directory; yields False if another worker has it after `timeout` seconds.

    Args:
        workdir: the results directory.
        name: of the lock.
        timeout: seconds; below 0 there is no end of waiting.
    """
    if '://' in str(workdir):  # no locks there
        yield True
        return
    path = workdir / 'locks' / f'{name}.lock'
    lock = filelock.FileLock(str(path), thread_local=False)
    try:
        lock.acquire(timeout=timeout)
    except filelock.Timeout:
        yield False
        return
    except OSError as error:
        raise files.ResultsError(f'cannot lock {path}: {error.strerror or error}') from error
    try:
        yield True
    finally:
        lock.release()


def missing(workdir: Any, batch: LaneBatch) -> tuple[Any, ...]:
    """Lanes of a batch that have no row yet.

    Args:
        workdir: the results directory.
        batch: the lane batch.
    """
    path = results.cell_path(workdir, 'rows', batch.cell.id)
    if not path.exists():
        return batch.lanes
    done = results.lanes_in(files.read_table(path))
    return tuple(lane for lane in batch.lanes if tuple(lane) not in done)


def remove_checkpoints(workdir: Any, cell_id: str) -> None:
    """Removes checkpoints of a complete cell: of a worker killed after its rows, or of a cell cut in other ways.

    What a living worker holds stays.

    Args:
        workdir: the results directory.
        cell_id: the cell's.
    """
    for folder in (workdir / 'checkpoints').glob(f'{cell_id}-batch*'):
        name, _, _ = folder.name.rsplit('-', 2)
        with locked(workdir, name, timeout=0) as is_free:
            if is_free:
                folder.rmtree(missing_ok=True)


class _Owner:
    """The thread that began a cell, and what its batches have cost: the first one holds the compilation too."""

    def __init__(self, thread: int):
        self.thread = thread
        self._first_seconds: float | None = None
        self._batch_seconds: float | None = None
        self._start = time.monotonic()

    def finish(self, thread: int) -> None:
        """Ends a batch; the owner's batches follow one another."""
        if thread == self.thread:
            now = time.monotonic()
            seconds, self._start = now - self._start, now
            if self._first_seconds is None:
                self._first_seconds = seconds
            else:
                self._batch_seconds = seconds

    def needs_help(self, num_batches: int) -> bool:
        """Whether its other batches take longer than compiling once more would, as far as that is known."""
        if self._batch_seconds is None or self._first_seconds is None:
            return time.monotonic() - self._start > PATIENCE
        return num_batches * self._batch_seconds > self._first_seconds - self._batch_seconds


class Claims:
    """Hands out the lane batches of a sweep to the threads of this process, each batch once.

    Args:
        workdir: the results directory.
        batches: this process's.
        stop: set when the sweep should end.
    """

    def __init__(self, workdir: Any, batches: Sequence[LaneBatch], stop: threading.Event):
        self._workdir = workdir
        self._pending = list(batches)
        self._owners: dict[str, _Owner] = {}  # by cell id
        self._stop = stop
        self._drained = threading.Event()  # wakes those who wait for a batch when there is none left
        self._mutex = threading.Lock()

    @contextlib.contextmanager
    def claim(self) -> Iterator[tuple[LaneBatch, tuple] | None]:
        """Yields (batch, missing lanes) with the batch's lock held, or None when nothing is left to do.

        Each device compiles a cell for itself, so a thread takes its own cells first, then cells that nobody has
        begun, then of the others' what is worth compiling again. Waits while other workers hold all that is left, and
        takes over what they leave unfinished.
        """
        with contextlib.ExitStack() as held:
            while not self._stop.is_set():
                with self._mutex:
                    found, is_empty = self._next(held, threading.get_ident())
                if found is not None or is_empty:
                    yield found
                    if found is not None:
                        self._owners[found[0].cell.id].finish(threading.get_ident())
                    return
                self._drained.wait(POLL_SECONDS)
            yield None

    def _next(self, held: contextlib.ExitStack, thread: int) -> tuple[tuple[LaneBatch, tuple] | None, bool]:
        def distance(batch: LaneBatch) -> int:
            owner = self._owners.get(batch.cell.id)
            return 1 if owner is None else 2 * (owner.thread != thread)

        left = collections.Counter(batch.cell.id for batch in self._pending)
        for batch in sorted(self._pending, key=distance):
            if distance(batch) == 2 and not self._owners[batch.cell.id].needs_help(left[batch.cell.id]):
                continue
            attempt = contextlib.ExitStack()
            if not attempt.enter_context(locked(self._workdir, batch.name, timeout=0)):
                attempt.close()
                continue
            self._pending.remove(batch)
            if not self._pending:
                self._drained.set()
            lanes = missing(self._workdir, batch)
            if lanes:
                self._owners.setdefault(batch.cell.id, _Owner(thread))
                held.push(attempt)
                return (batch, lanes), False
            attempt.close()
        return None, not self._pending
