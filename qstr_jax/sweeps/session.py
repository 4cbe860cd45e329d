"""One call of `run`: how it is run, and the workers of its devices.

Signals are an event, so that a run ends between two calls of the device with its lanes saved. Workers keep their
programs from one set of cells to the next.
"""

import concurrent.futures
import contextlib
import dataclasses
import functools
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax

from qstr_jax.progress import Progress
from qstr_jax.settings import checks
from qstr_jax.signals import Stop
from qstr_jax.storage import locks, provenance, results
from qstr_jax.sweeps import claims, kept, lane_batches, monitor, outputs, probing, stale, worker
from qstr_jax.sweeps.cells import Cell
from qstr_jax.sweeps.sweep import Sweep


@dataclasses.dataclass(frozen=True)
class Options:
    """How a sweep is run; nothing here changes what a row would be.

    Attributes:
        progress: whether to show a progress bar on standard error.
        checkpoint_seconds: time between two checkpoints of a running lane batch.
        memory_limit: bytes that a lane batch may use; None measures what the device has.
        shard_index: number of the share of the cells to run, from 0.
        num_shards: number of shares.
        num_devices: number of local devices to use; None uses all.
        refresh: run the cells again whose rows are of another program, since the code has changed. The old rows,
            curves and parameters are kept in the directory's `replaced/`. Without it such cells are an error.

    Raises:
        ValueError: a value is impossible.
    """

    progress: bool = True
    checkpoint_seconds: float = 60.0
    memory_limit: int | None = None
    shard_index: int = 0
    num_shards: int = 1
    num_devices: int | None = None
    refresh: bool = False

    def __post_init__(self) -> None:
        checks.number('checkpoint_seconds', self.checkpoint_seconds, 0)
        if self.memory_limit is not None and (type(self.memory_limit) is not int or self.memory_limit < 1):
            raise ValueError(f'memory_limit={self.memory_limit!r}: must be bytes, at least 1; None measures them')
        if not isinstance(self.refresh, bool):
            raise ValueError(f'refresh={self.refresh!r}: must be True or False')
        checks.integer('num_shards', self.num_shards)
        checks.integer('shard_index', self.shard_index, 0)
        if self.shard_index >= self.num_shards:
            raise ValueError(
                f'shard_index={self.shard_index}, num_shards={self.num_shards}: need 0 ≤ shard_index < num_shards'
            )
        if self.num_devices is not None:
            checks.integer('num_devices', self.num_devices)

    def check_devices(self) -> None:
        """Raises ValueError if there are fewer local devices than `num_devices`."""
        count = jax.local_device_count()
        if self.num_devices is not None and self.num_devices > count:
            raise ValueError(f'num_devices={self.num_devices}: there are {count} here')


class Interrupted(Exception):
    """The signal `signal_number` ended the run; the states of running lanes are saved."""

    def __init__(self, signal_number: int) -> None:
        self.signal_number = signal_number
        name = signal.Signals(signal_number).name
        super().__init__(f'{name}: the running lanes are saved; the same command continues them')


class Session:
    """Runs cells of one sweep into directories, on the local devices."""

    def __init__(
        self,
        sweep: Sweep,
        options: Options,
        stop: Stop,
        progress: Progress,
        made: Mapping[str, Mapping[str, Any]],
        until_none_learns: bool = False,
    ) -> None:
        self.sweep = sweep
        self.until_none_learns = until_none_learns  # whether a tuned sweep ends where no lane learns
        self.progress = progress
        self._options, self._stop = options, stop
        self._probes = outputs.probes_of(sweep)
        self._made = made  # what probes make, by cell and name
        self.stage = ''  # the stage of the work, to be shown
        self.workers = [worker.Worker(device) for device in jax.local_devices()[: options.num_devices]]
        # The device that works only for this sweep, and the shared ones, which help any sweep of this call.
        self.own, self.shared = 0, set(range(len(self.workers)))
        self._records: dict[str, dict[str, Any]] = {}  # records of provenance, by directory

    def open(
        self,
        workdir: Any,
        cells: Sequence[Cell],
        planned: Sequence[Cell] = (),
        has_probes: bool = False,
        is_alone: bool = False,
    ) -> Any:
        """A results directory in which the sweep and its plan are recorded; it is made if it does not exist."""
        workdir = results.open_workdir(workdir)
        record = provenance.start(sys.argv)
        stale.check(workdir, cells, record, self._options.refresh)
        if self.sweep.save_params:
            kept.check(workdir, cells, self.sweep.tune.names if self.sweep.tune else (), record, self._options.refresh)
        if has_probes:
            refresh = self._options.refresh
            probing.complete(workdir, cells, self._probes, made=self._made, record=record, refresh=refresh)
        with contextlib.nullcontext() if is_alone else claims.locked(workdir, 'config'):
            sweep = self.sweep.as_json()
            known = results.read_config(workdir) if (workdir / 'config.json').exists() else []
            results.check_tuned_alike(workdir, known, sweep)
            results.add_sweep(workdir, sweep)
            if self.sweep.tune:
                monitor.drop_unstarted(workdir, cells)
            monitor.add_plan(workdir, planned)
            monitor.remove_dead(workdir)
        self._records[str(workdir)] = record
        return workdir

    def run(
        self,
        workdir: Any,
        cells: Sequence[Cell],
        size_of: Callable[[Cell], int] | None = None,
        extra_columns: Mapping[str, Any] | None = None,
    ) -> list[str]:
        """Runs the lanes of some cells that have no rows yet."""
        if not locks.has_locks(workdir):  # So that a cell's table has one writer.
            cells = lane_batches.share(cells, jax.process_index(), jax.process_count())
        batches = lane_batches.cut(cells, size_of or self.size_of)
        if size_of is None and locks.has_locks(workdir):
            batches = batches[jax.process_index() :: jax.process_count()]
        else:
            # The next step needs all lanes of this one, so every process waits for those of the others.
            with claims.locked(workdir, 'config'):
                monitor.add_plan(workdir, cells)
        left = {cell_id: set(lanes) for cell_id, lanes in claims.missing_of(workdir, cells).items()}
        batches = [batch for batch in batches if not left[batch.cell.id].isdisjoint(batch.lanes)]
        self.progress.expect(sum(len(left[batch.cell.id].intersection(batch.lanes)) for batch in batches))
        own = claims.Claims(workdir, batches, self._stop, self.progress.say)
        job = self.job(workdir, own, size_of or self.size_of, extra_columns=dict(extra_columns or {}))
        helpers = _taken(self.shared)
        calls = [functools.partial(self.workers[i].work, job) for i in sorted({self.own, *helpers})]
        try:
            failed = side_by_side(calls, self._stop, len(calls))
        finally:
            self.shared |= helpers
        if self._stop.signal_number is not None:
            raise Interrupted(self._stop.signal_number)
        if self._stop.is_set():  # another sweep of this call failed, and raises its error
            raise worker.Stopped
        return failed

    def size_of(self, cell: Cell) -> int:
        """The number of lanes in a batch of a cell."""
        return self.size_for(cell, len(cell.lanes))

    @property
    def platform(self) -> str:
        """The platform of the devices that run the lanes."""
        return jax.local_devices()[0].platform

    def size_for(self, cell: Cell, num_lanes: int) -> int:
        """The number of lanes in a batch of a cell that has `num_lanes` lanes."""
        default = lane_batches.default_size(cell.problem.module, num_lanes, self.platform)
        return self.sweep.lanes_per_batch or default

    def job(self, workdir: Any, own: Any, size_of: Callable[[Cell], int], **more: Any) -> worker.Job:
        """What the workers of this session share when they run lane batches into a directory."""
        return worker.Job(
            workdir=workdir,
            claims=own,
            size_of=size_of,
            probes=self._probes,
            made={cell_id: probing.text(made) for cell_id, made in self._made.items()},
            save_params=self.sweep.save_params,
            memory_limit=self._options.memory_limit,
            checkpoint_seconds=self._options.checkpoint_seconds,
            stop=self._stop,
            record=self._records[str(workdir)],
            progress=self.progress,
            stage=self.stage,
            **more,
        )


def _taken(shared: set[int]) -> set[int]:
    """Takes all devices out of a set, so that no other sweep uses them at the same time."""
    taken = set()
    with contextlib.suppress(KeyError):
        while True:
            taken.add(shared.pop())
    return taken


def side_by_side(calls: Sequence[Callable[[], list[str]]], stop: Stop, at_once: int) -> list[str]:
    """What some calls return together, each in a thread; the first exception stops the others and is raised."""
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        futures = [pool.submit(call) for call in calls]
        pending, is_over = set(futures), False
        try:
            while pending and not is_over:  # short waits, so that the main thread can handle signals
                done, pending = concurrent.futures.wait(pending, 0.2, concurrent.futures.FIRST_EXCEPTION)
                is_over = any(future.exception() for future in done)
        finally:
            if pending:
                stop.set()
    errors = [future.exception() for future in futures]
    for error in sorted(filter(None, errors), key=lambda error: isinstance(error, worker.Stopped)):
        raise error
    return sorted({name for future in futures for name in future.result()})


def tidy(workdir: Any, is_tuned: bool) -> None:
    """Removes what killed workers left behind in cells that are now complete, those of selection too."""
    for folder in (workdir, *([workdir / results.SELECTION] if is_tuned else [])):
        results.make_compact(folder)
        # A file may stand in the place of a folder; it counts as an empty folder.
        if any(any((folder / kind).glob('*')) for kind in ('checkpoints', 'errors')):
            status = monitor.status(folder)
            for cell_id in status.loc[status['state'] == 'done', 'cell']:
                claims.remove_checkpoints(folder, cell_id)
                monitor.clear_error(folder, cell_id)
        monitor.remove_dead(folder)
