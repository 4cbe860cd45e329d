"""Rows and curves are what was written, of the cell that their file is named after; anything else is a line."""

import dataclasses
import random

import pandas as pd
import pyarrow.parquet as pq
import pytest

from qstr_jax import columns, learners
from qstr_jax.analysis import resolution
from qstr_jax.storage import cell_tables, files, results, table_format
from tests.stored import CELL, LANES, make, rows_of, signed

READERS = {'rows': cell_tables.read_rows, 'curves': cell_tables.read_curves}


def test_what_a_reader_does_to_rows_is_no_part_of_them_and_a_new_file_is_read(tmp_path):
    path = results.cell_path(make(tmp_path / 'sweep'), 'rows', CELL)
    before = cell_tables.read_rows(path)
    before.loc[0, 'seed'] = 99
    assert 99 not in cell_tables.read_rows(path)['seed'].tolist()
    files.write_table(path, cell_tables.read_rows(path).iloc[:1], CELL)
    assert len(cell_tables.read_rows(path)) == 1 < len(before)


@pytest.mark.parametrize('kind', READERS)
def test_no_flipped_bit_changes_a_number_in_silence(tmp_path, kind):
    """Where nothing is said, the flipped bit was of the packing: the table is the same."""
    path = results.cell_path(make(tmp_path), kind, CELL)
    whole, read, rng, lines = path.read_bytes(), READERS[kind], random.Random(0), 0
    good = read(path)
    for place in (rng.randrange(8 * len(whole)) for _ in range(100)):
        flipped = bytearray(whole)
        flipped[place // 8] ^= 1 << place % 8
        path.write_bytes(bytes(flipped))
        try:
            found, said = read(path), ''
        except files.ResultsError as error:
            found, said = None, str(error)
        if found is None:
            assert str(path) in said
            assert '\n' not in said
        else:
            pd.testing.assert_frame_equal(found, good)
        lines += found is None
    assert lines > 30


def test_a_column_that_tells_lanes_apart_is_a_number(tmp_path, monkeypatch):
    monkeypatch.setattr(columns, '_TABLE', dict(columns._TABLE))
    path = results.cell_path(make(tmp_path), 'rows', CELL)
    columns.declare('mine', 'lane', 'str')
    files.write_table(path, cell_tables.read_rows(path).assign(mine='a'), CELL)
    with pytest.raises(files.ResultsError, match='mine: tells lanes apart'):
        cell_tables.read_rows(path)


@pytest.mark.parametrize(
    ('changes', 'words'),
    [
        ({'outcome': 'running'}, "outcome='running': not one of reached"),
        ({'outcome': None}, 'outcome=None'),
        ({'samples_to_threshold': -1}, 'samples_to_threshold=-1: must be at least 0'),
        ({'samples_to_threshold': 2700, 'num_samples': 2560}, 'samples_to_threshold=2700: more than num_samples'),
        ({'num_samples': 10**9}, 'num_samples=1000000000: more than max_samples'),
        ({'test_loss': -0.5}, 'test_loss=-0.5: must be at least 0'),
        ({'test_loss': 'low'}, "test_loss='low': not of the type float"),
        ({'seed': [0, 1, 1, 2], 'task_seed': 0}, 'the lane seed1-task0-lr0.001-wd0.01 is there twice'),
        ({'seed': 0.5}, 'seed: must be whole numbers'),
        ({'model': 'rnn'}, "model='rnn' in the file of the cell ffn"),
        ({'seq_len': 4}, r'seq_len=.*4.* in the file of the cell ffn'),
        ({'threshold': [0.1, 0.2, 0.3, 0.4]}, 'threshold: differs between lanes of one cell'),
        ({'converged': 'no'}, "converged='no': not of the type bool"),
        ({'is_erm': ['maybe', None, 'no', None]}, "is_erm='maybe': not of the type bool"),
        ({'miss_is_erm': 1.0}, r"miss_is_erm='1\.0': not of the type bool"),
        ({'crossing': 5.0}, 'crossing: is derived from rows and curves, never stored'),
        ({'cell': CELL}, 'cell: is derived'),
    ],
)  # fmt: skip
def test_rows_that_cannot_be_are_a_line(tmp_path, changes, words):
    """Also where a digest says that somebody meant it."""
    path = results.cell_path(make(tmp_path), 'rows', CELL)
    files.write_table(path, rows_of(LANES).assign(**changes), CELL)
    with pytest.raises(files.ResultsError, match=rf'is damaged \(.*{words}'):
        cell_tables.read_rows(path)


@pytest.mark.parametrize('dtype', [object, bool, 'boolean'])
def test_answers_of_yes_and_no_are_read_in_each_form(tmp_path, dtype):
    path = results.cell_path(make(tmp_path), 'rows', CELL)
    known = pd.array([True, False] * 2 if dtype is bool else [True, None, False, None], dtype)
    files.write_table(path, rows_of(LANES).assign(converged=known, is_erm=known, miss_is_erm=None), CELL)
    assert cell_tables.read_rows(path)['is_erm'].dropna().tolist() == pd.Series(known).dropna().tolist()


def test_no_setting_may_be_called_as_what_is_derived(own_entries):
    assert columns.DERIVED >= {resolution.CROSSING}
    for name in columns.DERIVED:
        with pytest.raises(ValueError, match=f'no setting may be called {name!r}'):
            learners.register('mine')(dataclasses.make_dataclass('Mine', [(name, int, 0)]))


def test_rows_without_a_column_that_all_rows_have(tmp_path):
    path = results.cell_path(make(tmp_path), 'rows', CELL)
    for name in 'model', 'seed', 'outcome':
        files.write_table(path, rows_of(LANES).drop(columns=name), CELL)
        with pytest.raises(files.ResultsError, match=f"no column '{name}'"):
            cell_tables.read_rows(path)


@pytest.mark.parametrize('kind', READERS)
def test_a_file_of_another_cell_is_a_line(tmp_path, kind):
    path = results.cell_path(make(tmp_path), kind, CELL)
    other = path.rename(path.with_name(f'{CELL[:-1]}9.parquet'))
    with pytest.raises(files.ResultsError, match=f'holds the cell {CELL}: move it elsewhere'):
        READERS[kind](other)


def test_a_file_whose_digest_was_taken_out_is_a_line(tmp_path):
    path = results.cell_path(make(tmp_path), 'rows', CELL)
    table = pq.read_table(path)
    bare = {key: value for key, value in table.schema.metadata.items() if key != table_format.DIGEST_KEY}
    pq.write_table(table.replace_schema_metadata(bare), path)
    with pytest.raises(files.ResultsError, match=r'is damaged \(it has no digest\)'):
        cell_tables.read_rows(path)
    pq.write_table(signed(table), path)
    assert len(cell_tables.read_rows(path)) == 4


def test_curves_lie_beside_every_rows(tmp_path):
    workdir = make(tmp_path)
    results.cell_path(workdir, 'curves', CELL).unlink()
    with pytest.warns(UserWarning, match=rf'curves/{CELL}\.parquet is missing beside its rows'):
        assert results.load_curves(workdir).empty
    with pytest.raises(files.ResultsError, match='is missing beside its rows'):
        results.load_curves(workdir, strict=True)


def test_rows_that_were_deleted_are_missed(tmp_path):
    """By whoever reads rows, and so before Table 1 or a report is made of the rest."""
    workdir = make(tmp_path, cell='ffn-qstr-N3-q1-00000001')
    make(tmp_path)
    results.cell_path(workdir, 'rows', CELL).unlink()
    for load in results.load, results.load_curves, lambda path: results.load_all([path]):
        with pytest.warns(UserWarning, match=rf'curves/{CELL}\.parquet has no rows beside it.*: run its cell again'):
            assert set(load(tmp_path)['cell']) == {'ffn-qstr-N3-q1-00000001'}
