"""Runs a sweep: lane batches on all local devices, results on disk after every batch.

Whatever ends a run (a signal, a kill, a full disk), the same call continues it, and the rows are bit for bit the same.
"""

import concurrent.futures
import contextlib
import dataclasses
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import pandas as pd
from tqdm import auto as tqdm

from qstr_jax import checks
from qstr_jax.storage import provenance, results
from qstr_jax.sweeps import cells, claims, lane_batches, lanes_per_batch, monitor, outputs, worker
from qstr_jax.sweeps.sweep import Sweep


class Interrupted(Exception):
    """A signal ended the run; the states of running lanes are saved.

    Args:
        signal_number: number of the signal, kept as an attribute.
    """

    def __init__(self, signal_number: int) -> None:
        self.signal_number = signal_number
        name = signal.Signals(signal_number).name
        super().__init__(f'{name}: the running lanes are saved; the same command continues them')


class SweepError(Exception):
    """Some cells could not be run; the others are complete."""


@dataclasses.dataclass(frozen=True)
class Options:
    """How a sweep is run; nothing here changes a row.

    Attributes:
        progress: whether to show a progress bar on standard error.
        checkpoint_seconds: time between two checkpoints of a running lane batch.
        memory_limit: bytes that a lane batch may use; None measures what the device has.
        shard_index: number of the share of the cells to run, from 0.
        num_shards: number of shares.
        num_devices: number of local devices to use; None uses all.

    Raises:
        ValueError: a value is impossible.
    """

    progress: bool = True
    checkpoint_seconds: float = 60.0
    memory_limit: int | None = None
    shard_index: int = 0
    num_shards: int = 1
    num_devices: int | None = None

    def __post_init__(self) -> None:
        checks.number('checkpoint_seconds', self.checkpoint_seconds, 0)
        if self.memory_limit is not None and (not isinstance(self.memory_limit, int) or self.memory_limit < 1):
            raise ValueError(f'memory_limit={self.memory_limit!r}: must be bytes, at least 1; None measures them')
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


def run(sweep: Sweep, workdir: Any, options: Options | None = None) -> pd.DataFrame:
    """Runs the lanes of a sweep that have no rows yet, and returns all rows of the directory.

    A sweep with more seeds, lengths or models adds rows to those of the directory. Several processes may call this on
    one directory at the same time; each returns when all cells of its own share are done.

    Args:
        sweep: the points to run.
        workdir: the results directory; it is made if it does not exist.
        options: how to run it; None uses the defaults.

    Returns:
        The rows, as `results.load` returns them.

    Raises:
        ValueError: a setting is impossible; nothing has been run then.
        results.ResultsError: the directory cannot be used, or a file in it is damaged.
        Interrupted: SIGTERM or SIGINT; the states of running lanes are saved.
        SweepError: some cells failed; the others are complete.
    """
    options = options or Options()
    options.check_devices()
    all_cells = cells.cells_of(sweep)
    probe_functions = outputs.probes_of(sweep)
    outputs.check(all_cells, probe_functions)
    mine = lane_batches.share(all_cells, options.shard_index, options.num_shards)
    workdir = _opened(workdir, sweep, all_cells)
    failed = _run_cells(workdir, mine, sweep, options, tuple(probe_functions.values()))
    if failed:
        raise SweepError(f'{len(failed)} cells failed ({", ".join(failed)}): see {workdir / "errors"}')
    _tidy(workdir)
    return results.load(workdir)


def _opened(workdir: Any, sweep: Sweep, all_cells: Sequence[cells.Cell]) -> Any:
    """The results directory, in which the sweep is recorded."""
    workdir = results.open_workdir(workdir)
    with claims.locked(workdir, 'config'):
        results.add_sweep(workdir, sweep.as_json())
        monitor.add_plan(workdir, all_cells)
        monitor.remove_dead(workdir)
    return workdir


def _run_cells(
    workdir: Any, mine: Sequence[cells.Cell], sweep: Sweep, options: Options, probe_functions: tuple
) -> list[str]:
    """Runs this process's share on its devices; returns the ids of the cells that failed."""
    devices = jax.local_devices()[: options.num_devices]

    def size_of(cell: cells.Cell) -> int:
        default = lanes_per_batch.default_size(cell.problem.module, len(cell.lanes), devices[0].platform)
        return sweep.lanes_per_batch or default

    batches = lane_batches.cut(mine, size_of)[jax.process_index() :: jax.process_count()]
    left = sum(len(claims.missing(workdir, batch)) for batch in batches)
    with _stopping() as stop, tqdm.tqdm(total=left, unit='lane', disable=not options.progress) as bar:
        job = worker.Job(
            workdir=workdir,
            claims=claims.Claims(workdir, batches, stop),
            size_of=size_of,
            probes=probe_functions,
            save_params=sweep.save_params,
            memory_limit=options.memory_limit,
            checkpoint_seconds=options.checkpoint_seconds,
            stop=stop,
            record=provenance.start(sys.argv),
            bar=bar,
        )
        workers = [worker.Worker(device, job) for device in devices]
        _run_threads(workers, stop)
        if stop.signal_number is not None:
            raise Interrupted(stop.signal_number)
    return sorted({name for one in workers for name in one.failed})


def _tidy(workdir: Any) -> None:
    """Removes what killed workers left behind in cells that are now complete."""
    status = monitor.status(workdir)
    for cell_id in status.loc[status['state'] == 'done', 'cell']:
        claims.remove_checkpoints(workdir, cell_id)
        monitor.clear_error(workdir, cell_id)
    monitor.remove_dead(workdir)


class _Stop(threading.Event):
    """An event that knows which signal set it."""

    signal_number: int | None = None


@contextlib.contextmanager
def _stopping() -> Iterator[_Stop]:
    """Yields an event that SIGTERM and SIGINT set; a second signal ends the process in the usual way."""
    stop = _Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop  # only the main thread may handle signals
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def handle(number: int, frame: Any) -> None:
        stop.signal_number = number
        stop.set()
        restore()

    for number in before:
        signal.signal(number, handle)
    try:
        yield stop
    finally:
        restore()


def _run_threads(workers: Sequence[worker.Worker], stop: _Stop) -> None:
    """Runs all workers; the first exception stops the others and is raised."""
    with concurrent.futures.ThreadPoolExecutor(len(workers)) as pool:
        futures = [pool.submit(w.work) for w in workers]
        pending = set(futures)
        try:
            while pending:  # short waits, so that the main thread can handle signals
                done, pending = concurrent.futures.wait(pending, timeout=0.2)
                for future in done:
                    future.result()
        except BaseException:
            stop.set()
            raise
