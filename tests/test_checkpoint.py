"""States of lane batches on disk."""

import logging
import os
import pathlib

import jax
import numpy as np
import pytest
from etils import epath

from qstr_jax import sweeps
from qstr_jax.storage import checkpoint, files
from qstr_jax.sweeps import programs, training
from tests import helpers, small


@pytest.fixture(scope='module')
def trained():
    """Programs, problem and lanes of a lane batch, its final state, and its states after every call."""
    cell, lanes = small.cell('ffn'), sweeps.cells_of(small.settings())[0].lanes
    compiled = programs.compile_programs(cell.problem, len(lanes), jax.devices()[0])
    states = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, 'SECONDS_PER_CALL', 0.0)
        _, last = training.train(compiled, cell.problem, lanes, on_call=lambda s: states.append(jax.device_get(s)))
    assert len(states) > 3
    return compiled, cell.problem, lanes, jax.device_get(last), states


def assert_same(one, other):
    """Bit for bit, dtypes included."""
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())


def test_a_state_comes_back_bit_for_bit(trained, tmp_path):
    compiled, problem, _, _, states = trained
    checkpoint.save(epath.Path(tmp_path), states[1])
    found = checkpoint.load(epath.Path(tmp_path), programs.abstract_state(problem, compiled.size))
    assert_same(found, states[1])
    assert jax.tree.structure(found) == jax.tree.structure(states[1])


def test_training_goes_on_where_it_was(trained, tmp_path, monkeypatch):
    compiled, problem, lanes, last, states = trained
    monkeypatch.setattr(training, 'SECONDS_PER_CALL', 0.0)
    checkpoint.save(epath.Path(tmp_path), states[2])
    saved = checkpoint.load(epath.Path(tmp_path), programs.abstract_state(problem, compiled.size))
    seen = []
    _, end = training.train(compiled, problem, lanes, saved, lambda s: seen.append(int(np.max(s.checks))))
    assert seen[0] == 4
    assert_same(jax.device_get(end), last)


def test_only_the_newest_is_kept(trained, tmp_path):
    for state in trained[-1][:3]:
        checkpoint.save(epath.Path(tmp_path), state)
    assert os.listdir(tmp_path) == ['00000003']


def test_nothing_to_load(trained, tmp_path):
    abstract = programs.abstract_state(trained[1], 2)
    assert checkpoint.load(epath.Path(tmp_path) / 'none', abstract) is None
    assert checkpoint.load(epath.Path(tmp_path), abstract) is None
    (tmp_path / '00000009.orbax-checkpoint-tmp').mkdir()
    assert checkpoint.load(epath.Path(tmp_path), abstract) is None


@pytest.mark.parametrize('kind', ['pipe', 'sparse', 'link'])
def test_what_is_no_file_in_a_checkpoint_is_a_line(tmp_path, kind):
    """In the place of each of its files, which Orbax would open and read whole."""
    tree, path = {'w': np.arange(3.0)}, epath.Path(tmp_path) / 'saved'
    checkpoint.save_tree(path, tree)
    for file in [file for file in (tmp_path / 'saved').rglob('*') if file.is_file()]:
        content = file.read_bytes()
        file.unlink()
        if kind == 'pipe':
            os.mkfifo(file)
        elif kind == 'link':
            file.symlink_to('/dev/zero')
        else:
            file.touch()
            os.truncate(file, 2**31)
        with helpers.within(10), pytest.raises(files.ResultsError, match=r'is no file, but a|larger than its arrays'):
            checkpoint.load_tree(path, tree)
        file.unlink()
        file.write_bytes(content)
    np.testing.assert_array_equal(checkpoint.load_tree(path, tree)['w'], tree['w'])


def test_an_archive_that_unpacks_to_much_more_is_a_line(tmp_path):
    tree, path = {'w': np.arange(3.0)}, epath.Path(tmp_path) / 'saved'
    path.mkdir()
    np.savez_compressed(path / checkpoint.ARCHIVE, np.zeros(30_000_000))
    with pytest.raises(files.ResultsError, match='larger than its arrays'):
        checkpoint.load_tree(path, tree)


def damaged(path, content):
    """Writes `content` over every file of a checkpoint."""
    for file in [file for file in path.rglob('*') if file.is_file()]:
        file.write_bytes(content(file.read_bytes()))


@pytest.mark.parametrize(
    'content',
    [lambda old: b'', lambda old: old[: len(old) // 2], lambda old: b'\x80\x04K\x01.', lambda old: old[::-1]],
    ids=['empty', 'truncated', 'a pickle', 'reversed'],
)
def test_a_damaged_checkpoint_is_left_out_with_a_warning(trained, tmp_path, caplog, content):
    compiled, problem, _, _, states = trained
    folder = epath.Path(tmp_path)
    for number in 0, 1:  # as if a kill had come between a save and the removal of the one before
        checkpoint.save_tree(folder / f'{number + 1:08d}', checkpoint._as_dict(states[number]))
    damaged(tmp_path / '00000002', content)
    with caplog.at_level(logging.WARNING):
        found = checkpoint.load(folder, programs.abstract_state(problem, compiled.size))
    assert '00000002 cannot be read' in caplog.text
    assert_same(found, states[0])


def test_any_damaged_byte_of_the_numbers_is_noticed(trained, tmp_path):
    """Of the files that hold arrays, which Orbax does not check: never other numbers."""
    compiled, problem, _, _, states = trained
    checkpoint.save(epath.Path(tmp_path), states[0])
    data = sorted((p for p in tmp_path.rglob('d/*') if p.is_file()), key=lambda p: p.stat().st_size)[-2:]
    rng = np.random.default_rng(0)
    for _ in range(20):
        path = data[rng.integers(len(data))]
        whole = path.read_bytes()
        place = rng.integers(len(whole))
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :])
        found = checkpoint.load(epath.Path(tmp_path), programs.abstract_state(problem, compiled.size))
        path.write_bytes(whole)
        if found is not None:
            assert_same(found, states[0])


def test_a_checkpoint_of_another_structure_is_left_out(trained, tmp_path, caplog):
    compiled, problem, _, _, states = trained
    abstract = programs.abstract_state(problem, compiled.size)
    leaves = checkpoint._as_dict(states[0])
    folder = epath.Path(tmp_path)
    checkpoint.save_tree(folder / '00000003', {'w': np.zeros(3)})
    assert checkpoint.load(folder, abstract) is None
    checkpoint.save_tree(folder / '00000002', {**leaves, '0000': np.zeros((7, 7), np.float32)})
    assert checkpoint.load(folder, abstract) is None
    assert 'other shapes' in caplog.text
    checkpoint.save_tree(folder / '00000001', leaves)
    assert_same(checkpoint.load(folder, abstract), states[0])


def test_a_full_disk_is_a_line_and_leaves_nothing(tmp_path, monkeypatch):
    def full(path, tree, overwrite):
        pathlib.Path(f'{path}.orbax-checkpoint-tmp').mkdir()
        raise ValueError('RESOURCE_EXHAUSTED: Failed to write: No space left on device [os_error_code=28]\nmore')

    monkeypatch.setattr(checkpoint.ocp, 'save', full)
    with pytest.raises(files.ResultsError, match=r'cannot write .*: RESOURCE_EXHAUSTED: .* No space left on device$'):
        checkpoint.save_tree(epath.Path(tmp_path) / '00000001', {'a': np.zeros(3)})
    assert os.listdir(tmp_path) == []


def test_a_place_that_cannot_be_written_is_a_line(tmp_path, capfd):
    (tmp_path / 'file').write_text('')
    with pytest.raises(files.ResultsError, match='cannot write'):
        checkpoint.save_tree(epath.Path(tmp_path) / 'file' / '1', {'a': np.zeros(3)})
    assert 'Traceback' not in capfd.readouterr().err


def test_remove(trained, tmp_path):
    folder = epath.Path(tmp_path) / 'batch'
    checkpoint.remove(folder)
    checkpoint.save(folder, trained[-1][0])
    checkpoint.remove(folder)
    assert not folder.exists()


def test_a_checkpoint_of_other_lanes_is_left_out(trained, tmp_path, caplog):
    """Of the same shapes: nothing but its identity tells."""
    compiled, problem, _, _, states = trained
    abstract = programs.abstract_state(problem, compiled.size)
    folder = epath.Path(tmp_path)
    checkpoint.save(folder, states[0], 'cell: seed0')
    assert checkpoint.load(folder, abstract, 'cell: seed1') is None
    assert "not those that were saved for 'cell: seed1'" in caplog.text
    assert_same(checkpoint.load(folder, abstract, 'cell: seed0'), states[0])
    checkpoint.save(folder, states[0])  # Nobody's is not anyone's.
    assert checkpoint.load(folder, abstract, 'cell: seed1') is None


def test_a_saved_tree_names_no_folder_of_this_machine(tmp_path):
    checkpoint.save_tree(epath.Path(tmp_path) / '00000001', {'a': np.zeros(3)})
    for path in [path for path in tmp_path.rglob('*') if path.is_file()]:
        assert str(tmp_path).encode() not in path.read_bytes()
