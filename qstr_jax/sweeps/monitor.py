"""What a running sweep tells those who look at its directory: its plan, heartbeats and errors.

plan.json               lanes of each cell, of all runs so far
progress/RUN-DEVICE.json  what a device does now; gone when it is done
errors/CELL.json        the last error of a cell; gone when the cell succeeds
"""

import contextlib
import datetime
import os
import socket
import time

import pandas as pd
from etils import epath

from qstr_jax.storage import files, merge, results

BEAT_SECONDS = 2.0
# A worker on another machine that has been silent for so long counts as gone.
SILENT_SECONDS = 300.0

COLUMNS = ('cell', 'lanes', 'reached', 'fitted', 'censored', 'diverged', 'left', 'state', 'seconds', 'finished', 'note')


def _now():
    return datetime.datetime.now(datetime.UTC).isoformat(timespec='seconds')


def read_plan(workdir):
    """The directory's plan: `columns` and `lanes` (their names) of each cell; empty if there is none.

    Args:
        workdir: the results directory.
    """
    path = epath.Path(workdir) / 'plan.json'
    plan = files.read_json(path) if path.exists() else {}
    return {cell_id: entry for cell_id, entry in plan.items() if _is_entry(entry)}


def _is_entry(entry):
    return isinstance(entry, dict) and isinstance(entry.get('lanes'), list) and isinstance(entry.get('columns'), dict)


def add_plan(workdir, cells):
    """Adds the lanes of some cells to the plan; the caller holds the directory's lock.

    Args:
        workdir: the results directory.
        cells: of a sweep.
    """
    plan = read_plan(workdir)
    for cell in cells:
        entry = {'columns': dict(cell.columns), 'lanes': [results.lane_name(lane) for lane in cell.lanes]}
        plan[cell.id] = merge.joined(plan.get(cell.id), entry)
    files.write_json(workdir / 'plan.json', plan)


class Heartbeat:
    """One device's word on what it does, written at most every `BEAT_SECONDS`."""

    def __init__(self, workdir, run_id, device_id):
        self._path = workdir / 'progress' / f'{run_id}-{device_id}.json'
        self._last = 0.0

    def beat(self, report):
        """Tells what is going on, a dict that JSON can hold."""
        if time.monotonic() - self._last < BEAT_SECONDS:
            return
        self._last = time.monotonic()
        who = {'host': socket.gethostname(), 'pid': os.getpid(), 'time': _now()}
        files.write_json(self._path, {**who, **report})

    def end(self):
        """The device is done."""
        self._path.unlink(missing_ok=True)


def write_error(workdir, cell_id, text):
    """Records the last error of a cell."""
    report = {'cell': cell_id, 'time': _now(), 'error': text.strip().splitlines()[-1], 'traceback': text}
    files.write_json(workdir / 'errors' / f'{cell_id}.json', report)


def clear_error(workdir, cell_id):
    """The cell succeeded."""
    (workdir / 'errors' / f'{cell_id}.json').unlink(missing_ok=True)


def remove_dead(workdir):
    """Removes the heartbeats of workers that are gone."""
    for path, beat in _reports(workdir / 'progress', ('host', 'pid', 'time')).items():
        if not _is_alive(beat):
            path.unlink(missing_ok=True)


def _is_alive(beat):
    if beat['host'] == socket.gethostname():
        return files.is_running(beat['pid'])
    age = datetime.datetime.now(datetime.UTC) - datetime.datetime.fromisoformat(beat['time'])
    return age.total_seconds() < SILENT_SECONDS


def _reports(folder, fields):
    """JSON files of a folder by path; what vanishes, is damaged or lacks a field while we look is passed over."""
    reports = {}
    for path in sorted(folder.glob('*.json')) if folder.exists() else []:
        with contextlib.suppress(results.ResultsError):
            report = files.read_json(path)
            if all(field in report for field in fields):
                reports[path] = report
    return reports


def status(workdir):
    """State of every planned cell: a DataFrame, one row per cell.

    Columns: cell, lanes, reached, fitted, censored (above or below), diverged, left, state ('done', 'running',
    'stopped', 'failed', 'left'), seconds spent, expected_seconds (left lanes at the pace of those done, of this cell or
    else of its model; missing if none is done), note (what runs now, or the last error).

    Raises:
        results.ResultsError: not a results directory.
    """
    workdir = epath.Path(workdir)
    if not (workdir / 'plan.json').exists():
        raise results.ResultsError(f'{str(workdir)!r} is not a results directory: no plan.json in it')
    plan = read_plan(workdir)
    beats = _reports(workdir / 'progress', ('cell', 'host', 'pid', 'time')).values()
    # The living last: a cell that one worker left may be in the hands of another.
    beats = {beat['cell']: beat for beat in sorted(beats, key=_is_alive)}
    errors = {error['cell']: error for error in _reports(workdir / 'errors', ('cell', 'error')).values()}
    runs = _reports(workdir / 'provenance', ('batches',)).values()
    batches = [entry for run in runs for entry in run['batches']]
    cells = [_cell_status(workdir, cell_id, plan[cell_id]['lanes'], beats, errors, batches) for cell_id in plan]
    frame = pd.DataFrame(cells, columns=COLUMNS)
    pace = frame['seconds'] / frame['finished'].where(frame['finished'] > 0)
    models = frame['cell'].map(lambda cell_id: plan[cell_id]['columns'].get('model'))
    model_pace = pace.groupby(models).transform('mean')
    frame['expected_seconds'] = (frame['left'] * pace.fillna(model_pace)).where(frame['left'] > 0, 0.0)
    return frame.drop(columns='finished')


def _cell_status(workdir, cell_id, names, beats, errors, batches):
    counts, note, left = {}, '', len(names)
    path = results.cell_path(workdir, 'rows', cell_id)
    if path.exists():
        try:
            rows = files.read_table(path)
            counts = rows['outcome'].value_counts().to_dict()
            left = len(set(names) - {results.lane_name(row) for _, row in rows.iterrows()})
        except results.ResultsError as error:
            note = str(error)
    finished = sum(counts.values())
    state = 'left' if left else 'done'
    if state == 'left' and cell_id in errors:
        state, note = 'failed', errors[cell_id]['error']
    if state != 'done' and cell_id in beats:
        beat = beats[cell_id]
        state = 'running' if _is_alive(beat) else 'stopped'
        note = f'{beat.get("samples", 0) / 1e3:.1f}k samples, train loss {beat.get("train_loss", float("nan")):.3f}'
    seconds = sum(b['wall_seconds'] + b['compile_seconds'] for b in batches if b['cell'] == cell_id)
    counts['censored'] = counts.get('censored', 0) + counts.pop('censored_below', 0)
    outcomes = {name: counts.get(name, 0) for name in ('reached', 'fitted', 'censored', 'diverged')}
    return {
        'cell': cell_id,
        'lanes': finished + left,
        **outcomes,
        'left': left,
        'state': state,
        'seconds': seconds,
        'finished': finished,
        'note': note,
    }
