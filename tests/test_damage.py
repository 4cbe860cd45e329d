"""Disks that fill up, places that cannot be written, files that are damaged, foreign or hostile."""

import contextlib
import json
import os
import pathlib
import pickle
import pickletools
import re
import shutil
import subprocess

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from qstr_jax import sweeps
from qstr_jax.storage import checkpoint, files, results, table_format
from qstr_jax.sweeps import monitor, session
from tests import harness, small
from tests.deaths import Death
from tests.stored import signed

ROOT = pathlib.Path(__file__).parent.parent


@pytest.fixture(scope='module')
def undisturbed(lab, tmp_path_factory):
    """A finished sweep, parameters included."""
    workdir = tmp_path_factory.mktemp('undisturbed')
    lab.finish(workdir, {'save_params': True})
    return workdir


@pytest.fixture(scope='module')
def begun(lab, tmp_path_factory):
    """A sweep of which one cell is done, without parameters."""
    workdir = tmp_path_factory.mktemp('begun')
    lab.finish(workdir, {'models': ('ffn',)})
    return workdir


@pytest.fixture
def copy(undisturbed, tmp_path):
    """A copy of it, to be damaged."""
    shutil.copytree(undisturbed, tmp_path / 'copy')
    return tmp_path / 'copy'


# Full disks and places that cannot be written


@pytest.fixture
def small_disk(tmp_path):
    """Mounts a file system of a given size; needs root."""
    with contextlib.ExitStack() as mounts:

        def mount(size):
            folder = tmp_path / 'disk'
            folder.mkdir()
            command = ['mount', '-t', 'tmpfs', '-o', f'size={size}', 'tmpfs', str(folder)]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                pytest.skip('needs to mount small disks: run it as root')
            mounts.callback(subprocess.run, ['umount', str(folder)], check=True)
            return folder

        yield mount


@pytest.mark.slow
@pytest.mark.parametrize(('room', 'seconds'), [(0, 1e6), (8, 1e6), (20, 1e6), (32, 1e6), (60, 0.0), (200, 0.0)])
def test_a_disk_that_fills_up_and_is_emptied(lab, undisturbed, begun, small_disk, room, seconds):
    """With `room` KiB left the sweep ends in a line; when there is room again it goes on to the same bytes."""
    disk = small_disk('2m')
    shutil.copytree(begun, disk / 'sweep')
    before = harness.tables(disk / 'sweep')
    ballast = disk / 'ballast'
    free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
    ballast.write_bytes(b'x' * max(0, free - room * 1024))
    code, output = lab.run(disk / 'sweep', checkpoint_seconds=seconds)
    assert code == 1, output
    last = output.strip().splitlines()[-1]
    assert last.startswith('error: cannot ')
    assert 'No space left on device' in last
    assert len(last) < 400
    assert 'Traceback' not in output
    assert before.items() <= harness.tables(disk / 'sweep').items()
    assert not results.load(disk / 'sweep', strict=True).empty
    assert set(monitor.status(disk / 'sweep')['state']) <= {'done', 'left', 'stopped', 'failed'}
    ballast.unlink()
    lab.finish(disk / 'sweep')
    assert harness.tables(disk / 'sweep') == harness.tables(undisturbed)
    assert harness.leftovers(disk / 'sweep') == []


def test_a_disk_that_is_full_when_a_signal_comes(monkeypatch, tmp_path):
    """What could not be saved is not called saved."""

    def full(path, tree, overwrite):
        raise ValueError('RESOURCE_EXHAUSTED: No space left on device')

    monkeypatch.setattr(checkpoint.ocp, 'save', full)
    options = small.quiet(checkpoint_seconds=0, num_devices=1)
    with pytest.raises(files.ResultsError, match=r'cannot write .*checkpoints.*No space left on device'):
        sweeps.run(small.settings(models=('ffn',), seq_lens=(2,), max_samples=8000), tmp_path, options)


@pytest.mark.slow
@pytest.mark.parametrize('workdir', ['/proc/sweep', '/dev/null', '/dev/null/sweep'])
def test_a_place_that_cannot_be_written(lab, workdir):
    code, output = lab.run(pathlib.Path(workdir))
    assert code == 1
    (line,) = output.strip().splitlines()
    assert line.startswith(f"error: workdir='{workdir}': must be a directory that can be written (")


@pytest.mark.slow
def test_a_read_only_directory(lab, undisturbed, small_disk):
    disk = small_disk('4m')
    shutil.copytree(undisturbed, disk / 'sweep')
    subprocess.run(['mount', '-o', 'remount,ro', str(disk)], check=True)
    code, output = lab.run(disk / 'sweep')
    assert code == 1
    (line,) = output.strip().splitlines()
    assert line.endswith('must be a directory that can be written (Read-only file system)')
    assert len(results.load(disk / 'sweep', strict=True)) == 6
    assert set(monitor.status(disk / 'sweep')['state']) == {'done'}


@pytest.mark.parametrize(
    ('owner', 'name'),
    [(checkpoint, 'save'), (checkpoint, 'remove'), (session, 'tidy')],
    ids=lambda value: str(value)[-30:],
)
def test_a_directory_that_is_replaced_by_a_file_in_mid_run(monkeypatch, tmp_path, owner, name):
    original, workdir = getattr(owner, name), tmp_path / 'sweep'

    def replaced(*args, **options):
        result = original(*args, **options)
        if workdir.is_dir():
            workdir.rename(tmp_path / 'moved')
            workdir.write_text('')
        return result

    monkeypatch.setattr(owner, name, replaced)
    with pytest.raises(files.ResultsError) as error:
        sweeps.run(small.settings(models=('ffn',)), workdir, small.quiet(checkpoint_seconds=0))
    assert str(workdir) in str(error.value)
    assert '\n' not in str(error.value)


# Damaged and foreign files


def foreign_table():
    return pd.DataFrame({'seed': [0], 'loss': [0.5]})


def newer_version(path):
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({**table.schema.metadata, table_format.FORMAT_KEY: b'3'}), path)


def without_roles(path):
    table = pq.read_table(path)
    metadata = {key: value for key, value in table.schema.metadata.items() if key != table_format.ROLES_KEY}
    pq.write_table(table.replace_schema_metadata(metadata), path)


DAMAGES = {
    'empty': lambda path: path.write_bytes(b''),
    'truncated': lambda path: path.write_bytes(path.read_bytes()[:-40]),
    'text': lambda path: path.write_text('seed,loss\n0,1\n'),
    'foreign': lambda path: foreign_table().to_parquet(path),
    'newer': newer_version,
    'without roles': without_roles,
    'pickle': lambda path: path.write_bytes(pickle.dumps(foreign_table())),
}


@pytest.mark.slow
@pytest.mark.parametrize('kind', DAMAGES)
def test_a_damaged_table_is_named(undisturbed, copy, kind):
    damaged = next((copy / 'rows').glob('ffn*'))
    DAMAGES[kind](damaged)
    with pytest.warns(UserWarning, match=damaged.name):
        rows = results.load(copy)
    assert set(rows['model']) == {'transformer', 'rnn'}
    status = monitor.status(copy)
    assert list(status['state']) == ['done', 'done', 'left']
    assert damaged.name in status['note'].iloc[-1]
    refused(copy, re.escape(str(damaged)))


@pytest.mark.slow
def test_a_damaged_table_is_a_line_and_its_cell_can_be_run_again(lab, undisturbed, copy):
    damaged = next((copy / 'rows').glob('ffn*'))
    DAMAGES['truncated'](damaged)
    code, output = lab.run(copy)
    assert code == 1
    (line,) = output.strip().splitlines()
    assert line.startswith('error: ')
    assert str(damaged) in line
    damaged.unlink()
    lab.finish(copy)
    assert harness.tables(copy) == harness.tables(undisturbed)


def refused(workdir, words):
    """The sweep of a damaged directory runs nothing."""
    with pytest.raises(files.ResultsError, match=words) as error:
        sweeps.run(sweeps.Sweep(**harness.TINY, save_params=True), workdir, small.quiet())
    assert '\n' not in str(error.value)


@pytest.fixture(scope='module')
def killed(lab, tmp_path_factory):
    """A sweep that was killed, and its only checkpoint."""
    workdir = tmp_path_factory.mktemp('killed')
    code, _ = lab.run(workdir, {'models': ('ffn',)}, Death('qstr_jax.learners.online:Online.progress', call=6))
    assert code < 0
    (saved,) = [path for path in workdir.glob('checkpoints/*/*') if path.name.isdigit()]
    return workdir, saved.relative_to(workdir)


@pytest.mark.slow
def test_a_damaged_checkpoint_costs_time_and_nothing_else(lab, undisturbed, killed, tmp_path):
    """Every file cut short; `test_checkpoint` has other damage."""
    shutil.copytree(killed[0], tmp_path, dirs_exist_ok=True)
    saved = tmp_path / killed[1]
    for path in [path for path in saved.rglob('*') if path.is_file()]:
        DAMAGES['truncated'](path)
    code, output = lab.run(tmp_path, {'models': ('ffn',)})
    assert code == 0, output
    assert f'{saved.name} cannot be read' in output
    assert harness.tables(tmp_path).items() <= harness.tables(undisturbed).items()
    assert harness.leftovers(tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize('name', ['config.json', 'plan.json'])
@pytest.mark.parametrize('text', ['', '[]', '{"models": '])
def test_a_damaged_record_is_named(copy, name, text):
    (copy / name).write_text(text)
    refused(copy, f'^{re.escape(str(copy / name))} is damaged')


# No pickles, and no code run from data


def pickles_in(content):
    """Whether bytes are a pickle stream, from their beginning."""
    try:
        return len(list(pickletools.genops(content))) > 1
    except Exception:
        return False


def test_the_scanner_knows_a_pickle():
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickles_in(pickle.dumps({'a': np.zeros(3)}, protocol))
    assert not pickles_in(b'PAR1')


@pytest.mark.slow
def test_results_and_checkpoints_hold_no_pickles(lab, undisturbed, tmp_path):
    code, _ = lab.run(tmp_path, death=Death('qstr_jax.learners.online:Online.progress', call=3))
    assert code < 0
    found = [path for folder in (undisturbed, tmp_path) for path in folder.rglob('*') if path.is_file()]
    kinds = {path.relative_to(undisturbed if undisturbed in path.parents else tmp_path).parts[0] for path in found}
    assert {'rows', 'curves', 'params', 'checkpoints', 'config.json', 'plan.json'} <= kinds
    for path in found:
        content = path.read_bytes()
        assert not pickles_in(content), path
        assert b'pickle' not in content.lower(), path
        assert b'\x80\x04\x95' not in content, path  # how a pickle of protocol 4 begins
        if path.suffix == '.parquet':
            schema = pq.read_schema(path)
            assert not any(isinstance(kind, pa.BaseExtensionType) for kind in schema.types)
            own = {value for name, value in vars(table_format).items() if name.endswith('_KEY')}
            assert set(schema.metadata) == {b'pandas', *own}
            json.loads(schema.metadata[b'pandas'])
            json.loads(schema.metadata[table_format.ROLES_KEY])


def test_the_library_never_imports_pickle():
    for path in [*ROOT.glob('qstr_jax/**/*.py'), *ROOT.glob('experiments/*.py')]:
        text = path.read_text()
        for pattern in 'import pickle', 'cloudpickle', 'allow_pickle=True', r'\beval\(', r'\bexec\(', 'read_pickle':
            assert not re.search(pattern, text), (path, pattern)


class Bomb:
    """Makes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return pathlib.Path.touch, (self.path,)


@pytest.mark.slow
def test_a_hostile_directory_runs_no_code(undisturbed, copy, tmp_path):
    """Pickles in every place that is read, also where old versions of pyarrow did unpickle."""
    bang = tmp_path / 'bang'
    bomb = pickle.dumps(Bomb(bang))
    pickle.loads(bomb)
    assert bang.exists()
    bang.unlink()
    first, second, third = sorted((copy / 'rows').iterdir())
    first.write_bytes(bomb)
    table = pq.read_table(second)
    field = pa.field(
        'evil',
        pa.int64(),
        metadata={'ARROW:extension:name': 'arrow.py_extension_type', 'ARROW:extension:metadata': bomb},
    )
    hostile = table.append_column(field, pa.array([0] * len(table)))
    pq.write_table(signed(hostile.replace_schema_metadata(table.schema.metadata)), second)
    objects = pq.read_table(third).append_column('object', pa.array([bomb] * 2))
    pq.write_table(signed(objects), third)
    for path in copy.glob('params/*/*/**/*'):
        if path.is_file():
            path.write_bytes(bomb)
    with pytest.warns(UserWarning, match=first.name):
        assert len(results.load(copy)) == 4
    with pytest.warns(UserWarning, match=first.name):
        results.load_curves(copy)
    monitor.status(copy)
    settings = sweeps.Sweep(**harness.TINY)
    with pytest.raises(results.ResultsError, match='cannot be read'):
        sweeps.load_params(copy, sweeps.cells_of(settings)[0], sweeps.cells_of(settings)[0].lanes[0])
    for name in 'config.json', 'plan.json':
        (copy / name).write_bytes(bomb)
        with pytest.raises(results.ResultsError, match='is damaged'):
            files.read_json(copy / name)
    assert not bang.exists()
