"""One device's thread: claims lane batches, trains them, writes their tables."""

import dataclasses
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from absl import logging

from qstr_jax import failures, tasks
from qstr_jax.learners.lanes import RUNNING
from qstr_jax.progress import Progress
from qstr_jax.storage import checkpoint, files, lane_keys, names, provenance, results
from qstr_jax.sweeps import claims, lane_batches, monitor, pace, probing, programs, rows, stale, training
from qstr_jax.sweeps.cells import Cell
from qstr_jax.sweeps.lane_batches import LaneBatch


class Stopped(Exception):
    """Ends a worker between two calls of `advance`."""


@dataclasses.dataclass(frozen=True)
class Job:
    """What the workers of one run share; see `session.Options` too."""

    workdir: Any
    claims: claims.Claims
    size_of: Callable[[Cell], int]  # the number of lanes in a batch of a cell
    probes: Mapping[str, Callable]  # functions of `models.probes`, by name
    made: Mapping[str, str]  # what the rows of each cell say about its probes
    save_params: bool
    memory_limit: int | None
    checkpoint_seconds: float
    stop: threading.Event
    record: dict[str, Any]  # provenance of the run
    progress: Progress
    stage: str  # of the work, such as 'point 1 of 3'; '' for none
    extra_columns: dict[str, Any]  # of the rows
    saved: Callable[[Any], None] = lambda folder: None  # called with a batch's folder after each of its checkpoints


class Worker:
    """One device's thread: claims lane batches, trains them, writes their tables."""

    def __init__(self, device: Any) -> None:
        self._device = device
        # A thread usually runs the batches of a cell one after another, so the last cell's programs are kept.
        self._cell_id: str | None = None
        self._programs: programs.Programs | None = None

    def work(self, job: Job) -> list[str]:
        """Runs lane batches until none is left or the sweep is stopped."""
        self._job, self._failed = job, list[str]()
        self._heartbeat = monitor.Heartbeat(job.workdir, job.record['id'], self._device.id)
        try:
            while True:
                with job.claims.claim() as claimed:
                    if claimed is None:
                        return self._failed
                    self._run_batch(*claimed)
        except Stopped:
            return self._failed
        finally:
            self._heartbeat.end()

    def _run_batch(self, batch: LaneBatch, missing: tuple) -> None:
        self._work = {'cell': batch.cell.id, 'batch': batch.name}  # what the heartbeat says of it
        try:
            compiled, compile_seconds = self._compiled(batch.cell)
            # The whole batch at once, or in parts if its memory would not fit.
            for i in range(0, len(batch.lanes), compiled.size):
                part = batch.lanes[i : i + compiled.size]
                lanes = tuple(lane for lane in part if lane in missing)
                if lanes:
                    name = f'{batch.name}-{i}-{files.digest(lanes, compiled.size)}'
                    self._run_lanes(batch.cell, name, lanes, compile_seconds)
                    compile_seconds = 0.0
        except (Stopped, results.ResultsError, tasks.DrawError):
            raise
        except Exception as error:  # one cell's failure (memory, a user's model) must not stop the others
            logging.error('%s failed: %s', batch.name, failures.reason(error))
            monitor.write_error(self._job.workdir, batch.cell.id, error)
            self._failed.append(batch.cell.id)

    def _compiled(self, cell: Cell) -> tuple[programs.Programs, float]:
        """The cell's programs, and the seconds that compiling them took; 0 if they were compiled before."""
        if self._job.stop.is_set():
            raise Stopped
        if self._programs is not None and self._cell_id == cell.id:
            return self._programs, 0.0
        self._heartbeat.beat({**self._work, 'state': 'compiling'})
        if text := pace.warning(cell, self._device.platform):
            logging.warning(text)
        size, limit = self._job.size_of(cell), self._job.memory_limit
        self._programs = lane_batches.fitting_programs(cell.problem, size, self._device, limit)
        self._cell_id = cell.id
        return self._programs, self._programs.compile_seconds

    def _run_lanes(self, cell: Cell, name: str, lanes: tuple, compile_seconds: float) -> None:
        """Trains some lanes of a cell, starting from their checkpoint if there is one, and writes their rows."""
        assert self._programs is not None
        job = self._job
        folder = names.inside(job.workdir, 'checkpoints', name)
        made = {
            'program': self._programs.fingerprint,
            'backend': self._programs.device.platform,
            'lanes_per_batch': self._programs.size,
        }
        stale.check_added(job.workdir, cell, made, job.record)
        identity = f'{name}: {", ".join(map(lane_keys.name_of, lanes))} of {made["program"]}'
        saved = checkpoint.load(folder, programs.abstract_state(cell.problem, self._programs.size), identity)
        start = time.perf_counter()

        def note_seconds(stopped: bool = False) -> float:
            seconds = {'wall': time.perf_counter() - start, 'compile': compile_seconds}
            provenance.add_batch(
                job.workdir, job.record, cell.id, lanes, program=made['program'], seconds=seconds, stopped=stopped
            )
            return seconds['wall']

        def save(state_K: Any) -> None:
            checkpoint.save(folder, state_K, identity)
            job.saved(folder)

        try:
            watch = self._watch(cell, lanes, save)
            data_K, state_K = training.train(self._programs, cell.problem, lanes, saved, watch)
        except Stopped:
            note_seconds(stopped=True)
            raise
        table = rows.rows(cell, lanes, data_K, state_K, tuple(job.probes.values())).assign(**made, **job.extra_columns)
        if job.probes:
            table[probing.COLUMN] = job.made[cell.id]
        seconds = note_seconds()  # Before the rows, so that each row has its record.
        with claims.locked(job.workdir, f'{cell.id}-tables'):
            stale.check_added(job.workdir, cell, made, job.record)  # another worker may have added rows meanwhile
            if job.save_params:
                left = claims.missing(job.workdir, LaneBatch(cell, lanes, 0))  # rows and parameters are of one run
                rows.save_params(job.workdir, cell, lanes, state_K, left)
            results.add(job.workdir, cell.id, table, rows.curves(cell, lanes, state_K))
        checkpoint.remove(folder)
        job.progress.say(_summary(cell, table, seconds, compile_seconds))

    def _watch(self, cell: Cell, lanes: tuple, save: Callable[[Any], None]) -> Callable[[Any], None]:
        """The function that runs between two calls of `advance`: progress bar, heartbeat, checkpoint, stop."""
        job, finished, last_save = self._job, 0, time.monotonic()

        def watch(state_K: Any) -> None:
            nonlocal finished, last_save
            running = int(np.sum(np.asarray(state_K.outcome)[: len(lanes)] == RUNNING))
            report = {'lanes_running': running, **cell.problem.learner.progress(state_K, cell.problem)}
            self._heartbeat.beat({**self._work, 'state': 'running', 'lanes': len(lanes), **report})
            detail = f'{running} running, {report["samples"] / 1e3:.1f}k samples, train loss {report["train_loss"]:.3f}'
            name = cell.id.rsplit('-', 1)[0]
            job.progress.show(f'{name}, {job.stage}' if job.stage else name, detail, len(lanes) - running - finished)
            finished = len(lanes) - running
            is_time = time.monotonic() - last_save >= job.checkpoint_seconds
            if running and (is_time or job.stop.is_set()):
                save(state_K)
                last_save = time.monotonic()
            if running and job.stop.is_set():
                raise Stopped

        return watch


def _summary(cell: Cell, table: pd.DataFrame, seconds: float, compile_seconds: float) -> str:
    """One line about a finished batch."""
    outcomes = ', '.join(f'{count} {name}' for name, count in table['outcome'].value_counts().items())
    samples = table['samples_to_threshold'].mean()
    mean = '' if pd.isna(samples) else f', mean {samples / 1e3:.1f}k samples'
    compiling = f' + {compile_seconds:.1f} s to compile' if compile_seconds else ''
    return f'{cell.id}: {outcomes}{mean} ({seconds:.1f} s{compiling})'
