"""Tables of a sweep: adding, loading, merging."""

import pathlib
import shutil
import warnings

import numpy as np
import pandas as pd
import pytest

from qstr_jax import sweeps
from qstr_jax.storage import files, lane_keys, merge, results
from qstr_jax.sweeps import monitor
from tests import small

CELL = 'ffn-qstr-N3-q1-00000000'
LANES = [small.lane(seed, 0, 1e-3, 0.01) for seed in range(4)]


def rows_of(lanes, **changes):
    """One row per lane; the second lane is censored."""
    frame = pd.DataFrame([{'model': 'ffn', **lane._asdict()} for lane in lanes])
    samples = [None if lane.seed == 1 else 640 + lane.seed for lane in lanes]
    outcome = ['censored' if lane.seed == 1 else 'reached' for lane in lanes]
    losses = np.float32(0.5) + np.array([lane.seed for lane in lanes], np.float32)
    return frame.assign(
        outcome=outcome,
        samples_to_threshold=pd.array(samples, 'Int64'),
        test_loss=losses,
        radius=None,
        backend='cpu',
        lanes_per_batch=2,
    ).assign(**changes)


def curves_of(lanes, num_checks=3):
    """`num_checks` entries per lane."""
    return pd.DataFrame(
        [
            {'model': 'ffn', **lane._asdict(), 'samples': 640 * (i + 1), 'test_loss': np.float32(1 / (i + 1))}
            for lane in lanes
            for i in range(num_checks)
        ]
    )


def make(path, lanes=LANES, sweep=None, **changes):
    """A results directory with some lanes of one cell."""
    workdir = results.open_workdir(path)
    results.add_sweep(workdir, (sweep or small.settings()).as_json())
    monitor.add_plan(workdir, {CELL: [lane_keys.name_of(lane) for lane in lanes]})
    results.add(workdir, CELL, rows_of(lanes, **changes), curves_of(lanes))
    files.write_json(workdir / 'provenance' / f'{path.name}.json', {'batches': []})
    return workdir


def snapshot(path):
    """All files of a directory as {name: bytes}."""
    path = pathlib.Path(path)
    return {str(p.relative_to(path)): p.read_bytes() for p in path.rglob('*') if p.is_file()}


# Adding and loading


def test_tables_do_not_depend_on_who_came_first(tmp_path):
    for name, order in ('a', [[0, 1, 2, 3]]), ('b', [[3], [1, 2], [0]]), ('c', [[2, 0], [3, 1]]):
        workdir = results.open_workdir(tmp_path / name)
        for places in order:
            lanes = [LANES[place] for place in places]
            results.add(workdir, CELL, rows_of(lanes), curves_of(lanes))
    one, *others = (snapshot(tmp_path / name) for name in 'abc')
    assert one == others[0] == others[1]
    assert set(one) == {f'rows/{CELL}.parquet', f'curves/{CELL}.parquet'}


def test_a_lane_that_is_there_keeps_its_row_and_its_curve(tmp_path):
    workdir = make(tmp_path / 'a', LANES[:2])
    before = snapshot(workdir)
    results.add(workdir, CELL, rows_of(LANES[:2], test_loss=9.0), curves_of(LANES[:2], num_checks=5))
    assert snapshot(workdir) == before
    results.add(workdir, CELL, rows_of(LANES[1:]), curves_of(LANES[1:], num_checks=5))
    assert snapshot(workdir)[f'rows/{CELL}.parquet'] == snapshot(make(tmp_path / 'b'))[f'rows/{CELL}.parquet']
    curves = files.read_table(results.cell_path(workdir, 'curves', CELL))
    assert curves.groupby('seed').size().to_dict() == {0: 3, 1: 3, 2: 5, 3: 5}


def test_a_curve_without_its_row_is_replaced(tmp_path):
    """As a kill between the two writes leaves it; the lane may be run again with another rounding."""
    workdir = make(tmp_path / 'a', LANES[:2])
    old = curves_of(LANES[:2]), curves_of(LANES[2:], num_checks=7)
    files.write_table(results.cell_path(workdir, 'curves', CELL), pd.concat(old))
    results.add(workdir, CELL, rows_of(LANES[2:]), curves_of(LANES[2:]))
    assert snapshot(workdir)[f'curves/{CELL}.parquet'] == snapshot(make(tmp_path / 'b'))[f'curves/{CELL}.parquet']


def test_load_and_load_curves(tmp_path):
    workdir = make(tmp_path)
    rows, curves = results.load(workdir), results.load_curves(workdir)
    pd.testing.assert_frame_equal(rows, rows_of(LANES))
    pd.testing.assert_frame_equal(curves, curves_of(LANES))


def test_a_damaged_file_is_left_out_or_raised(tmp_path):
    workdir = make(tmp_path)
    (workdir / 'rows' / 'rnn.parquet').write_bytes(b'PAR1')
    with pytest.warns(UserWarning, match=r'left out: .*rnn\.parquet is damaged'):
        rows = results.load(workdir)
    assert len(rows) == 4
    with pytest.raises(results.ResultsError, match=r'rnn\.parquet is damaged'):
        results.load(workdir, strict=True)


def test_a_directory_that_is_not_ours(tmp_path):
    with pytest.raises(results.ResultsError, match='is not a results directory'):
        results.load(tmp_path)


# Opening and settings


def test_opening_removes_what_killed_writes_left(tmp_path):
    from tests.test_files import dead_pid

    workdir = make(tmp_path)
    before = snapshot(workdir)
    owner = files.temporary_path(workdir / 'x').name.split('.')[2].rsplit('-', 2)[0]
    for folder in '.', 'rows', 'curves', 'provenance', 'progress':
        (workdir / folder / f'.config.json.{owner}-{dead_pid()}-0123abcd.tmp').write_text('half')
    results.open_workdir(tmp_path)
    assert snapshot(workdir) == before


@pytest.mark.parametrize('path', ['file', 'file/below', '/proc/qstr', '/dev/null'])
def test_places_that_cannot_be_results_directories(tmp_path, path):
    (tmp_path / 'file').write_text('')
    with pytest.raises(results.ResultsError, match=r'^workdir=.*: must be a directory that can be written \(.+\)$'):
        results.open_workdir(tmp_path / path)


def test_settings_that_only_add_points_are_joined(tmp_path):
    results.add_sweep(tmp_path, small.settings(seq_lens=(2, 4), num_seeds=5).as_json())
    results.add_sweep(tmp_path, small.settings(seq_lens=(4, 6), num_seeds=3, lanes_per_batch=1).as_json())
    config = files.read_json(tmp_path / 'config.json')
    assert (config['seq_lens'], config['num_seeds'], config['lanes_per_batch']) == ([2, 4, 6], 5, 1)


@pytest.mark.parametrize('text', ['{}', '{"models": ["ffn"]}', '[]', '', '{"task": "qstr"'])
def test_a_foreign_or_damaged_config_is_a_line(tmp_path, text):
    (tmp_path / 'config.json').write_text(text)
    with pytest.raises(results.ResultsError, match=r'other settings|is damaged') as error:
        results.add_sweep(tmp_path, small.settings().as_json())
    assert '\n' not in str(error.value)
    assert len(str(error.value)) < 800
    assert (tmp_path / 'config.json').read_text() == text


# Merging


def test_identical_overlaps_merge(tmp_path):
    make(tmp_path / 'a', LANES[:3], small.settings(num_seeds=3))
    make(tmp_path / 'b', LANES[1:], small.settings(num_seeds=4, seq_lens=(3, 5)))
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        rows = merge.merge([tmp_path / 'a', tmp_path / 'b'], tmp_path / 'both')
    pd.testing.assert_frame_equal(rows, rows_of(LANES))
    whole = snapshot(make(tmp_path / 'whole'))
    both = snapshot(tmp_path / 'both')
    for kind in 'rows', 'curves':
        assert both[f'{kind}/{CELL}.parquet'] == whole[f'{kind}/{CELL}.parquet']
    config = files.read_json(tmp_path / 'both' / 'config.json')
    assert (config['num_seeds'], config['seq_lens']) == (4, [3, 5])
    assert sorted(p.name for p in (tmp_path / 'both' / 'provenance').iterdir()) == ['a.json', 'b.json']
    assert monitor.status(tmp_path / 'both')['state'].tolist() == ['done']


def test_merging_into_one_of_the_sources(tmp_path):
    make(tmp_path / 'a', LANES[:2])
    make(tmp_path / 'b', LANES[2:])
    merge.merge([tmp_path / 'a', tmp_path / 'b'], tmp_path / 'a')
    assert len(results.load(tmp_path / 'a')) == 4
    assert len(results.load(tmp_path / 'b')) == 2


def test_contradictions_are_named_and_nothing_is_written(tmp_path):
    make(tmp_path / 'a')
    loss = rows_of(LANES)['test_loss'].to_numpy().copy()
    loss[2] = np.nextafter(loss[2], np.float32(9))  # the last bit
    make(tmp_path / 'b', test_loss=loss)
    with pytest.raises(results.ResultsError, match=rf'{CELL}, seed2-task0-lr0\.001-wd0\.01: test_loss in .*contradict'):
        merge.merge([tmp_path / 'a', tmp_path / 'b'], tmp_path / 'both')
    assert not (tmp_path / 'both').exists()
    before = snapshot(tmp_path / 'a')
    with pytest.raises(results.ResultsError, match='contradict'):
        merge.merge([tmp_path / 'a', tmp_path / 'b'], tmp_path / 'a')
    assert snapshot(tmp_path / 'a') == before


def test_a_missing_value_against_a_number_is_a_contradiction(tmp_path):
    make(tmp_path / 'a', LANES[1:2])
    make(tmp_path / 'b', LANES[1:2], outcome='reached', samples_to_threshold=pd.array([640], 'Int64'))
    with pytest.raises(results.ResultsError, match='outcome, samples_to_threshold'):
        merge.merge([tmp_path / 'a', tmp_path / 'b'], tmp_path / 'both')


@pytest.mark.parametrize('column', ['backend', 'lanes_per_batch'])
def test_another_backend_or_batch_may_differ_by_rounding(tmp_path, column):
    make(tmp_path / 'a')
    make(tmp_path / 'b', test_loss=np.float32(0.25), **{column: {'backend': 'gpu', 'lanes_per_batch': 4}[column]})
    with pytest.warns(UserWarning, match=f'seed0-.*{column}.* the first is kept'):
        rows = merge.merge([tmp_path / 'a', tmp_path / 'b'], tmp_path / 'both')
    pd.testing.assert_frame_equal(rows, rows_of(LANES))


def test_other_settings_and_damaged_files_merge_not_at_all(tmp_path):
    make(tmp_path / 'a')
    make(tmp_path / 'b', sweep=small.settings(threshold=0.5))
    with pytest.raises(results.ResultsError, match=r'threshold: 0\.5 there, 0\.9 now|threshold: 0\.9'):
        merge.merge([tmp_path / 'a', tmp_path / 'b'], tmp_path / 'both')
    shutil.copytree(tmp_path / 'a', tmp_path / 'c')
    (tmp_path / 'c' / 'curves' / f'{CELL}.parquet').write_bytes(b'PAR1')
    with pytest.raises(results.ResultsError, match='is damaged'):
        merge.merge([tmp_path / 'a', tmp_path / 'c'], tmp_path / 'both')
    assert not (tmp_path / 'both').exists()


def test_a_destination_with_other_results_is_refused(tmp_path):
    make(tmp_path / 'a')
    make(tmp_path / 'b')
    before = snapshot(tmp_path / 'b')
    with pytest.raises(results.ResultsError, match='name it among the sources'):
        merge.merge([tmp_path / 'a'], tmp_path / 'b')
    assert snapshot(tmp_path / 'b') == before


def test_lane_names_are_the_same_from_lanes_and_rows():
    row = rows_of(LANES[:1]).iloc[0]
    assert lane_keys.name_of(LANES[0]) == lane_keys.name_of(row) == 'seed0-task0-lr0.001-wd0.01'
    assert len({lane_keys.name_of(lane) for lane in sweeps.cells_of(small.settings(num_seeds=7))[0].lanes}) == 7
