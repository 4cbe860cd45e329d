"""Results directories on object stores, by a bucket that is a folder here: they have no file locks."""

import jax
import pytest
from etils.epath import gpath
from fsspec.implementations.dirfs import DirFileSystem
from fsspec.implementations.local import LocalFileSystem

from qstr_jax import sweeps
from qstr_jax.storage import locks, results
from tests import small

SWEEP = {'models': ('ffn',), 'seq_lens': (2, 3), 'num_seeds': 2, 'lanes_per_batch': 1, 'max_samples': 400}


class Bucket(DirFileSystem):
    """What fsspec's file systems of object stores are like: addresses in, names without the protocol out."""

    def _join(self, path):
        if isinstance(path, str):
            return super()._join(path.split('://', 1)[-1])
        return [self._join(one) for one in path]


@pytest.fixture(params=['gs', 's3'])
def protocol(request):
    """Of an object store."""
    return request.param


@pytest.fixture
def workdir(protocol):
    """The address of a sweep."""
    return f'{protocol}://bucket/sweep'


@pytest.fixture
def bucket(tmp_path, monkeypatch, protocol):
    """The folder behind the bucket."""
    (tmp_path / 'bucket').mkdir()
    store = Bucket(path=str(tmp_path), fs=LocalFileSystem(), skip_instance_cache=True)
    monkeypatch.setattr(gpath._PREFIX_TO_BACKEND[protocol], 'fs', lambda path: store)
    return tmp_path / 'bucket'


def process(monkeypatch, index, count):
    """Makes this one process of a job of several."""
    monkeypatch.setattr(jax, 'process_index', lambda *_: index)
    monkeypatch.setattr(jax, 'process_count', lambda *_: count)


@pytest.mark.slow
def test_two_processes_of_a_job_have_cells_of_their_own_and_leave_all_rows(bucket, workdir, monkeypatch, tmp_path):
    """Each in turn, twice: what is there is not run again."""
    sweep = small.settings(**SWEEP)
    alone = sweeps.run(sweep, tmp_path / 'alone', small.quiet())
    own = []
    for index in 0, 1, 0:
        process(monkeypatch, index, 2)
        rows = sweeps.run(sweep, workdir, small.quiet(checkpoint_seconds=1e6))
        own.append(len(rows))
    assert own == [2, 4, 4]
    assert len(list((bucket / 'sweep/rows').iterdir())) == 2
    assert len(list((bucket / 'sweep/provenance').iterdir())) == 2
    assert not list((bucket / 'sweep/locks').iterdir())
    names = [name for name in alone.columns if 'seconds' not in name]
    assert results.load(workdir)[names].equals(alone[names])


def test_a_tuned_sweep_of_several_processes_is_refused_before_any_work(bucket, workdir, monkeypatch):
    process(monkeypatch, 0, 2)
    sweep = small.settings(**{**SWEEP, 'learning_rate': None, 'tune': {'learning_rate': 'auto'}})
    with pytest.raises(ValueError, match=f'workdir={workdir}: has no file locks') as caught:
        sweeps.run(sweep, workdir, small.quiet())
    assert '\n' not in str(caught.value)
    assert not list(bucket.iterdir())


def test_which_directories_have_locks(tmp_path):
    assert locks.has_locks(tmp_path)
    assert not locks.has_locks('gs://bucket/sweep')
