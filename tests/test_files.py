"""Files that appear whole or not at all."""

import errno
import json
import os
import pathlib
import subprocess
import time
import types

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from etils import epath

from qstr_jax import columns
from qstr_jax.storage import files, table_format
from tests import helpers

FRAME = pd.DataFrame({'name': ['a', 'b'], 'loss': np.array([0.1, np.nan], np.float32), 'seed': [0, 1]}).assign(
    samples=pd.array([640, None], 'Int64'), width=None
)


def dead_pid():
    """Of a process that is gone."""
    process = subprocess.Popen(['true'])
    process.wait()
    return process.pid


def test_tables_come_back_as_they_were(tmp_path):
    files.write_table(tmp_path / 'table.parquet', FRAME)
    pd.testing.assert_frame_equal(files.read_table(tmp_path / 'table.parquet'), FRAME)


def test_lists_come_back(tmp_path):
    """Table 1 has them."""
    files.write_table(tmp_path / 'table', pd.DataFrame({'N': [[4, 8], []]}))
    assert [list(one) for one in files.read_table(tmp_path / 'table')['N']] == [[4, 8], []]


def test_the_same_table_has_the_same_bytes_however_often_it_is_read_and_written(tmp_path):
    files.write_table(tmp_path / 'one', FRAME)
    files.write_table(tmp_path / 'two', files.read_table(tmp_path / 'one'))
    assert (tmp_path / 'one').read_bytes() == (tmp_path / 'two').read_bytes()


def test_columns_may_have_any_names(tmp_path):
    """Tables of a report are kept in the same form as rows."""
    table = pd.DataFrame({'2.5 %': [0.1], 'N': [3], 'mean of all': ['x']})
    files.write_table(tmp_path / 'table', table)
    pd.testing.assert_frame_equal(files.read_table(tmp_path / 'table'), table)
    assert not columns.is_declared('N')


def test_json_comes_back(tmp_path):
    files.write_json(tmp_path / 'a.json', {'g': 'Hermite ²', 'n': [1, 2.5, None]})
    assert files.read_json(tmp_path / 'a.json') == {'g': 'Hermite ²', 'n': [1, 2.5, None]}


@pytest.mark.parametrize('text', ['', '{"a": 1', '[1]', '3', '\udcff'], ids=repr)
def test_damaged_json_is_named(tmp_path, text):
    path = tmp_path / 'a.json'
    path.write_bytes(text.encode(errors='surrogateescape'))
    with pytest.raises(files.ResultsError, match=r'a\.json is damaged'):
        files.read_json(path)


def test_what_json_says_has_a_digest_which_is_no_part_of_it(tmp_path):
    path = tmp_path / 'a.json'
    files.write_json(path, {'b': [1e-05, float('inf')], 'a': {}})
    assert list(json.loads(path.read_text())) == ['digest', 'b', 'a']
    assert list(files.read_json(path)) == ['b', 'a']
    path.write_text(json.dumps(json.loads(path.read_text())))  # other blanks say nothing else
    assert list(files.read_json(path)) == ['b', 'a']


def test_no_flipped_bit_of_json_goes_unseen(tmp_path):
    """Every third of them is tried."""
    path = tmp_path / 'a.json'
    files.write_json(path, {'samples': [64, 0.25, 1e-3], 'model': 'ffn', 'is_search': True, 'none': None})
    whole = path.read_bytes()
    for place in range(0, 8 * len(whole), 3):
        flipped = bytearray(whole)
        flipped[place // 8] ^= 1 << place % 8
        path.write_bytes(bytes(flipped))
        with pytest.raises(files.ResultsError, match=r'a\.json is damaged'):
            files.read_json(path)


@pytest.mark.parametrize('text', ['{}', '{"a": 1}', '{"digest": 3}', '{"digest": null, "a": 1}'])
def test_json_without_its_digest_is_a_line(tmp_path, text):
    (tmp_path / 'a.json').write_text(text)
    with pytest.raises(files.ResultsError, match=r'it has no digest|its content is not what was written'):
        files.read_json(tmp_path / 'a.json')


def test_json_of_a_thousand_levels_is_a_line_even_if_it_is_signed(tmp_path):
    value = {}
    for _ in range(900):
        value = {'a': value}
    files.write_json(tmp_path / 'a.json', value)
    with pytest.raises(files.ResultsError, match=r'is damaged \(more than 64 levels\)'):
        files.read_json(tmp_path / 'a.json')


def test_names_that_are_no_utf_8_can_be_written(tmp_path):
    odd = os.fsdecode(b'run\xff')
    files.write_text(tmp_path / 'a.txt', f'{odd} ²')
    assert (tmp_path / 'a.txt').read_text(encoding='utf-8') == 'run\\udcff ²'
    files.write_json(tmp_path / 'a.json', {'folder': odd})
    assert files.read_json(tmp_path / 'a.json') == {'folder': odd}


def pipe(path):
    os.mkfifo(path)


def link(path):
    files.write_json(path.parent / 'elsewhere', {})
    path.symlink_to(path.parent / 'elsewhere')


def sparse(path):
    with path.open('wb') as file:
        file.truncate(2 * 2**30)


READERS = {
    'record': files.read_json,
    'table': files.read_table,
    'picture': lambda path: files.read_bytes(path, 'picture'),
    'text': lambda path: files.read_bytes(path, 'text'),
}


@pytest.mark.parametrize('kind', READERS)
@pytest.mark.parametrize(
    ('make', 'words'),
    [
        (pipe, 'is no file but a folder, a pipe or a device'),
        (link, 'is a symbolic link, which is not followed'),
        (sparse, 'has 2,147,483,648 bytes, a .* has at most'),
    ],
)
def test_only_files_of_a_sane_size_are_read(tmp_path, kind, make, words):
    make(tmp_path / 'odd')
    with helpers.within(10), pytest.raises(files.ResultsError, match=rf'odd {words}'):
        READERS[kind](tmp_path / 'odd')


def test_a_table_of_a_thousand_million_equal_numbers_is_a_line(tmp_path, monkeypatch):
    """It has few bytes; here the limit is lowered instead."""
    files.write_table(tmp_path / 'table', FRAME)
    monkeypatch.setitem(files.MOST_VALUES, 'table', 2 * len(FRAME.columns) - 1)
    with pytest.raises(files.ResultsError, match=r'table is damaged \(more than 9 values\)'):
        files.read_table(tmp_path / 'table')


def test_an_interrupted_write_changes_nothing(tmp_path):
    files.write_json(tmp_path / 'a.json', {'a': 1})

    def write(temporary):
        temporary.write_text('half of it')
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        files.write_atomically(tmp_path / 'a.json', write)
    assert files.read_json(tmp_path / 'a.json') == {'a': 1}
    assert os.listdir(tmp_path) == ['a.json']


def test_while_a_file_is_written_nothing_is_there(tmp_path):
    seen = []

    def write(temporary):
        temporary.write_text('{}')
        seen.extend(file.name for file in tmp_path.iterdir())

    files.write_atomically(tmp_path / 'a.json', write)
    assert 'a.json' not in seen
    assert len(seen) == 1


def test_a_full_disk_is_a_line(tmp_path, monkeypatch):
    files.write_table(tmp_path / 'table', FRAME)
    before = (tmp_path / 'table').read_bytes()

    def full(table, file, **options):
        file.write(b'PAR1')
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(pq, 'write_table', full)
    with pytest.raises(files.ResultsError, match=r'cannot write .*table: No space left on device$'):
        files.write_table(tmp_path / 'table', FRAME)
    assert (tmp_path / 'table').read_bytes() == before
    assert os.listdir(tmp_path) == ['table']


def test_a_place_that_cannot_be_written_is_a_line(tmp_path):
    (tmp_path / 'file').write_text('')
    for path in tmp_path / 'file' / 'a.json', pathlib.Path('/proc/a.json'):
        with pytest.raises(files.ResultsError, match='cannot write'):
            files.write_json(path, {})
    deep = tmp_path.joinpath(*['a'] * 1800)
    for path in tmp_path / 'file', tmp_path / 'file' / 'a', pathlib.Path('/proc/a'), deep, deep.joinpath(*['a'] * 1200):
        with pytest.raises(files.ResultsError, match='must be a directory that can be written'):
            files.make_folder(path)


def test_truncated_tables_are_named_at_any_length(tmp_path):
    path = tmp_path / 'table.parquet'
    files.write_table(path, FRAME)
    whole = path.read_bytes()
    for length in [*range(0, len(whole), 97), len(whole) - 1]:
        path.write_bytes(whole[:length])
        with pytest.raises(files.ResultsError, match=r'table\.parquet is damaged'):
            files.read_table(path)


def test_foreign_newer_and_older_tables_are_refused(tmp_path):
    FRAME.to_parquet(tmp_path / 'foreign')
    with pytest.raises(files.ResultsError, match='was not written by qstr_jax'):
        files.read_table(tmp_path / 'foreign')
    table = pa.Table.from_pandas(FRAME)
    for found in '99', '1':
        table = table.replace_schema_metadata({**table.schema.metadata, table_format.FORMAT_KEY: found.encode()})
        pq.write_table(table, tmp_path / found)
        with pytest.raises(files.ResultsError, match=rf'has format {found}, this version reads 2$'):
            files.read_table(tmp_path / found)
    (tmp_path / 'text').write_text('seed,loss\n0,0.5\n')
    with pytest.raises(files.ResultsError, match='text is damaged'):
        files.read_table(tmp_path / 'text')


def test_leftovers_of_the_dead_go_and_those_of_the_living_stay(tmp_path):
    def leave(owner, age=0):
        path = tmp_path / f'.rows.parquet.{owner}-0123abcd.tmp'
        path.write_text('half')
        os.utime(path, 2 * (time.time() - age,))
        return path

    here = files.machine()
    dead, living = leave(f'{here}-{dead_pid()}'), leave(f'{here}-{os.getpid()}')
    other, old = leave('elsewhere-1'), leave('elsewhere-2', age=files.LEFTOVER_SECONDS + 60)
    users = tmp_path / '.mine.tmp'
    users.write_text('')
    files.remove_leftovers(epath.Path(tmp_path))
    assert [path.exists() for path in (dead, living, other, old, users)] == [False, True, True, False, True]


def test_a_temporary_file_of_ours_is_recognised(tmp_path):
    assert files.LEFTOVER.match(files.temporary_path(epath.Path(tmp_path) / 'a.json').name)


def test_a_process_of_another_container_or_start_is_not_taken_for_a_dead_one(tmp_path, monkeypatch):
    path, stat = epath.Path(tmp_path) / 'a.json', os.stat
    theirs = files.temporary_path(path)
    theirs.write_text('half')
    monkeypatch.setattr(files, 'is_running', lambda pid: False)
    with monkeypatch.context() as other:
        inode = stat('/proc/self/ns/pid').st_ino + 1 if os.path.exists('/proc/self/ns/pid') else 1
        namespace = types.SimpleNamespace(st_ino=inode)
        other.setattr(os, 'stat', lambda path, **more: namespace if path == '/proc/self/ns/pid' else stat(path, **more))
        files.remove_leftovers(path.parent)
    assert theirs.exists()
    files.remove_leftovers(path.parent)
    assert not theirs.exists()


def test_is_running():
    assert files.is_running(os.getpid())
    assert files.is_running(1)
    assert not files.is_running(dead_pid())
    assert not files.is_running(10**20)


def test_digest_depends_on_every_value():
    assert files.digest([0, 1], 2) == files.digest([0, 1], 2)
    assert files.digest([0, 1], 2) != files.digest([0, 1], 3)
    assert len(files.digest()) == 8
    json.dumps(files.digest(1.5))
