"""What a results directory says about its sweeps: plan, heartbeats, errors, and the status they add up to.

plan.json                 columns and lanes of each cell that was ever asked for
progress/RUN-DEVICE.json  what a device is doing; removed when it is done
errors/CELL.json          the last error of a cell; removed at the end of a call, once the cell has all its lanes
"""

import collections
import contextlib
import datetime
import functools
import os
import socket
import time
import traceback
import warnings
from collections.abc import Collection, Sequence
from typing import Any

import pandas as pd
from etils import epath

from qstr_jax import columns, failures, progress
from qstr_jax.storage import cell_columns, files, lane_keys, merge, names, records, results
from qstr_jax.sweeps.cells import Cell

# A device writes its heartbeat at most this often.
BEAT_SECONDS = 2.0
# Seconds of silence after which a worker whose process we cannot see, on another `files.machine`, counts as gone.
SILENT_SECONDS = 300.0

OUTCOMES = ('reached', 'fitted', 'censored', 'outraced', 'diverged')
COLUMNS = ('cell', 'lanes', *OUTCOMES, 'left', 'state', 'seconds', 'finished', 'note')


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec='seconds')


def add_plan(workdir: Any, cells: Sequence[Cell]) -> None:
    """Adds the lanes of some cells to the plan; the caller holds the directory's lock."""
    path, known = workdir / 'plan.json', records.read_plan(workdir)
    plan, names_of = dict(known), functools.cache(lambda fields, lanes: list(map(lane_keys.name_of, lanes)))
    for cell in cells:  # Most have the same lanes.
        entry = {'columns': dict(cell.columns), 'lanes': names_of(cell.lanes[0]._fields, cell.lanes)}
        plan[cell.id] = merge.joined(plan.get(cell.id), entry)
    if plan != known or not path.exists():
        files.write_json(path, plan)


def drop_unstarted(workdir: Any, cells: Sequence[Cell]) -> None:
    """Removes some cells from the plan if they have no rows: the next call may ask for them at other tuned values.

    The caller holds the directory's lock.
    """
    known = records.read_plan(workdir)
    left = {cell.id for cell in cells if not results.cell_path(workdir, 'rows', cell.id).exists()}
    if not left.isdisjoint(known):
        files.write_json(workdir / 'plan.json', {name: entry for name, entry in known.items() if name not in left})


class Heartbeat:
    """What one device is doing, written to a file at most every `BEAT_SECONDS`, and when it takes another batch."""

    def __init__(self, workdir: Any, run_id: str, device_id: int) -> None:
        self._path = names.inside(workdir, 'progress', f'{run_id}-{device_id}.json')
        self._last, self._work = 0.0, ('', '')

    def beat(self, report: dict[str, Any]) -> None:
        """Writes what is going on, unless the last report is recent and of the same work."""
        work = report['cell'], report.get('batch', '')
        if work == self._work and time.monotonic() - self._last < BEAT_SECONDS:
            return
        self._last, self._work = time.monotonic(), work
        who = {'host': socket.gethostname(), 'machine': files.machine(), 'pid': os.getpid(), 'time': _now()}
        files.write_json(self._path, {**who, **report})

    def end(self) -> None:
        """Removes the file: the device is done."""
        with contextlib.suppress(OSError):  # the directory is gone; the error that ended the run was reported
            self._path.unlink(missing_ok=True)


def write_error(workdir: Any, cell_id: str, error: Exception) -> None:
    """Records the last error of a cell."""
    text = ''.join(traceback.format_exception(error))
    report = {'cell': cell_id, 'time': _now(), 'error': failures.reason(error), 'traceback': text}
    files.write_json(names.inside(workdir, 'errors', f'{cell_id}.json'), report)


def clear_error(workdir: Any, cell_id: str) -> None:
    """Removes the error of a cell that has succeeded."""
    with contextlib.suppress(OSError):  # no such file, or the directory is gone, which is reported elsewhere
        names.inside(workdir, 'errors', f'{cell_id}.json').unlink()


def remove_dead(workdir: Any) -> None:
    """Removes the heartbeats of workers that are gone."""
    for path, beat in records.read_all(workdir / 'progress', 'heartbeat').items():
        if not _is_alive(beat):
            path.unlink(missing_ok=True)


def _is_alive(beat: dict[str, Any]) -> bool:
    if beat.get('machine') == files.machine():
        return files.is_running(int(beat['pid']))
    return _silence(beat) < SILENT_SECONDS


def _silence(beat: dict[str, Any]) -> float:
    """Seconds since a heartbeat was written; clocks of two machines may differ."""
    age = datetime.datetime.now(datetime.UTC) - datetime.datetime.fromisoformat(beat['time'])
    return max(0.0, age.total_seconds())


def silent_holders(workdir: Any, batches: Collection[str], seconds: float) -> dict[str, str]:
    """Who holds each of some lane batches, in words, by the batch's name; not those heard of in the last `seconds`."""
    found = {name: 'a process without a heartbeat' for name in batches}
    beats = records.read_all(workdir / 'progress', 'heartbeat').values()
    # The newest last, so that it wins: older heartbeats of a batch are left over from workers that died.
    for beat in sorted(beats, key=_silence, reverse=True):
        if (name := beat.get('batch')) in found:
            does = 'compiling' if beat.get('state') == 'compiling' else 'silent'
            found[name] = f'{beat["host"]} pid {beat["pid"]}, {does} for {progress.duration(_silence(beat))}'
            if _silence(beat) < seconds:
                del found[name]
    return found


def status(workdir: Any) -> pd.DataFrame:
    """State of every planned cell, one row per cell."""
    workdir = epath.Path(workdir)
    if not (workdir / 'plan.json').exists():
        has_rows = (workdir / 'config.json').exists()
        why = 'has no plan, since no sweep ran in it' if has_rows else 'is not a results directory: no plan.json in it'
        raise results.ResultsError(f'{str(workdir)!r} {why}')
    if (workdir / 'config.json').exists():
        try:
            results.read_config(workdir)
        except results.FormatError:
            raise
        except results.ResultsError as error:  # the plan says enough
            warnings.warn(f'left out: {error}', stacklevel=2)
    plan = records.read_plan(workdir)
    reports = records.read_all(workdir / 'progress', 'heartbeat').values()
    # Running workers last, so that they win: another worker may have taken over a cell.
    beats = {beat['cell']: beat for beat in sorted(reports, key=_is_alive)}
    errors = {error['cell']: error for error in records.read_all(workdir / 'errors', 'error').values()}
    runs = records.read_all(workdir / 'provenance', 'run').values()
    seconds: collections.Counter[str] = collections.Counter()
    for entry in (entry for run in runs for entry in run['batches']):
        seconds[entry['cell']] += entry['wall_seconds'] + entry['compile_seconds']
    known: dict[str, Any] = {'beats': beats, 'errors': errors, 'seconds': seconds}
    cells = [_cell_status(workdir, cell_id, plan[cell_id]['lanes'], **known) for cell_id in plan]
    frame = pd.DataFrame(cells, columns=COLUMNS)
    pace = frame['seconds'] / frame['finished'].where(frame['finished'] > 0)
    model = frame['cell'].map(lambda cell_id: plan[cell_id]['columns'].get('model'))
    model_pace = pace.groupby(model).transform('mean')
    frame['expected_seconds'] = (frame['left'] * pace.fillna(model_pace)).where(frame['left'] > 0, 0.0)
    return frame.drop(columns='finished')


def _finished(workdir: Any, cell_id: str, planned: Sequence[str]) -> tuple[dict[str, int], int, str]:
    """How many of a cell's lanes ended in which way, how many planned ones have no row, and what is wrong."""
    try:
        found = cell_columns.columns_of(workdir, cell_id)
    except results.ResultsError as error:
        return {}, len(planned), str(error)
    if not found:
        has_curves = results.cell_path(workdir, 'curves', cell_id).exists()
        return {}, len(planned), 'its rows were deleted or never written, its curves remain' if has_curves else ''
    lanes = columns.with_role(found, 'lane')
    known = {
        lane_keys.name_of(dict(zip(lanes, lane, strict=True)))
        for lane in zip(*(found[name] for name in lanes), strict=True)
    }
    return collections.Counter(found['outcome']), len(set(planned) - known), ''


def _cell_status(
    workdir: Any, cell_id: str, planned: Sequence[str], *, beats: dict, errors: dict, seconds: collections.Counter
) -> dict[str, Any]:
    """One row of `status`."""
    counts, left, note = _finished(workdir, cell_id, planned)
    finished = sum(counts.values())
    state = 'left' if left else 'done'
    if state == 'left' and cell_id in errors:
        state, note = 'failed', errors[cell_id]['error']
    if state != 'done' and cell_id in beats:
        beat = beats[cell_id]
        state = 'running' if _is_alive(beat) else 'stopped'
        note = f'{beat.get("samples", 0) / 1e3:.1f}k samples, train loss {beat.get("train_loss", float("nan")):.3f}'
        note = 'compiling' if beat.get('state') == 'compiling' else note
        note = f'{note}, heard of {progress.duration(_silence(beat))} ago'
    counts['censored'] = counts.get('censored', 0) + counts.pop('censored_below', 0)
    return {
        'cell': cell_id,
        'lanes': finished + left,
        **{name: counts.get(name, 0) for name in OUTCOMES},
        'left': left,
        'state': state,
        'seconds': seconds[cell_id],
        'finished': finished,
        'note': note,
    }
