"""Who runs what: units of work, this process's share of them, and claims that end with their holder.

A unit is one lane batch of one cell. Several processes may work on one directory: each claims a unit by an
operating-system lock on a file, which the system releases however its holder ends, so a unit of a killed worker is
taken up by another. Needs a file system with locks when there are several processes (local disks, NFS 4, Lustre with
`flock`); on `gs://` and the like one process per directory.
"""

import collections
import contextlib
import threading
import time
from typing import NamedTuple

import filelock

from qstr_jax.storage import files, results
from qstr_jax.sweeps import cells, cost

# Between two looks at the units that other workers hold.
POLL_SECONDS = 1.0
# After so long at its first units a thread is offered help with its cell: compiling takes less.
PATIENCE = 20.0


class Unit(NamedTuple):
    """Lanes of one cell that one program runs together."""

    cell: cells.Cell
    lanes: tuple
    number: int

    @property
    def name(self):
        """File-safe name of the unit; the same for all workers that cut the cell in the same way."""
        return f'{self.cell.id}-batch{self.number}of{len(self.lanes)}'


def units(cells, lanes_of, size_of):
    """All units of a sweep: `lanes_of(cell)` in parts of `size_of(cell)` lanes, the last one may be smaller."""
    cut = []
    for cell in cells:
        lanes, size = lanes_of(cell), size_of(cell)
        parts = [lanes[i : i + size] for i in range(0, len(lanes), size)]
        cut += [Unit(cell, part, number) for number, part in enumerate(parts)]
    return cut


def shard(cells, index, count):
    """Cells of one of `count` shares, about equal in work: the largest first, each to the lightest share.

    Raises:
        ValueError: index not in 0..count − 1.
    """
    if count < 1 or not 0 <= index < count:
        raise ValueError(f'shard_index={index}, num_shards={count}: need 0 ≤ shard_index < num_shards')
    if count == 1:
        return tuple(cells)
    loads = [0.0] * count
    mine = []
    # Samples to the threshold grow with N too: one more factor of N than the operations of a prompt.
    costs = [cost.prediction_flops(cell.problem) * cell.problem.task.seq_len for cell in cells]
    for place in sorted(range(len(cells)), key=lambda i: (-costs[i], cells[i].id)):
        lightest = min(range(count), key=lambda i: loads[i])
        loads[lightest] += costs[place]
        if lightest == index:
            mine.append(place)
    return tuple(cells[place] for place in sorted(mine))


@contextlib.contextmanager
def locked(workdir, name, timeout=-1):
    """Holds the lock `name` of a directory; yields False if another worker has it after `timeout` seconds."""
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


def missing(workdir, unit):
    """Lanes of a unit that have no row yet."""
    path = results.cell_path(workdir, 'rows', unit.cell.id)
    if not path.exists():
        return unit.lanes
    rows = files.read_table(path)
    done = set(rows[results.lane_columns(rows)].itertuples(index=False, name=None))
    return tuple(lane for lane in unit.lanes if tuple(lane) not in done)


def remove_checkpoints(workdir, cell_id):
    """Removes checkpoints of a complete cell: of a worker killed after its rows, or of a cell cut in other ways.

    What a living worker holds stays.
    """
    for folder in (workdir / 'checkpoints').glob(f'{cell_id}-batch*'):
        name, _, _ = folder.name.rsplit('-', 2)
        with locked(workdir, name, timeout=0) as is_free:
            if is_free:
                folder.rmtree(missing_ok=True)


class _Owner:
    """The thread that began a cell, and what its units have cost: the first one holds the compilation too."""

    def __init__(self, thread):
        self.thread = thread
        self._first_seconds = self._unit_seconds = None
        self._start = time.monotonic()

    def finish(self, thread):
        """Ends a unit; the owner's units follow one another."""
        if thread == self.thread:
            now = time.monotonic()
            seconds, self._start = now - self._start, now
            if self._first_seconds is None:
                self._first_seconds = seconds
            else:
                self._unit_seconds = seconds

    def needs_help(self, num_units):
        """Whether its other units take longer than compiling once more would, as far as that is known."""
        if self._unit_seconds is None:
            return time.monotonic() - self._start > PATIENCE
        return num_units * self._unit_seconds > self._first_seconds - self._unit_seconds


class Schedule:
    """Hands out the units of a sweep to the threads of this process, each unit once."""

    def __init__(self, workdir, all_units, stop):
        self._workdir = workdir
        self._pending = list(all_units)
        self._owners = {}  # cell id → _Owner
        self._stop = stop  # threading.Event
        self._drained = threading.Event()  # wakes those who wait for a unit when there is none left
        self._mutex = threading.Lock()

    @contextlib.contextmanager
    def claim(self):
        """Yields (unit, missing lanes) with the unit's lock held, or None when nothing is left to do.

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

    def _next(self, held, thread):
        def distance(unit):
            owner = self._owners.get(unit.cell.id)
            return 1 if owner is None else 2 * (owner.thread != thread)

        left = collections.Counter(unit.cell.id for unit in self._pending)
        for unit in sorted(self._pending, key=distance):
            if distance(unit) == 2 and not self._owners[unit.cell.id].needs_help(left[unit.cell.id]):
                continue
            attempt = contextlib.ExitStack()
            if not attempt.enter_context(locked(self._workdir, unit.name, timeout=0)):
                attempt.close()
                continue
            self._pending.remove(unit)
            if not self._pending:
                self._drained.set()
            lanes = missing(self._workdir, unit)
            if lanes:
                self._owners.setdefault(unit.cell.id, _Owner(thread))
                held.push(attempt)
                return (unit, lanes), False
            attempt.close()
        return None, not self._pending
