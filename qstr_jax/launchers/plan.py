"""Which lane batches are to be run: found by a process with JAX, and told over a pipe to a driver that has none.

It checks all settings, makes the results directory and writes the sweep and its plan into it. A sweep has all its
batches told at once. A tuned one searches as it does everywhere (`sweeps.tuned`), except that the driver runs the
lanes of each step; the searches of different models and learners go on side by side.
"""

import functools
import os
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection
from typing import Any

from qstr_jax import progress, signals
from qstr_jax.cli import command_line, runtime, sample_complexity
from qstr_jax.launchers.batch_queue import Batch
from qstr_jax.storage import cell_tables, files, results
from qstr_jax.sweeps import claims, lane_batches, monitor, outputs, runner, session, tuned
from qstr_jax.sweeps.cells import Cell


class _Driver:
    """The driver, at the other end of a pipe."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe, self._mutex = pipe, threading.Lock()
        self._waiting: dict[str, queue.SimpleQueue] = {}  # by name of a batch
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        """Hands on how batches have ended, until the driver is gone."""
        try:
            while True:
                name, is_good = self._pipe.recv()
                self._waiting.pop(name).put((name, is_good))
        except (EOFError, ConnectionResetError):  # ConnectionResetError if it left a message unread
            os._exit(1)

    def tell(self, message: Any) -> None:
        """Sends a message."""
        with self._mutex:
            self._pipe.send(message)

    def run(self, batches: Sequence[Batch]) -> list[str]:
        """Has batches run to their ends; returns the cells of those that failed."""
        if not batches:
            return []
        ends: queue.SimpleQueue = queue.SimpleQueue()
        self._waiting |= {batch.name: ends for batch in batches}
        self.tell(batches)
        is_good = dict(ends.get() for _ in batches)
        return sorted({batch.cell for batch in batches if not is_good[batch.name]})


class _Session(session.Session):
    """A session whose lanes are run by a driver, on devices of a platform that need not be here."""

    def __init__(self, driver: _Driver, platform: str, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._driver, self._platform, self._mutex = driver, platform, threading.Lock()

    def open(self, *arguments: Any, **more: Any) -> Any:
        """As every session does, but no other process writes there."""
        with self._mutex:
            return super().open(*arguments, **{**more, 'is_alone': True})

    @property
    def platform(self) -> str:
        """The platform of the driver's devices."""
        return self._platform

    def run(
        self,
        workdir: Any,
        cells: Sequence[Cell],
        size_of: Callable[[Cell], int] | None = None,
        extra_columns: Mapping[str, Any] | None = None,
    ) -> list[str]:
        """Makes the driver run those lanes of some cells that have no rows yet."""
        left = {cell_id: set(lanes) for cell_id, lanes in claims.missing_of(workdir, cells).items()}
        if size_of is not None:  # A step of a search, which was not planned.
            with self._mutex:
                monitor.add_plan(workdir, cells)
        for cell in cells:
            if left[cell.id]:
                _fill(workdir, cell)
        size_of = size_of or self.size_of
        return self._driver.run(
            [
                Batch(
                    cell=batch.cell.id,
                    number=batch.number,
                    name=batch.name,
                    lanes=tuple(missing),
                    work=lane_batches.work(batch.cell) * len(missing),
                    values=tuple(map(tuple, batch.lanes)),
                    size=size_of(batch.cell),
                    folder=results.SELECTION if workdir.name == results.SELECTION else '',
                    columns=tuple((extra_columns or {}).items()),
                )
                for batch in lane_batches.cut(cells, size_of)
                if (missing := [i for i, lane in enumerate(batch.lanes) if lane in left[batch.cell.id]])
            ]
        )


def _run(driver: _Driver, platform: str) -> None:
    """Makes the driver run the sweep of --config, then draws it; a dry run only prints the listing."""
    found = sample_complexity.prepared()
    if found is None:
        return
    sweep, cells = found
    options, hidden = runtime.options(), progress.Progress('lane', False)
    made = outputs.check_new(sweep, cells, runtime.workdir())
    one = _Session(driver, platform, sweep, options, signals.Stop(), hidden, made)
    workdir, mine, there = runner.opened(one, runtime.workdir(), options, cells)
    num_lanes, is_tuned = tuned.num_reported(sweep, mine), sweep.tune is not None
    about = {'workdir': os.fspath(workdir), 'lanes': num_lanes, 'left': num_lanes - there, 'is_tuned': is_tuned}
    driver.tell(about)
    failed = _run_tuned(one, workdir, mine) if is_tuned else one.run(workdir, mine)
    driver.tell(None)
    session.tidy(workdir, is_tuned)  # A driver that was killed may have left checkpoints of done cells.
    if not failed:
        sample_complexity.draw(runtime.workdir(), sample_complexity.CONFIG.value)


def _run_tuned(one: session.Session, workdir: Any, cells: Sequence[Cell]) -> list[str]:
    """Runs the searches of all models and learners at once; returns the cells that failed."""
    ends: queue.SimpleQueue = queue.SimpleQueue()

    def search(chain: Sequence[Cell]) -> None:
        try:
            ends.put(tuned.run(one, workdir, chain))
        except Exception as error:  # handed to the thread that waits
            ends.put(error)

    chains = tuned.chains(cells)
    for chain in chains:
        threading.Thread(target=search, args=(chain,), daemon=True).start()
    failed: list[str] = []
    for _ in chains:
        if isinstance(end := ends.get(), Exception):
            raise end
        failed += end
    return failed


def _fill(workdir: os.PathLike, cell: Cell) -> None:
    """Adds settings that are newer than a cell's file to that file, since the driver does not know them."""
    path = results.cell_path(workdir, 'rows', cell.id)
    if path.exists():
        rows = cell_tables.read_rows(path, cell.lanes[0]._fields)
        if set(rows.columns) != set(files.read_table(path).columns):
            files.write_table(path, rows, cell.id)


def main(pipe: Connection, platform: str) -> None:
    """Plans for a driver whose workers have devices of `platform`; the command line is in `sys.argv`."""
    command_line.launch(functools.partial(_run, _Driver(pipe), platform))
