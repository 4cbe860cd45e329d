"""Copies of all tables in one file: whatever happens to the files of cells, what is read is what they hold."""

import os

import pandas as pd
import pytest

from qstr_jax import sweeps
from qstr_jax.storage import cell_columns, compact, results
from qstr_jax.sweeps import claims, monitor
from tests import small


@pytest.fixture(scope='module')
def made(tmp_path_factory):
    """A directory of three cells of two lanes."""
    workdir = tmp_path_factory.mktemp('made')
    sweep = small.settings(models=('ffn',), seq_lens=(2, 3, 4), num_seeds=2, max_samples=400)
    sweeps.run(sweep, workdir, small.quiet())
    return sweep, workdir


@pytest.fixture
def workdir(made, tmp_path, monkeypatch):
    """A copy of it, with copies of its tables."""
    monkeypatch.setattr(compact, 'FEWEST', 1)
    for path in made[1].rglob('*'):
        if path.is_file() and 'compact' not in path.parts:
            target = tmp_path / path.relative_to(made[1])
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(path.read_bytes())
    results.make_compact(tmp_path)
    assert {path.name for path in (tmp_path / 'compact').iterdir()} == {'rows.parquet', 'curves.parquet'}
    return tmp_path


def both(workdir):
    return results.load(workdir), results.load_curves(workdir)


def opened(monkeypatch):
    """The tables that are read from the files of cells from now on."""
    found = []
    read = results.cell_tables.read_rows
    monkeypatch.setattr(results.cell_tables, 'read_rows', lambda path, *more: found.append(path) or read(path, *more))
    return found


def test_what_is_copied_is_what_the_files_hold(made, workdir, monkeypatch):
    from_files = both(made[1])
    found = opened(monkeypatch)
    for copied, read in zip(both(workdir), from_files, strict=True):
        pd.testing.assert_frame_equal(copied, read)
    assert monitor.status(workdir)['state'].tolist() == ['done'] * 3
    assert not any(claims.missing_of(workdir, sweeps.cells_of(made[0])).values())
    assert found == []


def test_a_file_that_was_written_again_counts_and_not_its_copy(made, workdir, monkeypatch):
    path = sorted((workdir / 'rows').iterdir())[1]
    cell_id = path.stem
    rows = results.cell_tables.read_rows(path).iloc[:1]
    path.unlink()
    results.files.write_table(path, rows, cell_id)
    found = opened(monkeypatch)
    loaded = results.load(workdir)
    assert [str(one) for one in found] == [str(path)]
    assert loaded['cell'].tolist() == sorted(loaded['cell'])
    assert len(loaded) == 5
    missing = claims.missing_of(workdir, sweeps.cells_of(made[0]))
    assert len(missing.pop(cell_id)) == 1
    assert not any(missing.values())


def test_a_file_of_the_same_size_counts_and_not_its_copy(workdir):
    path = sorted((workdir / 'rows').iterdir())[1]
    before, rows = path.stat(), results.cell_tables.read_rows(path)
    swapped = rows.assign(test_loss=rows['test_loss'].to_numpy()[::-1])
    assert swapped['test_loss'].tolist() != rows['test_loss'].tolist()
    path.unlink()
    results.files.write_table(path, swapped, path.stem)
    assert path.stat().st_size == before.st_size
    loaded = results.load(workdir)
    assert loaded.loc[loaded['cell'] == path.stem, 'test_loss'].tolist() == swapped['test_loss'].tolist()


def test_a_file_that_is_gone_is_gone(workdir):
    path, *_ = sorted((workdir / 'rows').iterdir())
    path.unlink()
    assert path.stem not in set(results.load(workdir)['cell'])
    assert monitor.status(workdir).set_index('cell')['left'][path.stem] == 2


@pytest.mark.parametrize('content', [b'', b'PAR1', None])
def test_a_damaged_copy_is_none(made, workdir, content):
    """So is that of another directory, whose files have other times."""
    path = workdir / 'compact/rows.parquet'
    data = path.read_bytes()
    path.write_bytes(content if content is not None else data[:500] + b'?' + data[501:])
    pd.testing.assert_frame_equal(results.load(workdir), results.load(made[1]))


@pytest.mark.parametrize(
    'change', [{'outcome': 'fine'}, {'num_samples': -5}, {'model': 'other'}, {'seed': 'x'}], ids=str
)
def test_so_is_one_that_holds_what_no_file_may(made, workdir, change):
    copy = compact.read(workdir, 'rows')
    compact.write(workdir, 'rows', copy.frame.assign(**change), copy.stamps)
    pd.testing.assert_frame_equal(results.load(workdir), results.load(made[1]))
    results.files.write_table(workdir / 'compact/rows.parquet', pd.DataFrame({'cell': [['a']]}))
    pd.testing.assert_frame_equal(results.load(workdir), results.load(made[1]))


def test_a_setting_of_two_types_is_not_copied(workdir):
    copy = compact.read(workdir, 'rows')
    mixed = pd.Series([1, 1, 'a', 'a', 1, 1], dtype=object)
    compact.write(workdir, 'rows', copy.frame.assign(mine_norm=mixed), copy.stamps)
    assert 'mine_norm' not in compact.read(workdir, 'rows').frame


def test_small_directories_have_no_copies(made):
    results.make_compact(made[1])
    assert not os.path.exists(made[1] / 'compact')


def test_cells_at_once_are_the_cells_one_by_one(made, workdir):
    first, second, third = sorted((workdir / 'rows').iterdir())
    second.unlink()
    third.write_bytes((made[1] / 'rows' / third.name).read_bytes())  # at another time, so that its copy does not count
    cells = {path.stem: ('seed', 'task_seed', 'learning_rate') for path in (first, second, third)}
    found = cell_columns.columns_of_each(workdir, {**cells, 'none': ()}, ['outcome'])
    assert list(found) == [first.stem, third.stem]
    for name, rows in found.items():
        alone = cell_columns.columns_of(workdir, name, cells[name])
        assert {column: rows[column] for column in (*cells[name], 'outcome')} == {
            column: alone[column] for column in (*cells[name], 'outcome')
        }
        assert name == third.stem or {column: values[0] for column, values in rows.items()} == {
            column: values[0] for column, values in alone.items() if values[0] is not None
        }
    assert cell_columns.with_rows(workdir) == {first.stem, third.stem}
    assert cell_columns.with_rows(workdir / 'nowhere') == set()
