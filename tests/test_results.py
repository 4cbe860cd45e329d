"""Tables of results: adding, loading, several sweeps in one directory."""

import os
import pathlib
import subprocess

import pandas as pd
import pyarrow.parquet as pq
import pytest

from qstr_jax import columns
from qstr_jax.storage import files, results, table_format
from qstr_jax.sweeps import claims, lane_batches
from tests import small
from tests.stored import CELL, LANES, SETTINGS, curves_of, make, rows_of, signed, snapshot
from tests.test_files import dead_pid

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


def test_lanes_without_curves_are_named(tmp_path):
    workdir = make(tmp_path / 'a', LANES[:2])
    path = results.cell_path(workdir, 'curves', CELL)
    path.unlink()
    with pytest.raises(results.ResultsError, match=r'curves/.*\.parquet is missing beside its rows'):
        results.add(workdir, CELL, rows_of(LANES), curves_of(LANES))
    assert len(results.load(workdir)) == 2
    with pytest.raises(results.ResultsError, match='is missing beside its rows'):
        results.load_curves(workdir, strict=True)
    files.write_table(path, curves_of(LANES[1:]), CELL)
    with pytest.raises(results.ResultsError, match=r'curves/.*\.parquet lacks 1 lanes of its rows'):
        results.load_curves(workdir, strict=True)
    with pytest.warns(UserWarning, match='lacks 1 lanes'):
        assert set(results.load_curves(workdir)['seed']) == {1, 2, 3}
    rows = rows_of(LANES[:2]).assign(outcome=['diverged', 'reached'])  # the first diverged before its first check
    assert len(results.load_curves(workdir, strict=True, rows=rows.assign(cell=CELL))) == 9
    # Curves from before a column of lanes count as those of its default.
    files.write_table(path, curves_of(LANES[:2]).drop(columns='stop_after'), CELL)
    results.add(workdir, 'other', rows_of(LANES[:1]), curves_of(LANES[:1]))
    assert results.load_curves(workdir, strict=True)['stop_after'].isna().any()


def test_load_and_load_curves(tmp_path):
    workdir = make(tmp_path)
    rows, curves = results.load(workdir), results.load_curves(workdir)
    pd.testing.assert_frame_equal(rows, rows_of(LANES).assign(cell=CELL))
    pd.testing.assert_frame_equal(curves, curves_of(LANES).assign(cell=CELL, **SETTINGS))


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


def test_a_results_directory_of_thousands_of_levels_is_a_line(tmp_path):
    for levels in 1800, 3000:
        with pytest.raises(results.ResultsError, match=r'must be a directory that can be written \(.+\)$'):
            results.open_workdir(tmp_path.joinpath(*['a'] * levels))


def test_every_sweep_is_recorded_once(tmp_path):
    one, other = small.settings(seq_lens=(2, 4)), small.settings(threshold=0.5, lanes_per_batch=1)
    for sweep in one, other, one:
        results.add_sweep(tmp_path, sweep.as_json())
    assert results.read_config(tmp_path) == [one.as_json(), other.as_json()]
    assert files.read_json(tmp_path / 'config.json')['format'] == 2


@pytest.mark.parametrize('text', ['[]', '', '{"task": "qstr"', '{"format": 2}', '{"format": 2, "sweeps": [1]}'])
def test_a_damaged_config_is_a_line(tmp_path, text):
    (tmp_path / 'config.json').write_text(text)
    with pytest.raises(results.ResultsError, match=r'config\.json is damaged') as error:
        results.add_sweep(tmp_path, small.settings().as_json())
    assert '\n' not in str(error.value)
    assert len(str(error.value)) < 800
    assert (tmp_path / 'config.json').read_text() == text


@pytest.mark.parametrize(
    ('config', 'words'),
    [({'format': 3, 'sweeps': []}, r'format 3, this version reads 2$'), ({}, r'no format, this version reads 2$')],
    ids=['newer', 'foreign'],
)
def test_another_format_is_a_line_and_stays_as_it_is(tmp_path, config, words):
    files.write_json(tmp_path / 'config.json', config)
    for look in (results.load, results.load_curves, lambda path: results.add_sweep(path, small.settings().as_json())):
        with pytest.raises(results.ResultsError, match=words) as error:
            look(tmp_path)
        assert '\n' not in str(error.value)
    assert files.read_json(tmp_path / 'config.json') == config


def test_directories_are_found_at_and_below_a_folder(tmp_path):
    make(tmp_path / 'b' / 'deep')
    make(tmp_path / 'a')
    assert results.find(tmp_path) == [tmp_path / 'a', tmp_path / 'b' / 'deep']


def test_what_lies_thousands_of_levels_below_is_left_out(tmp_path):
    make(tmp_path / 'a')
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(2100):  # too long for a path
        os.mkdir('b', dir_fd=here)
        here, above = os.open('b', os.O_RDONLY, dir_fd=here), here
        os.close(above)
    os.close(here)
    with pytest.warns(UserWarning, match='left out: .*, more than 32 levels below'):
        assert results.find(tmp_path) == [tmp_path / 'a']
    subprocess.run(['rm', '-r', str(tmp_path / 'b')], check=True)  # pytest's own way is recursive
    assert results.find(tmp_path / 'a') == [tmp_path / 'a']
    with pytest.raises(results.ResultsError, match='no such directory'):
        results.find(tmp_path / 'none')


def test_runs_that_choose_settings_are_read_where_they_are_named_alone(tmp_path):
    make(tmp_path / 'a')
    choosing = make(tmp_path / 'a' / 'selection', LANES[:1])
    make(tmp_path / 'a' / 'selection' / 'deep')
    assert results.find(tmp_path) == results.find(tmp_path / 'a') == [tmp_path / 'a']
    assert len(results.load_all([tmp_path])) == len(LANES)
    assert results.find(choosing) == [pathlib.Path(choosing), tmp_path / 'a' / 'selection' / 'deep']
    assert len(results.load_all([choosing])) == 1 + len(LANES)


# Several cells, and columns that only some of them have


def test_cells_with_other_settings_stand_side_by_side(tmp_path):
    make(tmp_path)
    other = rows_of(LANES[:2]).drop(columns=['ffn_widths', 'ffn_form', 'ffn_initializer'])
    other = other.assign(model='rnn', rnn_width=8, threshold=0.5)
    results.add(tmp_path, 'rnn-qstr-N3-q1-00000001', other, curves_of(LANES[:2]))
    rows, curves = results.load(tmp_path), results.load_curves(tmp_path)
    assert rows.groupby('cell').size().to_dict() == {CELL: 4, 'rnn-qstr-N3-q1-00000001': 2}
    assert rows.groupby('cell')['threshold'].first().to_dict() == {CELL: 0.9, 'rnn-qstr-N3-q1-00000001': 0.5}
    assert rows.loc[rows['model'] == 'ffn', 'rnn_width'].isna().all()
    assert curves.groupby(['model', 'threshold']).size().to_dict() == {('ffn', 0.9): 12, ('rnn', 0.5): 6}


def test_curves_whose_rows_are_damaged_are_left_out_or_raised(tmp_path):
    workdir = make(tmp_path)
    results.add(workdir, 'other', rows_of(LANES[:1]), curves_of(LANES[:1]))
    (workdir / 'rows' / 'other.parquet').write_bytes(b'PAR1')
    with pytest.warns(UserWarning, match=r'other\.parquet is damaged'):
        assert set(results.load_curves(workdir)['cell']) == {CELL}
    with pytest.raises(results.ResultsError, match=r'other\.parquet is damaged'):
        results.load_curves(workdir, strict=True)


def test_settings_that_are_newer_than_a_file_are_at_their_defaults(tmp_path):
    """A cell keeps its id when its model gets another setting; its old rows have the default."""
    workdir = make(tmp_path, LANES[:2])
    path = results.cell_path(workdir, 'rows', CELL)
    files.write_table(path, files.read_table(path).drop(columns=['ffn_form', 'ffn_widths']))
    rows = results.load(workdir)
    assert list(rows['ffn_form']) == ['flat', 'flat']
    assert 'ffn_widths' not in rows  # (): follows from the task
    results.add(workdir, CELL, rows_of(LANES[2:]), curves_of(LANES[2:]))
    expected = rows_of(LANES).assign(cell=CELL)
    pd.testing.assert_frame_equal(results.load(workdir)[list(expected)], expected)


def test_lanes_from_before_a_traced_setting_are_at_its_default(tmp_path):
    """Online training without weight decay, as if it had come later: its lanes are those of the default."""
    cell = small.cell('ffn', num_seeds=2, weight_decay=(0.01, 0.1))
    (batch,) = lane_batches.cut([cell], lambda cell: 4)
    workdir = results.open_workdir(tmp_path)
    constant = {**dict(cell.columns), 'outcome': 'reached'}
    frame = pd.DataFrame([{**constant, **lane._asdict()} for lane in cell.lanes])
    old = frame[frame['weight_decay'] == 0.01].drop(columns='weight_decay')
    lanes_alone = old[['seed', 'task_seed', 'learning_rate']]
    results.add(workdir, cell.id, old, lanes_alone.assign(samples=640))
    assert {lane.weight_decay for lane in claims.missing(workdir, batch)} == {0.1}
    assert len(claims.missing(workdir, batch)) == 2
    new = frame[frame['weight_decay'] == 0.1]
    results.add(workdir, cell.id, new, new[list(cell.lanes[0]._fields)].assign(samples=640))
    assert claims.missing(workdir, batch) == ()
    for kind in 'rows', 'curves':
        table = files.read_table(results.cell_path(workdir, kind, cell.id))
        assert sorted(table['weight_decay']) == [0.01, 0.01, 0.1, 0.1]


def test_roles_of_a_plugins_columns_come_from_the_file(tmp_path, monkeypatch):
    """One who only reads results has not imported the plugin that made them."""
    monkeypatch.setattr(columns, '_TABLE', dict(columns._TABLE))
    columns.declare('wavelet_scales', 'model', 'int')
    columns.declare('temperature', 'lane')
    curves = curves_of(LANES, num_checks=1).assign(temperature=0.5)
    rows = rows_of(LANES, temperature=0.5, wavelet_scales=3, agility=0.1)
    results.add(results.open_workdir(tmp_path), CELL, rows, curves)
    results.add_sweep(tmp_path, {})
    monkeypatch.setattr(columns, '_TABLE', {column.name: column for column in columns._KNOWN})
    assert not columns.is_declared('wavelet_scales')
    rows = results.load(tmp_path)
    assert (columns.get('wavelet_scales').role, columns.get('wavelet_scales').type) == ('model', 'int')
    assert (columns.get('temperature').role, columns.get('temperature').type) == ('lane', 'float')
    assert not columns.is_declared('agility')  # what nobody declares is a measure
    assert columns.settings(rows.columns).count('wavelet_scales') == 1
    assert results.load_curves(tmp_path)['wavelet_scales'].eq(3).all()


@pytest.mark.parametrize('roles', [b'[1]', b'{"seed": 3}', b'{"x": "king"}', b'', None], ids=str)
def test_damaged_roles_are_a_line(tmp_path, roles):
    path = results.cell_path(make(tmp_path), 'rows', CELL)
    table = pq.read_table(path)
    metadata = {**table.schema.metadata, table_format.ROLES_KEY: roles}
    table = table.append_column('x', [[1.0] * 4])
    table = table.replace_schema_metadata({k: v for k, v in metadata.items() if v is not None})
    pq.write_table(signed(table), path)
    with pytest.raises(results.ResultsError, match='roles of its columns') as error:
        results.load(tmp_path, strict=True)
    assert '\n' not in str(error.value)
