"""Looking into a results directory: while it runs, when it is half-written, when it is damaged."""

import collections
import datetime
import json
import os
import re
import socket

import numpy as np
import pandas as pd
import pytest

from experiments import status as status_binary
from qstr_jax import progress, sweeps
from qstr_jax.storage import files, lane_keys, records, results
from qstr_jax.sweeps import monitor, session
from tests import helpers, small
from tests.test_files import dead_pid

CELLS = ('transformer-qstr-N2-q1-00000000', 'transformer-qstr-N4-q1-00000000', 'ffn-qstr-N2-q1-00000000')
Planned = collections.namedtuple('Planned', 'id columns lanes')  # what a plan looks at of a cell
LANES = sweeps.cells_of(small.settings(num_seeds=3))[0].lanes


@pytest.fixture
def workdir(tmp_path):
    """A directory with three planned cells of three lanes and nothing done."""
    path = results.open_workdir(tmp_path)
    add_plan(path, LANES, CELLS)
    return path


def add_plan(workdir, lanes, cells):
    """Plans lanes of cells that nobody runs."""
    planned = [Planned(id=name, columns=(('model', name.partition('-')[0]),), lanes=tuple(lanes)) for name in cells]
    monitor.add_plan(workdir, planned)


def add_rows(workdir, cell, outcomes, lanes=LANES):
    model, _, length, *_ = cell.split('-')
    settings = dict(small.cell(model, seq_lens=(int(length[1:]),)).columns)
    rows = pd.DataFrame(
        [{**settings, 'outcome': o, **lane._asdict()} for o, lane in zip(outcomes, lanes, strict=False)]
    )
    results.add(workdir, cell, rows, rows.assign(samples=640))


def add_run(workdir, name, *batches):
    """Provenance: (cell, seeds of its lanes, seconds) per batch."""
    entries = [
        {
            'cell': cell,
            'lanes': [lane_keys.name_of(LANES[seed]) for seed in seeds],
            'wall_seconds': seconds,
            'compile_seconds': 1.0,
        }
        for cell, seeds, seconds in batches
    ]
    files.write_json(workdir / 'provenance' / f'{name}.json', {'batches': entries})


def add_beat(workdir, cell, name='run-0', **changes):
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec='seconds')
    who = {'host': socket.gethostname(), 'machine': files.machine(), 'pid': os.getpid(), 'time': now}
    beat = {**who, 'cell': cell, 'samples': 6400}
    files.write_json(workdir / 'progress' / f'{name}.json', {**beat, 'train_loss': 0.5, **changes})


def states(workdir):
    return monitor.status(workdir).set_index('cell')['state'].to_dict()


def test_nothing_done(workdir):
    status = monitor.status(workdir)
    assert list(status['cell']) == list(CELLS)
    assert set(status['state']) == {'left'}
    assert list(status['left']) == [3, 3, 3]
    assert status['expected_seconds'].isna().all()


def test_counts_and_times(workdir):
    add_rows(workdir, CELLS[0], ['reached', 'censored', 'diverged'])
    add_rows(workdir, CELLS[1], ['reached'])
    add_run(workdir, 'a', (CELLS[0], [0, 1], 10.0), (CELLS[1], [0], 19.0))
    add_run(workdir, 'b', (CELLS[0], [2], 3.0))
    status = monitor.status(workdir).set_index('cell')
    done, half, left = (status.loc[cell] for cell in CELLS)
    assert (done['reached'], done['censored'], done['diverged'], done['left'], done['state']) == (1, 1, 1, 0, 'done')
    assert (done['seconds'], done['expected_seconds']) == (15.0, 0.0)
    assert (half['lanes'], half['left'], half['state']) == (3, 2, 'left')
    assert half['expected_seconds'] == 40.0  # two lanes at 20 s
    assert np.isnan(left['expected_seconds'])  # no FFN has been run yet


def test_a_cell_without_rows_is_expected_at_its_models_pace(workdir):
    add_rows(workdir, CELLS[0], ['reached'] * 3)
    add_run(workdir, 'a', (CELLS[0], [0, 1, 2], 29.0))
    status = monitor.status(workdir).set_index('cell')
    assert status.loc[CELLS[1], 'expected_seconds'] == 30.0


def test_running_stopped_failed_and_done(workdir):
    add_beat(workdir, CELLS[0])
    add_beat(workdir, CELLS[1], name='run-1', pid=dead_pid())
    monitor.write_error(workdir, CELLS[2], MemoryError('too much\n---\nFor simplicity, JAX has removed frames'))
    status = monitor.status(workdir).set_index('cell')
    assert list(status['state']) == ['running', 'stopped', 'failed']
    assert re.fullmatch(r'6\.4k samples, train loss 0\.500, heard of [0-9] s ago', status.loc[CELLS[0], 'note'])
    assert status.loc[CELLS[2], 'note'] == 'MemoryError: too much'
    for cell in CELLS:
        add_rows(workdir, cell, ['reached'] * 3)
    assert set(states(workdir).values()) == {'done'}


def test_a_worker_elsewhere_is_gone_when_it_is_silent(workdir):
    """Also in another container of this host, where its number may be that of no process here."""
    add_beat(workdir, CELLS[0], 'a', machine='elsewhere', pid=dead_pid())
    add_beat(workdir, CELLS[1], 'b', machine='elsewhere', time='2020-01-01T00:00:00+00:00')
    assert [states(workdir)[cell] for cell in CELLS] == ['running', 'stopped', 'left']
    monitor.remove_dead(workdir)
    assert [states(workdir)[cell] for cell in CELLS] == ['running', 'left', 'left']


def test_silence_is_told(workdir):
    def ago(seconds):
        return (datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=seconds)).isoformat()

    add_beat(workdir, CELLS[0], 'a', batch='one', host='gpu7', pid=17, time=ago(600))
    add_beat(workdir, CELLS[0], 'b', batch='two', host='gpu8', pid=18, time=ago(900), state='compiling')
    add_beat(workdir, CELLS[1], 'c', batch='three', time=ago(600))
    add_beat(workdir, CELLS[1], 'd', batch='three', time=ago(1))
    assert monitor.silent_holders(workdir, ['one', 'two', 'three', 'four'], 60.0) == {
        'one': 'gpu7 pid 17, silent for 10 min',
        'two': 'gpu8 pid 18, compiling for 15 min',
        'four': 'a process without a heartbeat',
    }
    add_beat(workdir, CELLS[2], 'e', time=ago(7200), state='compiling')
    assert monitor.status(workdir).set_index('cell').loc[CELLS[2], 'note'] == 'compiling, heard of 2.0 h ago'


def test_a_living_worker_counts_before_a_dead_one(workdir):
    add_beat(workdir, CELLS[0], 'a')
    add_beat(workdir, CELLS[0], 'b', pid=dead_pid())
    assert states(workdir)[CELLS[0]] == 'running'


def test_an_error_is_forgotten_when_the_cell_succeeds(workdir):
    monitor.write_error(workdir, CELLS[0], MemoryError())
    monitor.clear_error(workdir, CELLS[0])
    monitor.clear_error(workdir, CELLS[0])
    assert states(workdir)[CELLS[0]] == 'left'


def test_what_a_killed_worker_left_in_a_complete_cell_is_removed(workdir):
    add_rows(workdir, CELLS[0], ['reached'] * len(LANES))
    left = [workdir / 'checkpoints' / f'{name}-batch0of1-0-0123abcd' for name in CELLS[:2]]
    for folder in left:
        folder.mkdir()
    session.tidy(workdir, is_tuned=False)
    assert [folder.exists() for folder in left] == [False, True]


def test_other_lanes_of_a_finished_cell_are_left(workdir):
    """Another learning rate adds lanes to a cell; it is not done because as many lanes have rows."""
    add_rows(workdir, CELLS[0], ['reached'] * 3)
    more = [lane._replace(learning_rate=0.1) for lane in LANES]
    add_plan(workdir, more, CELLS[:1])
    status = monitor.status(workdir).set_index('cell').loc[CELLS[0]]
    assert (status['lanes'], status['left'], status['state']) == (6, 3, 'left')
    add_rows(workdir, CELLS[0], ['reached'] * 3, more)
    assert states(workdir)[CELLS[0]] == 'done'


def test_deleted_rows_are_said_where_their_curves_remain(workdir):
    add_rows(workdir, CELLS[0], ['reached'] * 3)
    results.cell_path(workdir, 'rows', CELLS[0]).unlink()
    status = monitor.status(workdir).set_index('cell')
    assert status['left'].tolist() == [3, 3, 3]
    assert status['note'].map(bool).to_dict() == {CELLS[0]: True, CELLS[1]: False, CELLS[2]: False}
    assert 'deleted' in status['note'][CELLS[0]]


def test_a_plan_is_added_to(workdir):
    names = [lane_keys.name_of(lane) for lane in LANES]
    add_plan(workdir, LANES[:1], ['new-qstr'])
    add_plan(workdir, LANES, ['new-qstr'])
    plan = records.read_plan(workdir)
    assert {cell: entry['lanes'] for cell, entry in plan.items()} == dict.fromkeys([*CELLS, 'new-qstr'], names)
    assert plan['new-qstr']['columns'] == {'model': 'new'}


@pytest.mark.parametrize('content', [b'', b'{"cell": ', b'[]', b'7', b'{}', b'{"cell": "x"}', b'\xff\xfe'], ids=repr)
def test_half_written_and_damaged_files_are_passed_over(workdir, content):
    for folder in 'progress', 'errors', 'provenance':
        (workdir / folder / 'damaged.json').write_bytes(content)
    damaged = results.cell_path(workdir, 'rows', CELLS[0])
    damaged.write_bytes(content)
    (workdir / 'rows' / f'.{CELLS[1]}.parquet.host-1-0123abcd.tmp').write_bytes(content)
    add_rows(workdir, CELLS[1], ['reached'] * 3)
    with pytest.warns(UserWarning, match=r'left out: .*damaged\.json is damaged') as warned:
        status = monitor.status(workdir).set_index('cell')
    assert len(warned) == 3
    assert list(status['state']) == ['left', 'done', 'left']
    assert f'{CELLS[0]}.parquet is damaged' in status.loc[CELLS[0], 'note']


def test_directories_of_a_sweep_may_be_missing(workdir):
    for folder in results.FOLDERS:
        (workdir / folder).rmdir()
    assert set(states(workdir).values()) == {'left'}


def test_a_directory_that_is_not_ours(tmp_path):
    with pytest.raises(results.ResultsError, match='is not a results directory'):
        monitor.status(tmp_path)
    results.add_sweep(results.open_workdir(tmp_path), {'models': ['ffn'], 'learners': ['outside']})
    with pytest.raises(results.ResultsError, match='has no plan'):
        monitor.status(tmp_path)


def test_a_directory_of_an_older_format_is_a_line(workdir):
    files.write_json(workdir / 'config.json', {'models': ['ffn'], 'seq_lens': [3]})
    files.write_json(workdir / 'plan.json', {CELLS[0]: ['seed0-task0-lr0.001-wd0.01']})
    with pytest.raises(results.ResultsError, match=r'has no format, this version reads 2') as error:
        monitor.status(workdir)
    assert '\n' not in str(error.value)


def test_heartbeats_are_throttled_and_end(workdir):
    heart = monitor.Heartbeat(workdir, 'run', 0)
    heart.beat({'cell': CELLS[0], 'state': 'compiling'})
    heart.beat({'cell': CELLS[1], 'state': 'running'})
    (path,) = (workdir / 'progress').iterdir()
    assert json.loads(path.read_text())['cell'] == CELLS[1]  # another cell is told at once
    heart.beat({'cell': CELLS[1], 'state': 'running', 'samples': 7})
    assert 'samples' not in json.loads(path.read_text())
    assert states(workdir)[CELLS[1]] == 'running'
    heart.end()
    heart.end()
    assert set(states(workdir).values()) == {'left'}


def test_the_text_has_a_line_per_cell_and_a_sum(workdir):
    add_rows(workdir, CELLS[0], ['reached'] * 3)
    add_run(workdir, 'a', (CELLS[0], [0, 1, 2], 299.0))
    add_beat(workdir, CELLS[1])
    lines = status_binary.describe(monitor.status(workdir)).splitlines()
    assert len(lines) == 5
    assert lines[1].split() == [CELLS[0], 'done', '3', '3', '0', '0', '0', '0', '0', '5', 'min', '0', 's']
    assert '6.4k samples' in lines[2]
    assert lines[4] == '3 cells: 1 done, 1 running, 1 left; 5 min spent, ? to go on one device'


def test_what_is_still_being_chosen_is_shown_too(workdir, capsys):
    results.open_workdir(workdir / results.SELECTION)
    files.write_json(workdir / results.SELECTION / 'plan.json', records.read_plan(workdir))
    with helpers.flag_values(workdir=[str(workdir)]):
        status_binary.run()
    text = capsys.readouterr().out
    assert 'what a point needs is planned once they are chosen' in text
    assert text.count('3 cells: 3 left') == 2


@pytest.mark.parametrize(
    ('seconds', 'words'), [(float('nan'), '?'), (12.3, '12 s'), (99.0, '99 s'), (200.0, '3 min'), (9000.0, '2.5 h')]
)
def test_durations(seconds, words):
    assert progress.duration(seconds) == words


def test_a_plan_that_says_the_same_is_not_written_again(workdir):
    path = workdir / 'plan.json'
    before = os.stat(path).st_mtime_ns
    add_plan(workdir, LANES, CELLS)
    assert os.stat(path).st_mtime_ns == before
    add_plan(workdir, LANES, [*CELLS, 'new-qstr'])
    assert os.stat(path).st_mtime_ns > before
