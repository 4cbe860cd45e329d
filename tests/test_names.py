"""Names from files, and paths that stay in their directory."""

import pathlib

import pytest
from etils import epath

from qstr_jax import sweeps
from qstr_jax.storage import checkpoint, files, lane_keys, names, results
from qstr_jax.sweeps import claims, monitor
from tests import small
from tests.stored import CELL, LANES, curves_of, make, rows_of, snapshot

HOSTILE = [
    '../x',
    '/etc/x',
    '..',
    '.',
    '',
    '.hidden',
    'a/b',
    'a\\b',
    'a*',
    '[a]',
    'a\n',
    'a\0',
    'ü',
    'x' * 300,
    None,
    3,
]


@pytest.mark.parametrize('name', HOSTILE, ids=repr)
def test_names_that_are_none(tmp_path, name):
    with pytest.raises(files.ResultsError, match='cannot be a name of a file') as error:
        names.inside(tmp_path, 'rows', name)
    assert len(str(error.value).splitlines()) == 1
    assert len(str(error.value)) < 200


def test_our_names_are_names():
    cell = small.cell(learning_rate=(1e-5, 1e20), weight_decay=(0.0, 1 / 3))
    for name in [cell.id, *map(lane_keys.name_of, cell.lanes)]:
        assert names.check(name) == name


def test_a_link_on_the_way_is_not_followed(tmp_path):
    (tmp_path / 'private').mkdir()
    (tmp_path / 'results').symlink_to(tmp_path / 'private')
    assert names.inside(tmp_path / 'results', 'rows').name == 'rows'  # The directory itself may be one.
    (tmp_path / 'private' / 'rows').symlink_to(tmp_path)
    with pytest.raises(files.ResultsError, match=r'rows is a symbolic link, which is not followed'):
        names.inside(tmp_path / 'results', 'rows', 'x')


def test_files_are_listed_and_what_is_none_is_named(tmp_path):
    for name in 'b.json', 'a.json', '.c.json', 'd.txt':
        (tmp_path / name).write_text('')
    (tmp_path / 'e.json').mkdir()
    (tmp_path / 'f.json').symlink_to(tmp_path / 'd.txt')
    with pytest.warns(UserWarning, match='left out') as warned:
        assert [path.name for path in names.listed(tmp_path, '.json')] == ['a.json', 'b.json']
    words = [str(warning.message).split('/')[-1] for warning in warned]
    assert words == ['e.json is no file', 'f.json is a symbolic link']
    assert names.listed(tmp_path / 'none', '.json') == []


# What a hostile directory could reach


@pytest.fixture
def outside(tmp_path):
    """A folder beside the results, which nobody may touch."""
    folder = tmp_path / 'outside'
    (folder / 'my-batch0of1-0-01234567').mkdir(parents=True)
    (folder / 'my.json').write_text('precious')
    return folder


@pytest.mark.parametrize('cell', ['../../outside/my', '/etc/my', '..'])
def test_a_plan_reaches_nothing_outside(tmp_path, outside, cell):
    workdir = make(tmp_path / 'results')
    before = snapshot(outside)
    files.write_json(workdir / 'plan.json', {cell: {'columns': {}, 'lanes': []}})
    for look in monitor.status, lambda path: monitor.add_plan(path, [small.cell('ffn')]):
        with pytest.raises(files.ResultsError, match=r'plan\.json is damaged'):
            look(workdir)
    for reach in (
        lambda: claims.remove_checkpoints(workdir, cell),
        lambda: monitor.clear_error(workdir, cell),
        lambda: monitor.write_error(workdir, cell, 'x'),
        lambda: results.add(workdir, cell, rows_of(LANES), curves_of(LANES)),
    ):
        with pytest.raises(files.ResultsError, match='cannot be a name'):
            reach()
    assert snapshot(outside) == before
    assert len(list(outside.iterdir())) == 2


@pytest.mark.parametrize('folder', ['rows', 'checkpoints', 'progress', 'locks', 'params'])
def test_a_folder_that_is_a_link_stops_a_sweep(tmp_path, outside, folder):
    (tmp_path / 'results').mkdir()
    (tmp_path / 'results' / folder).symlink_to(outside)
    with pytest.raises(files.ResultsError, match=f'{folder} is a symbolic link'):
        sweeps.run(small.settings(), tmp_path / 'results', small.quiet())
    assert len(snapshot(outside)) == 1


def test_links_among_checkpoints_are_not_followed(tmp_path, outside):
    workdir = make(tmp_path / 'results')
    link = pathlib.Path(workdir / 'checkpoints' / f'{CELL}-batch0of1-0-01234567')
    link.symlink_to(outside)
    with pytest.raises(files.ResultsError, match='is a symbolic link'):
        claims.remove_checkpoints(workdir, CELL)
    checkpoint.remove(epath.Path(link))  # Of the link the link alone.
    assert not link.exists()
    assert len(list(outside.iterdir())) == 2
