"""Rows of code that was edited: never returned as those of the code that runs now, and never lost."""

import importlib
import json
import os
import shutil
import sys
import types

import pandas as pd
import pytest

import qstr_jax
from qstr_jax import columns, sweeps
from qstr_jax.report import commands
from qstr_jax.settings import registry
from qstr_jax.storage import checkpoint, files, merge, results
from qstr_jax.sweeps import monitor, programs, stale, training
from tests import small
from tests.stored import snapshot

MINE = """
import flax.linen as nn
from qstr_jax import models

class Mine(nn.Module):
    width: int

    @nn.compact
    def __call__(self, z_NxE):
        return 1.0 * nn.Dense(1)(nn.Dense(self.width)(z_NxE))[:, 0]

@models.register('mine')
def mine(task, width: int = 8):
    return Mine(width)
"""
LINK = """
from qstr_jax.tasks import links

@links.register('doubled')
def doubled(own: float = 5.0):
    return links.Link('doubled', lambda key, q, d: {}, lambda params, x_QxD: 2.0 * own * x_QxD[0, 0])
"""
TASK = """
import dataclasses
from qstr_jax import tasks

@tasks.register('scaled')
@dataclasses.dataclass(frozen=True)
class Scaled(tasks.QSTR):
    own: float = 5.0

    def draw_tokens(self, key, normal_GxD):
        return 2.0 * self.own * normal_GxD
"""
ENCODING = """
import jax.numpy as jnp
from qstr_jax.tasks import encoders

@encoders.register('plain')
def plain(key, task, own: float = 5.0):
    return 2.0 * own * jnp.eye(task.seq_len, task.encoding_dim)
"""
LEARNER = """
import dataclasses
import optax
from qstr_jax import learners

@learners.register('slow')
@dataclasses.dataclass(frozen=True)
class Slow(learners.Online):
    own: float = 5.0

    def transform(self, lane):
        return optax.chain(optax.clip(2.0 * self.own), super().transform(lane))
"""
OWN = {'models': 'mine', 'num_seeds': 1, 'max_samples': 160, 'threshold': 1e-9}


class Plugin:
    """A module of a user's that is written, and read as by a process that starts afterwards."""

    def __init__(self, folder):
        self._path = folder / 'my_edited.py'

    def write(self, source):
        self._path.write_text(source)
        os.utime(self._path, (0, 0))
        sys.modules.pop('my_edited', None)
        importlib.invalidate_caches()
        importlib.import_module('my_edited')


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, 'dont_write_bytecode', True)
    tables = registry._ENTRIES, columns._TABLE
    before = [dict(table) for table in tables]
    yield Plugin(tmp_path)
    for table, kept in zip(tables, before, strict=True):
        table.clear()
        table.update(kept)
    sys.modules.pop('my_edited', None)


def run(workdir, refresh=False, **changes):
    sweep = small.settings(**{**OWN, **changes})
    return sweeps.run(sweep, workdir / 'results', small.quiet(refresh=refresh))


def the_program(rows):
    (program,) = rows['program'].unique()
    return program


def test_rows_of_edited_code_are_refused_and_kept_aside(plugin, tmp_path):
    plugin.write(MINE)
    first = run(tmp_path, save_params=True)
    kept = {path.name: path.read_bytes() for path in tmp_path.glob('results/*/*.parquet')}
    plugin.write(MINE.replace('1.0 *', '3.0 *'))
    for seeds in 1, 2:  # whether rows would be returned, or added to
        with pytest.raises(
            results.ResultsError, match=r"another program \(changed: model 'mine' of my_edited\).*--refresh"
        ):
            run(tmp_path, num_seeds=seeds)
    pd.testing.assert_frame_equal(results.load(tmp_path / 'results'), first)
    again = run(tmp_path, refresh=True, save_params=True)
    assert the_program(again) != the_program(first)
    assert again['test_loss'][0] != first['test_loss'][0]
    assert {path.name: path.read_bytes() for path in tmp_path.glob('results/replaced/*/*/*.parquet')} == kept
    assert len(list(tmp_path.glob('results/replaced/*/params/*/*'))) == 1
    pd.testing.assert_frame_equal(run(tmp_path), again)
    pd.testing.assert_frame_equal(run(tmp_path, refresh=True), again)


def test_a_dry_run_tells_that_a_run_would_stop(plugin, tmp_path):
    plugin.write(MINE)
    run(tmp_path)
    before = snapshot(tmp_path / 'results')
    assert 'would stop' not in small.listed(small.settings(**OWN), tmp_path / 'results')
    plugin.write(MINE.replace('1.0 *', '3.0 *'))
    text = small.listed(small.settings(**OWN), tmp_path / 'results')
    assert 'a run would stop: the rows of mine-' in text
    assert "changed: model 'mine' of my_edited" in text
    assert snapshot(tmp_path / 'results') == before


def test_an_installed_plugin_is_seen_too(plugin, tmp_path, monkeypatch):
    folder = tmp_path / 'site-packages'
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    installed = Plugin(folder)
    installed.write(MINE)
    run(tmp_path)
    installed.write(MINE.replace('1.0 *', '3.0 *'))
    with pytest.raises(results.ResultsError, match="changed: model 'mine' of my_edited"):
        run(tmp_path)


def test_rows_of_edited_code_are_not_merged_with_those_before(plugin, tmp_path):
    for name, scale, rate in ('a', '1.0 *', 1e-3), ('b', '3.0 *', 2e-3), ('c', '1.0 *', 4e-3):
        plugin.write(MINE.replace('1.0 *', scale))
        run(tmp_path / name, learning_rate=rate)
    folders = {name: tmp_path / name / 'results' for name in 'abc'}
    with pytest.raises(results.ResultsError, match=r'mine-.*: rows of two programs'):
        merge.merge([folders['a'], folders['b']], tmp_path / 'both')
    assert not (tmp_path / 'both').exists()
    assert len(merge.merge([folders['a'], folders['c']], tmp_path / 'both')) == 2


def test_rows_that_another_worker_has_run_again_stay(plugin, tmp_path, monkeypatch):
    plugin.write(MINE)
    run(tmp_path)
    plugin.write(MINE.replace('1.0 *', '3.0 *'))
    real, others = stale.set_aside, []

    def late(*given):
        monkeypatch.setattr(stale, 'set_aside', real)
        others.append(run(tmp_path, refresh=True))
        return real(*given)

    monkeypatch.setattr(stale, 'set_aside', late)
    mine = run(tmp_path, refresh=True)
    pd.testing.assert_frame_equal(mine, others[0])
    assert len(list(tmp_path.glob('results/replaced/*'))) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ('source', 'changes', 'named', 'setting'),
    [
        (LINK, {'link': 'doubled'}, "link 'doubled'", 'doubled_own'),
        (TASK, {'task': 'scaled', 'test_task': 'scaled'}, "task 'scaled'", 'own'),
        (ENCODING, {'encoding': 'plain'}, "encoding 'plain'", 'plain_own'),
        (LEARNER, {'learners': 'slow'}, "learner 'slow'", 'own'),
    ],
)
def test_so_are_those_of_an_edited_task_link_encoding_or_learner(plugin, tmp_path, source, changes, named, setting):
    plugin.write(source)
    run(tmp_path, models='ffn', **changes)
    plugin.write(source.replace('2.0', '3.0'))
    with pytest.raises(results.ResultsError, match=f'changed: {named} of my_edited'):
        run(tmp_path, models='ffn', **changes)
    plugin.write(source.replace('5.0', '7.0'))  # another default
    with pytest.raises(results.ResultsError, match=f'{setting} was 5.0 and is 7.0; changed: {named} of my_edited'):
        run(tmp_path, models='ffn', **changes)


def test_another_default_is_another_program_and_is_named(plugin, tmp_path, capsys):
    plugin.write(MINE)
    first = run(tmp_path)
    plugin.write(MINE.replace('width: int = 8', 'width: int = 4'))
    with pytest.raises(results.ResultsError, match=r"mine_width was 8 and is 4; changed: model 'mine'"):
        run(tmp_path)
    assert list(results.load(tmp_path / 'results')['mine_width']) == [8]
    again = sweeps.run(small.settings(**OWN), tmp_path / 'results', small.quiet(refresh=True, progress=True))
    assert 'there already' not in capsys.readouterr().err  # since the row was set aside
    assert (list(again['mine_width']), list(again['cell'])) == ([4], list(first['cell']))


def test_nothing_is_traced_unless_the_code_has_changed_and_then_once(plugin, tmp_path, monkeypatch):
    made_by_a_package = types.ModuleType('made_by_a_package')  # as PyTorch makes torch.ops
    made_by_a_package.__file__ = '_of_no_folder.py'
    monkeypatch.setitem(sys.modules, 'made_by_a_package', made_by_a_package)
    plugin.write(MINE)
    first = run(tmp_path)
    traced, fingerprint = [], programs.fingerprint

    def count(*given):
        traced.append(given)
        return fingerprint(*given)

    monkeypatch.setattr(programs, 'fingerprint', count)
    monkeypatch.setattr(training, 'train', lambda *given: pytest.fail('a lane was run again'))
    pd.testing.assert_frame_equal(run(tmp_path), first)
    assert not traced
    plugin.write(MINE + '\n# A comment, which makes no other program.\n')
    for _ in range(2):
        pd.testing.assert_frame_equal(run(tmp_path), first)
    assert len(traced) == 1


def test_code_of_a_notebook_which_has_no_file_is_compared_every_time(plugin, tmp_path):
    noted = MINE.replace("'mine'", "'noted'")
    exec(noted, {'__name__': 'a_notebook'})
    first = run(tmp_path, models='noted')
    pd.testing.assert_frame_equal(run(tmp_path, models='noted'), first)
    exec(noted.replace('1.0 *', '3.0 *'), {'__name__': 'a_notebook'})
    with pytest.raises(results.ResultsError, match="model 'noted' of a_notebook"):
        run(tmp_path, models='noted')


def test_so_is_a_file_that_was_written_after_the_process_began(plugin, tmp_path):
    """What runs may have been read before."""
    plugin.write(MINE)
    first = run(tmp_path)
    os.utime(tmp_path / 'my_edited.py')
    pd.testing.assert_frame_equal(run(tmp_path), first)
    plugin.write(MINE.replace('1.0 *', '3.0 *'))
    os.utime(tmp_path / 'my_edited.py')
    with pytest.raises(results.ResultsError, match="model 'mine' of my_edited"):
        run(tmp_path)


def test_an_encoding_that_is_defined_again_in_a_notebook_is_the_new_one(plugin, tmp_path):
    """Its name is the same, by which JAX would take what it has traced before."""
    rows = []
    for factor in '2.0', '3.0':
        exec(ENCODING.replace('2.0', factor).replace("'plain'", "'noted'"), {'__name__': 'a_notebook'})
        rows.append(run(tmp_path / factor, models='ffn', encoding='noted'))
    assert rows[0]['test_loss'][0] != rows[1]['test_loss'][0]


@pytest.mark.parametrize('change', ['versions', 'no fingerprint'])
def test_rows_of_other_versions_or_without_a_fingerprint_are_taken_as_they_are(plugin, tmp_path, monkeypatch, change):
    plugin.write(MINE)
    first = run(tmp_path)
    (path,) = tmp_path.glob('results/rows/*')
    if change == 'versions':
        monkeypatch.setattr(qstr_jax, '__version__', '99.0')
    else:
        files.write_table(path, files.read_table(path).drop(columns='program'), path.stem)
    plugin.write(MINE.replace('1.0 *', '3.0 *'))
    rows = run(tmp_path, num_seeds=2)
    assert len(rows) == 2
    assert rows['test_loss'][0] == first['test_loss'][0]
    assert rows['program'].iloc[1] != the_program(first)


def test_rows_without_a_record_are_compared_with_what_the_code_makes(plugin, tmp_path):
    plugin.write(MINE)
    first = run(tmp_path)
    next(tmp_path.glob('results/provenance/*')).unlink()
    pd.testing.assert_frame_equal(run(tmp_path), first)
    next(tmp_path.glob('results/provenance/*')).unlink()  # which has noted that they are the same
    plugin.write(MINE.replace('1.0 *', '3.0 *'))
    for seeds in 1, 2:
        with pytest.raises(results.ResultsError, match=r'no record says what made them\): run again with --refresh'):
            run(tmp_path, num_seeds=seeds)
    pd.testing.assert_frame_equal(results.load(tmp_path / 'results'), first)


def test_a_checkpoint_of_another_program_is_not_continued(plugin, tmp_path, monkeypatch):
    plugin.write(MINE.replace('1.0 *', '3.0 *'))
    whole = run(tmp_path / 'whole')
    plugin.write(MINE)
    save = checkpoint.save

    def save_and_fail(*given, **options):
        save(*given, **options)
        raise files.ResultsError('full disk')

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, 'save', save_and_fail)
        patch.setattr(training, 'SECONDS_PER_CALL', 0.0)
        with pytest.raises(files.ResultsError, match='full disk'):
            sweeps.run(small.settings(**OWN), tmp_path / 'results', small.quiet(checkpoint_seconds=0.0))
    assert list(tmp_path.glob('results/checkpoints/*/*'))
    plugin.write(MINE.replace('1.0 *', '3.0 *'))
    pd.testing.assert_frame_equal(run(tmp_path), whole)


@pytest.mark.parametrize(('kept', 'reason'), [('*', 'changed: model'), ('[!p]*', 'no record says what made them')])
def test_a_worker_adds_no_rows_to_those_of_another_program(plugin, tmp_path, monkeypatch, kept, reason):
    """Two with other code have begun on an empty directory; the one that is later stops."""
    plugin.write(MINE.replace('1.0 *', '3.0 *'))
    run(tmp_path / 'other')
    plugin.write(MINE)
    train = training.train

    def train_late(*given):
        done = train(*given)
        for path in tmp_path.glob(f'other/results/{kept}/*'):
            shutil.copy(path, tmp_path / 'results' / path.parent.name)
        return done

    monkeypatch.setattr(training, 'train', train_late)
    with pytest.raises(results.ResultsError, match=rf'another program \({reason}'):
        run(tmp_path)
    pd.testing.assert_frame_equal(results.load(tmp_path / 'results'), results.load(tmp_path / 'other/results'))


@pytest.mark.slow
def test_selection_rows_of_a_tuned_sweep_are_refreshed_too(plugin, tmp_path):
    tuned = {'tune': {'learning_rate': (1e-3, 1e-2), 'num_seeds': 1}, 'learning_rate': None}
    plugin.write(MINE)
    first = run(tmp_path, **tuned)
    plugin.write(MINE.replace('1.0 *', '0.01 *'))
    with pytest.raises(results.ResultsError, match='another program'):
        run(tmp_path, **tuned)
    again = run(tmp_path, refresh=True, **tuned)
    selection = results.load(tmp_path / 'results/selection')
    assert the_program(again) == the_program(selection) != the_program(first)
    assert list(tmp_path.glob('results/selection/replaced/*/rows/*'))
    # Another rate is chosen, and the lanes at the old one are planned no more.
    assert again['learning_rate'][0] != first['learning_rate'][0]
    for folder in 'results', 'results/selection':
        assert monitor.status(tmp_path / folder)['left'].eq(0).all()


def test_provenance_tells_the_code_and_the_programs(plugin, tmp_path):
    plugin.write(MINE)
    rows = run(tmp_path)
    (path,) = tmp_path.glob('results/provenance/*')
    record = json.loads(path.read_text())
    assert {'qstr_jax', 'my_edited'} <= set(record['sources'])
    assert 'my_edited' in commands.plugins_of([record]).split(',')  # though no command line names it
    assert not any(name.partition('.')[0] in ('jax', 'numpy', 'pytest', 'json') for name in record['sources'])
    assert [batch['program'] for batch in record['batches']] == [the_program(rows)]
