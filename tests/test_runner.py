"""A sweep into a directory: what is run, what is kept, what is refused."""

import json
import os
import signal
import time

import jax
import numpy as np
import pandas as pd
import pytest
from flax import linen as nn

from qstr_jax import models, sweeps, tasks
from qstr_jax.learners import online, risks
from qstr_jax.storage import checkpoint, files, results
from qstr_jax.sweeps import cells, runner, training, worker
from tests import harness, helpers, small

init_lane = helpers.quick_jit(online.init_lane, static_argnames='problem')
prompt_error = helpers.quick_jit(risks.prompt_error, static_argnames=('module', 'task'))

# Those that every model has.
PROBES = ('param_norm', 'retrieval_share', 'retrieval_mass')


@pytest.fixture(scope='module')
def workdir(tmp_path_factory):
    """A finished sweep of two models and two seeds, with parameters and probes."""
    path = tmp_path_factory.mktemp('sweep')
    sweeps.run(small.settings(models=('transformer', 'ffn'), save_params=True, probes=PROBES), path, small.quiet())
    return path


def test_a_row_per_lane_with_the_promised_columns(workdir):
    rows = results.load(workdir)
    assert len(rows) == 4
    promised = 'model task seq_len sparsity seed threshold samples_to_threshold outcome learner num_samples'
    assert set(promised.split()) <= set(rows.columns)
    assert set(rows['outcome']) == {'reached'}
    assert (rows['samples_to_threshold'] % 80 == 0).all()
    assert (rows['test_loss'] < 0.9).all()
    assert rows['encoding_equal_pairs'].eq(0).all()
    is_transformer = rows['model'] == 'transformer'
    assert rows.loc[is_transformer, 'transformer_mlp_width'].eq(16).all()
    assert rows.loc[~is_transformer, 'transformer_mlp_width'].isna().all()


def test_float64_is_refused_before_any_work(tmp_path):
    with jax.enable_x64(True), pytest.raises(ValueError, match='JAX_ENABLE_X64=1: sweeps train in float32'):
        sweeps.run(small.settings(), tmp_path / 'results', small.quiet())
    assert not (tmp_path / 'results').exists()


def test_a_share_without_cells_says_so(tmp_path, capsys):
    options = small.quiet(progress=True, shard_index=3, num_shards=4)
    assert sweeps.run(small.settings(models=('ffn',), seq_lens=(2, 3)), tmp_path, options).empty
    assert 'share 3 of 4 has no cells' in capsys.readouterr().err.splitlines()


def test_a_repeated_run_says_what_is_there(workdir, tmp_path, capsys):
    sweep = small.settings(models=('transformer', 'ffn'), save_params=True, probes=PROBES)
    sweeps.run(sweep, workdir, small.quiet(progress=True))
    assert '4 of 4 lanes are there already' in capsys.readouterr().err.splitlines()


def test_probes_add_columns(workdir):
    rows = results.load(workdir).set_index('model')
    assert (rows['param_norm'] > 0).all()
    assert rows.loc['transformer', 'retrieval_share'].between(0, 1).all()
    assert rows.loc['transformer', 'retrieval_mass'].between(0, 1).all()
    assert rows.loc['ffn', ['retrieval_share', 'retrieval_mass']].isna().all(axis=None)


def test_curves_have_an_entry_per_check(workdir):
    rows, curves = results.load(workdir), results.load_curves(workdir)
    for _, row in rows.iterrows():
        curve = curves[(curves['model'] == row['model']) & (curves['seed'] == row['seed'])]
        assert curve['samples'].max() == row['num_samples']
        assert len(curve) == row['num_samples'] // 80
        assert curve['test_loss'].iloc[-1] == row['test_loss']


@pytest.mark.slow
def test_kept_parameters_give_the_reported_loss(workdir):
    rows = results.load(workdir).set_index(['model', 'seed'])
    sweep = small.settings(models=('transformer', 'ffn'))
    for cell in sweeps.cells_of(sweep):
        problem = cell.problem
        for lane in sweeps.cells_of(sweep)[0].lanes:
            params = sweeps.load_params(workdir, cell, lane)
            data, _ = init_lane(lane, problem)
            prompts = jax.device_get(data.test_prompts)
            errors = [
                prompt_error(
                    problem.module,
                    params,
                    jax.tree.map(lambda leaf, i=i: leaf[i], prompts),
                    task=problem.test_task,
                    task_draw=data.task_draw,
                )
                for i in range(64)
            ]
            assert float(np.mean(errors)) == pytest.approx(rows.loc[(cell.model, lane.seed), 'test_loss'], rel=1e-4)


def test_what_is_there_is_not_run_again(workdir, monkeypatch):
    before = {path: path.read_bytes() for path in workdir.glob('*/*.parquet')}
    monkeypatch.setattr('qstr_jax.sweeps.training.train', lambda *args: pytest.fail('a lane was run again'))
    sweeps.run(small.settings(models=('ffn',), save_params=True), workdir, small.quiet())
    assert before == {path: path.read_bytes() for path in workdir.glob('*/*.parquet')}


@pytest.mark.slow
def test_more_seeds_lengths_and_models_add_to_a_directory(tmp_path):
    sweeps.run(small.settings(models=('ffn',)), tmp_path, small.quiet())
    first = results.load(tmp_path)
    sweeps.run(small.settings(models=('ffn',), num_seeds=3), tmp_path, small.quiet())
    rows = sweeps.run(small.settings(models=('transformer', 'ffn'), seq_lens=(2,)), tmp_path, small.quiet())
    assert rows.groupby(['model', 'seq_len']).size().to_dict() == {
        ('ffn', 2): 2, ('ffn', 3): 3, ('transformer', 2): 2,
    }  # fmt: skip
    kept = rows[(rows['model'] == 'ffn') & (rows['seq_len'] == 3) & (rows['seed'] < 2)]
    pd.testing.assert_frame_equal(kept[first.columns].reset_index(drop=True), first, check_dtype=False)
    asked = [(sweep['models'], sweep['settings']['task.seq_len'], sweep['num_seeds']) for sweep in config_of(tmp_path)]
    assert asked == [(['ffn'], [3], 2), (['ffn'], [3], 3), (['transformer', 'ffn'], [2], 2)]


def config_of(workdir):
    """The sweeps that a directory records."""
    return json.loads((workdir / 'config.json').read_text())['sweeps']


@pytest.mark.slow
def test_sweeps_with_other_settings_share_a_directory(tmp_path, monkeypatch):
    """Each keeps its rows, bit for bit as in a directory of its own, and neither is run again."""
    one = small.settings(models=('ffn',), num_seeds=1)
    other = one.replace(threshold=0.95, learning_rate=1e-2, **{'ffn.widths': (8,)})
    for name, asked in ('one', [one]), ('other', [other]), ('both', [one, other]):
        for sweep in asked:
            sweeps.run(sweep, tmp_path / name, small.quiet())
    both = {path.name: path.read_bytes() for path in (tmp_path / 'both').glob('*/*.parquet')}
    for name in 'one', 'other':
        alone = {path.name: path.read_bytes() for path in (tmp_path / name).glob('*/*.parquet')}
        assert alone.items() <= both.items()
    rows, curves = results.load(tmp_path / 'both'), results.load_curves(tmp_path / 'both')
    for table in rows, curves:
        assert set(zip(table['threshold'], table['learning_rate'], table['ffn_widths'], strict=True)) == {
            (0.9, 3e-3, '16,16'),
            (0.95, 1e-2, '8'),
        }
    assert rows['cell'].nunique() == 2
    monkeypatch.setattr('qstr_jax.sweeps.training.train', lambda *args: pytest.fail('a lane was run again'))
    for sweep in one, other:
        pd.testing.assert_frame_equal(sweeps.run(sweep, tmp_path / 'both', small.quiet()), rows)
    assert config_of(tmp_path / 'both') == [one.as_json(), other.as_json()]


@pytest.mark.slow
def test_lanes_of_another_number_of_seeds_are_taken_up(tmp_path, monkeypatch):
    """A stopped run of two seeds goes on as one of three: the saved lanes continue, the finished ones stay."""
    sweep = small.settings(models=('ffn',), num_seeds=2, lanes_per_batch=1, threshold=1e-9, max_samples=1600)
    sweeps.run(sweep.replace(num_seeds=3), tmp_path / 'whole', small.quiet())
    monkeypatch.setattr(training, 'SECONDS_PER_CALL', 0.0)
    saves, save = [], checkpoint.save

    def stop(folder, state_K, identity):
        save(folder, state_K, identity)
        saves.append(int(state_K.checks[0]))
        if len(saves) == 24:  # the second seed, after some checks
            handler = signal.getsignal(signal.SIGTERM)
            os.kill(os.getpid(), signal.SIGTERM)
            while signal.getsignal(signal.SIGTERM) is handler:  # the main thread has not woken up yet
                time.sleep(0.001)

    monkeypatch.setattr(checkpoint, 'save', stop)
    with pytest.raises(sweeps.Interrupted):
        sweeps.run(sweep, tmp_path / 'parts', small.quiet(checkpoint_seconds=0.0))
    assert list(results.load(tmp_path / 'parts')['seed']) == [0]
    first_checks = []
    monkeypatch.setattr(
        checkpoint, 'save', lambda folder, state_K, identity: first_checks.append(int(state_K.checks[0]))
    )
    sweeps.run(sweep.replace(num_seeds=3), tmp_path / 'parts', small.quiet(checkpoint_seconds=0.0))
    assert first_checks[0] > 2  # the second seed goes on
    assert 1 in first_checks  # the third begins
    for path in (tmp_path / 'whole').glob('*/*.parquet'):
        assert (tmp_path / 'parts' / path.relative_to(tmp_path / 'whole')).read_bytes() == path.read_bytes()
    assert list((tmp_path / 'parts' / 'checkpoints').iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize('num_devices', [1, 2, 3])
def test_several_sweeps_side_by_side_leave_the_rows_of_each_alone(num_devices, tmp_path, capsys, monkeypatch):
    tuned = {'learning_rate': None, 'tune': {'learning_rate': (3e-3, 1e-2), 'num_seeds': 1}, 'seq_lens': 2}
    tasks = 'qstr', 'simple_qstr'
    several = [small.settings(models=('ffn',), preset='standard', task=task, **tuned) for task in tasks]
    for sweep in several:
        sweeps.run(sweep, tmp_path / 'one_by_one', small.quiet(num_devices=1))
    monkeypatch.setattr(runner, 'TELLING_SECONDS', 0.0)
    rows = sweeps.run_all(several, tmp_path / 'both', small.quiet(num_devices=num_devices, progress=True))
    assert set(rows['task']) == set(tasks)
    for path in (tmp_path / 'one_by_one').rglob('*.parquet'):
        assert (tmp_path / 'both' / path.relative_to(tmp_path / 'one_by_one')).read_bytes() == path.read_bytes()
    error = capsys.readouterr().err
    # Side by side both take about as long, so that the first one says nothing of the second.
    assert ('1 of 2 sweeps are done, about ' if num_devices == 1 else '1 of 2 sweeps are done') in error
    assert '2 of 2' not in error


def test_an_error_of_one_of_several_sweeps_ends_the_others(tmp_path, monkeypatch):
    """What is said is the error, not that the others were stopped; their running lanes are saved."""
    endless = {'threshold': 1e-9, 'max_samples': 8_000_000}  # a minute, if nobody stopped it
    several = [small.settings(models=('ffn',), task=task) for task in ('qstr', 'simple_qstr')]
    several[0] = several[0].replace(**endless)
    write, events = results.add, []

    def add(workdir, cell_id, rows, curves):
        if 'simple_qstr' in cell_id:
            raise results.ResultsError('the disk is full')
        events.append(cell_id)
        write(workdir, cell_id, rows, curves)

    monkeypatch.setattr(results, 'add', add)
    with pytest.raises(results.ResultsError, match='the disk is full'):
        sweeps.run_all(several, tmp_path, small.quiet(num_devices=2))
    assert events == []
    assert len(list((tmp_path / 'checkpoints').iterdir())) == 1


def test_no_device_works_for_two_sweeps_at_once(tmp_path, monkeypatch):
    """Three devices for two sweeps: the third helps one of them at a time."""
    several = [small.settings(models=('ffn',), task=task, num_seeds=2) for task in ('qstr', 'simple_qstr')]
    work, busy, twice = worker.Worker.work, set(), []

    def watched(self, job):
        if self._device in busy:
            twice.append(self._device)
        busy.add(self._device)
        try:
            return work(self, job)
        finally:
            busy.discard(self._device)

    monkeypatch.setattr(worker.Worker, 'work', watched)
    assert len(sweeps.run_all(several, tmp_path, small.quiet(num_devices=3))) == 4
    assert twice == []


def test_no_sweep_is_an_error(tmp_path):
    with pytest.raises(ValueError, match='several='):
        sweeps.run_all([], tmp_path)


@pytest.mark.slow
def test_results_do_not_depend_on_order_or_devices(tmp_path):
    """The same bytes from one device and from two, and with the models the other way round."""
    names = ('transformer', 'ffn')
    sweep = small.settings(models=names, num_seeds=3, lanes_per_batch=1)
    sweeps.run(sweep, tmp_path / 'one', small.quiet(num_devices=1))
    other = small.settings(models=names[::-1], num_seeds=3, lanes_per_batch=1)
    sweeps.run(other, tmp_path / 'two', small.quiet(num_devices=2))
    tables = [harness.tables(tmp_path / name) for name in ('one', 'two')]
    assert len(tables[0]) == 4
    assert tables[0] == tables[1]


def test_a_directory_that_cannot_be_used(tmp_path):
    file = tmp_path / 'file'
    file.write_text('')
    with pytest.raises(results.ResultsError, match=r'workdir=.*directory'):
        sweeps.run(small.settings(), file, small.quiet())


def test_a_truncated_file_is_named_and_the_rest_stays_readable(workdir, tmp_path):
    for path in workdir.rglob('*'):
        if path.suffix in ('.parquet', '.json'):
            (tmp_path / path.relative_to(workdir)).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path.relative_to(workdir)).write_bytes(path.read_bytes())
    damaged = next((tmp_path / 'rows').glob('ffn*'))
    damaged.write_bytes(damaged.read_bytes()[:100])
    with pytest.warns(UserWarning, match=damaged.name):
        rows = results.load(tmp_path)
    assert set(rows['model']) == {'transformer'}
    with pytest.raises(files.ResultsError, match='damaged') as caught:
        sweeps.run(small.settings(models=('ffn',)), tmp_path, small.quiet())
    assert '\n' not in str(caught.value)


class Broken(nn.Module):
    """Is right for one prompt, but cannot be differentiated."""

    @nn.compact
    def __call__(self, z_NxE):
        return jax.pure_callback(lambda z: z[:, 0], jax.ShapeDtypeStruct(z_NxE.shape[:1], z_NxE.dtype), z_NxE)


def test_a_cell_that_fails_does_not_lose_the_others(tmp_path):
    """A model that breaks when it is traced: its error is recorded, the other cell is complete."""

    @models.register('broken')
    def _broken(task):
        return Broken()

    with pytest.raises(sweeps.SweepError, match='broken'):
        sweeps.run(small.settings(models=('broken', 'ffn')), tmp_path, small.quiet())
    assert set(results.load(tmp_path)['model']) == {'ffn'}
    assert 'error' in json.loads(next((tmp_path / 'errors').glob('broken*')).read_text())


def test_encodings_that_cannot_be_drawn(tmp_path):
    sweep = small.settings(models=('ffn',), seq_lens=(8,), encoding_dim=4, max_coherence=0.3)
    with pytest.raises(ValueError, match='encoding_dim=4'):
        sweeps.run(sweep, tmp_path, small.quiet())


def test_labels_of_a_task_do_not_depend_on_the_lane_count():
    """The task of a lane is a function of its seed alone."""
    problem = small.cell().problem
    one = helpers.draw(tasks.task_key(3, problem.task), problem.task)
    data, _ = init_lane(small.lane(0, 3, weight_decay=0.0), problem)
    np.testing.assert_array_equal(one.link['u_V'], data.task_draw.link['u_V'])


def test_cells_that_are_made_are_not_made_again(monkeypatch, tmp_path):
    sweep = small.settings(models='ffn', num_seeds=1, max_samples=400)
    made = sweeps.cells_of(sweep)
    monkeypatch.setattr(cells, 'cells_of', None)
    rows = sweeps.run(sweep, tmp_path, small.quiet(), made)
    assert rows['cell'].tolist() == [made[0].id]
    pd.testing.assert_frame_equal(sweeps.run(sweep, tmp_path, small.quiet(), made), rows)
