"""One device's thread: claims units of work, trains them, writes their tables."""

import sys
import time
import traceback

import numpy as np
import pandas as pd
from absl import logging

from qstr_jax import learners, tasks
from qstr_jax.learners import problem as outcomes
from qstr_jax.storage import checkpoint, files, provenance, results
from qstr_jax.sweeps import claims, lane_batch, monitor, params, rows


class Stopped(Exception):
    """Raised inside a worker between two calls of `advance`."""


class Worker:
    """One device's thread: claims units, trains them, writes their tables."""

    def __init__(self, device, workdir, plan, probe_functions, sweep, size_of, options, stop, record, bar):
        self.failed = []
        self._device, self._workdir, self._plan = device, workdir, plan
        self._probes, self._sweep, self._size_of = probe_functions, sweep, size_of
        self._options, self._stop, self._record, self._bar = options, stop, record, bar
        self._programs = None, None  # cell id, Programs: units of a cell come one after the other
        self._heartbeat = monitor.Heartbeat(workdir, record['id'], device.id)

    def work(self):
        """Runs units until none is left or the sweep is stopped."""
        try:
            while True:
                with self._plan.claim() as claimed:
                    if claimed is None:
                        return
                    self._run_unit(*claimed)
        except Stopped:
            return
        finally:
            self._heartbeat.end()

    def _run_unit(self, unit, missing):
        try:
            programs, compile_seconds = self._compiled(unit.cell)
            # As many as fit together: all of the unit, but where memory is short.
            for i in range(0, len(unit.lanes), programs.size):
                part = unit.lanes[i : i + programs.size]
                lanes = tuple(lane for lane in part if lane in missing)
                if lanes:
                    self._run_lanes(unit, f'{unit.name}-{i}', programs, lanes, compile_seconds)
                    compile_seconds = 0.0
            monitor.clear_error(self._workdir, unit.cell.id)
        except (Stopped, results.ResultsError, tasks.DrawError):
            raise
        except Exception as error:  # one cell's failure (memory, a user's model) must not lose the others
            logging.error('%s failed: %s', unit.name, error)
            monitor.write_error(self._workdir, unit.cell.id, traceback.format_exc())
            self.failed.append(unit.cell.id)

    def _compiled(self, cell):
        if self._stop.is_set():
            raise Stopped
        if self._programs[0] == cell.id:
            return self._programs[1], 0.0
        self._heartbeat.beat({'cell': cell.id, 'state': 'compiling'})
        size = self._size_of(cell)
        limit = self._options.memory_limit
        self._programs = cell.id, lane_batch.fitting_programs(cell.problem, size, self._device, limit)
        return self._programs[1], self._programs[1].compile_seconds

    def _run_lanes(self, unit, name, programs, lanes, compile_seconds):
        cell = unit.cell
        folder = self._workdir / 'checkpoints' / f'{name}-{files.digest(lanes, programs.size)}'
        saved = checkpoint.load(folder, lane_batch.abstract_state(cell.problem, programs.size))
        start = time.perf_counter()
        watch = self._watch(cell, lanes, folder)
        try:
            data_K, state_K = lane_batch.train(programs, cell.problem, lanes, saved, watch)
        except Stopped:
            seconds = time.perf_counter() - start
            provenance.add_batch(self._workdir, self._record, cell.id, lanes, seconds, compile_seconds, stopped=True)
            raise
        seconds = time.perf_counter() - start
        table = rows.rows(cell, lanes, data_K, state_K, self._probes)
        with claims.locked(self._workdir, f'{cell.id}-tables'):
            if self._sweep.save_params:
                params.save(self._workdir, cell, lanes, state_K)
            results.add(self._workdir, cell.id, table, rows.curves(cell, lanes, state_K))
        checkpoint.remove(folder)
        provenance.add_batch(self._workdir, self._record, cell.id, lanes, seconds, compile_seconds)
        if not self._bar.disable:
            self._bar.write(_summary(cell, table, seconds, compile_seconds), file=sys.stderr)

    def _watch(self, cell, lanes, folder):
        """What happens between two calls of `advance`: bar, heartbeat, checkpoint, stop."""
        finished, last_save = 0, time.monotonic()

        def watch(state_K):
            nonlocal finished, last_save
            running = int(np.sum(np.asarray(state_K.outcome)[: len(lanes)] == outcomes.RUNNING))
            report = {'lanes_running': running, **learners.of(cell.problem).progress(state_K, cell.problem)}
            self._heartbeat.beat({'cell': cell.id, 'state': 'running', 'lanes': len(lanes), **report})
            self._bar.set_description_str(cell.id.rsplit('-', 1)[0], refresh=False)
            self._bar.set_postfix_str(_postfix(report), refresh=False)
            self._bar.update(len(lanes) - running - finished)
            self._bar.refresh()
            finished = len(lanes) - running
            is_time = time.monotonic() - last_save >= self._options.checkpoint_seconds
            if running and (is_time or self._stop.is_set()):
                checkpoint.save(folder, state_K)
                last_save = time.monotonic()
            if running and self._stop.is_set():
                raise Stopped

        return watch


def _postfix(report):
    return (
        f'{report["lanes_running"]} running, {report["samples"] / 1e3:.1f}k samples, '
        f'train loss {report["train_loss"]:.3f}'
    )


def _summary(cell, table, seconds, compile_seconds):
    """A finished batch in a line."""
    outcomes = ', '.join(f'{count} {name}' for name, count in table['outcome'].value_counts().items())
    samples = table['samples_to_threshold'].mean()
    mean = '' if pd.isna(samples) else f', mean {samples / 1e3:.1f}k samples'
    compiling = f' + {compile_seconds:.1f} s to compile' if compile_seconds else ''
    return f'{cell.id}: {outcomes}{mean} ({seconds:.1f} s{compiling})'
