"""Prompts, judgement and rows for training loops of other frameworks are those of ours."""

import concurrent.futures
import dataclasses
import itertools
import os
import subprocess
import sys

import jax
import numpy as np
import pytest

import qstr_jax
from qstr_jax import analysis, models, outside, sweeps, tasks
from qstr_jax.learners import online, risks
from qstr_jax.storage import results
from tests import helpers, small


@dataclasses.dataclass(frozen=True)
class Ending(tasks.NoisyKeys):
    """Prompts of one to N tokens, the first of which counts twice."""

    def sample(self, key, link_params):
        weights_N = jax.numpy.ones(self.seq_len).at[0].set(2.0)
        length = jax.random.randint(key, (), 1, self.seq_len + 1)
        return super().sample(key, link_params)._replace(length=length, weights_N=weights_N)


@pytest.mark.parametrize('batch_size', [32, 1])
@pytest.mark.parametrize('task', ['ending', 'latent_index'])
def test_prompts_are_those_of_our_training(task, batch_size, own_entries):
    """At the same batch size tokens are the same bit for bit; all else is up to rounding."""
    tasks.register('ending')(Ending)
    cell = sweeps.cells_of(sweeps.Sweep(models='ffn', task=task, seq_lens=4, ffn={'widths': (8,)}))[0]
    problem = cell.problem
    data, _ = jax.jit(lambda: online.init_lane(small.lane(3, task_seed=1), problem))()

    @jax.jit
    def seen(data):
        prompts = tasks.examples(data.train_key, jax.numpy.arange(32, 64), problem.task, data.task_draw.link)
        return prompts, jax.vmap(lambda one: tasks.encode(one, problem.task, data.task_draw))(prompts)

    ours, encoded = seen(data)
    drawn = qstr_jax.batches(task, 4, seed=3, batch_size=batch_size, task_seed=1)
    batches = itertools.islice(drawn, 32 // batch_size, 64 // batch_size)
    z_BxNxE, y_BxN, weights_BxN = map(np.concatenate, zip(*batches, strict=True))
    is_there = np.arange(4) < np.full((32, 1), 4)
    if task == 'ending':
        is_there = np.arange(4) < np.asarray(ours.length)[:, None]
        assert not is_there.all()
    rounding = 0 if batch_size == 32 else 1e-5
    np.testing.assert_allclose(z_BxNxE, np.where(is_there[..., None], encoded, 0), rtol=rounding, atol=rounding)
    np.testing.assert_allclose(y_BxN, ours.y_N, rtol=1e-5, atol=1e-5)
    first = 2.0 if task == 'ending' else 1.0
    np.testing.assert_array_equal(weights_BxN, is_there * np.array([first, 1.0, 1.0, 1.0]))


@pytest.mark.parametrize(
    ('task', 'threshold_on', 'column'), [('qstr', 'loss', 'test_loss'), ('modular_sum', 'error_rate', 'accuracy')]
)
def test_the_judge_agrees_with_the_rows_of_our_own_lane(task, threshold_on, column, tmp_path):
    settings = {'threshold_on': threshold_on} if threshold_on != 'loss' else {}
    sizes = {'test_samples': 70, 'max_samples': 640, 'ffn': {'widths': (8,)}, 'num_seeds': 1}
    sweep = sweeps.Sweep(models='ffn', task=task, seq_lens=3, save_params=True, threshold=0.01, **sizes, **settings)
    row = sweeps.run(sweep, tmp_path, sweeps.Options(progress=False, num_devices=1)).iloc[0]
    cell = sweeps.cells_of(sweep)[0]
    params = sweeps.load_params(tmp_path, cell, cell.lanes[0])
    judge = qstr_jax.judge(task, 3, 0, threshold_on=threshold_on, threshold=0.01, max_samples=640, test_samples=70)
    predictions = jax.vmap(lambda z: models.predict(cell.problem.module, params, z))(judge.prompts)
    error = judge.error(predictions)
    assert error == pytest.approx(row[column] if column == 'test_loss' else 1 - row[column], rel=1e-5, abs=1e-6)
    assert judge.check(predictions, 640)
    written = outside.write_rows(tmp_path / 'outside', 'net', [judge]).iloc[0]
    for name in {'test_loss', column}:
        assert written[name] == pytest.approx(row[name], rel=1e-5, abs=1e-6)
    assert judge.outcome == row['outcome'] == 'censored'


@pytest.mark.parametrize('tenths', range(1, 6))
def test_an_error_rate_that_equals_the_threshold_is_not_below_it(tenths):
    """As in our own training, which compares the mean of 1 − accuracy over prompts in float32."""
    of_lane = {'threshold': tenths / 10, 'threshold_on': 'error_rate', 'test_samples': 20, 'max_samples': 100}
    for num_more, outcome in (0, 'running'), (-1, 'reached'):
        one = qstr_jax.judge('modular_sum', 4, 0, **of_lane)
        said = one.labels.reshape(-1).copy()
        said[: 8 * tenths + num_more] ^= 1  # of 80 answers
        predictions = np.eye(2, dtype=np.float32)[said.reshape(20, 4)]
        accuracy_T = jax.vmap(risks.weighted_mean)(np.float32(predictions.argmax(-1) == one.labels), one.weights)
        assert one.error(predictions) == float(jax.numpy.mean(1 - accuracy_T))
        one.check(predictions, 10)
        assert one.outcome == outcome


def test_a_lane_is_over_below_the_threshold_out_of_budget_or_not_finite():
    def outcome(scale, samples):
        one = qstr_jax.judge('qstr', 3, 0, test_samples=50, max_samples=100)
        assert not one.check(one.labels * 0, 10)
        one.check(one.labels * scale, samples)
        return one.outcome

    assert outcome(1.0, 100) == 'reached'
    assert outcome(0.0, 100) == 'censored'
    assert outcome(1.0, 101) == 'censored'
    assert outcome(np.nan, 20) == 'diverged'
    assert outcome(0.0, 99) == 'running'


@pytest.mark.parametrize('value', [np.nan, np.inf])
def test_logits_that_are_not_finite_are_no_answer(value, tmp_path):
    one = qstr_jax.judge('modular_sum', 3, 0, test_samples=20, threshold=0.99, threshold_on='error_rate')
    assert one.check(np.full((20, 3, 2), value, np.float32), 10)
    assert one.outcome == 'diverged'
    outside.write_rows(tmp_path, 'net', [one])
    assert 'test_loss' in results.load(tmp_path, strict=True)


def test_integers_of_numpy_are_integers(tmp_path):
    ours, theirs = (
        next(qstr_jax.batches('qstr', 3, seed=of(1), batch_size=4, task_seed=of(2))) for of in (int, np.int64)
    )
    jax.tree.map(np.testing.assert_array_equal, ours, theirs)
    one = qstr_jax.judge('qstr', 3, np.int32(1), test_samples=5)
    assert one.check(one.labels, np.int64(64))
    assert outside.write_rows(tmp_path, 'net', [one])['num_samples'].tolist() == [64]


@pytest.mark.parametrize('of', [np.complex64, bool, str, object])
def test_predictions_are_numbers(of):
    one = qstr_jax.judge('qstr', 3, 0, test_samples=5)
    with pytest.raises(ValueError, match='must be a NumPy array of numbers'):
        one.check(one.labels.astype(of), 10)
    assert one.error(one.labels.astype(np.float16)) == pytest.approx(0, abs=1e-5)
    assert one.error(np.full((5, 3), 100, np.int8)) == one.error(np.full((5, 3), 100.0))


def test_what_the_judge_said_cannot_be_overwritten(tmp_path):
    for name, value in {'seed': 5, 'learner': 'online', 'test_loss': 0.1, 'net_width': 3, 'cell': 'x'}.items():
        with pytest.raises(ValueError, match=f'{name}=.*the judge'):
            outside.write_rows(tmp_path, 'net', [over(0)], settings={'width': 4}, **{name: value})
    for infinity in np.inf, np.float32('inf'):
        with pytest.raises(ValueError, match=r'state_size=.*inf.*: must be finite'):
            outside.write_rows(tmp_path, 'net', [over(0)], state_size=infinity)
    for name, value, word in ('day', np.datetime64('2020'), 'a number or a text'), ('crossings', 'abc', 'the judge'):
        with pytest.raises(ValueError, match=f'{name}=.*{word}'):
            outside.write_rows(tmp_path, 'net', [over(0)], **{name: value})
    relabelled = {
        'threshold_on': 'error_rate', 'thresholds': '0.9', 'risk': 'pointwise', 'is_search': True, 'min_samples': 5,
        'miss_is_erm': False, 'no_retrieval': 0.5, 'sparsity': 9, 'rnn_width': 3, 'crossing': 5.0, 'lane': 1,
    }  # fmt: skip
    for name, value in relabelled.items():
        with pytest.raises(ValueError, match=f'{name}=.*the judge'):
            outside.write_rows(tmp_path, 'net', [over(0)], **{name: value})
    for name, value in ('batch_size', 0), ('batch_size', -64), ('check_every', np.int64(0)):
        with pytest.raises(ValueError, match=f'{name}=.*: must be'):
            outside.write_rows(tmp_path, 'net', [over(0)], **{name: value})
    with pytest.raises(ValueError, match='judges: give a list'):
        outside.write_rows(tmp_path, 'net', over(0))
    assert not list(tmp_path.iterdir())


def test_a_loop_may_say_how_it_trained(tmp_path):
    said = {'batch_size': 64, 'check_every': np.int64(10), 'optimizer': 'sgd', 'schedule': 'cosine', 'warmup_steps': 5}
    outside.write_rows(tmp_path, 'net', [over(0)], weight_decay=0.1, state_size=5, note='x', is_erm=True, **said)
    row = results.load(tmp_path, strict=True).iloc[0]
    assert {name: row[name] for name in said} == said


def test_rows_are_read_as_any_others(tmp_path):
    judges = [qstr_jax.judge('qstr', N, seed, test_samples=20, threshold=0.5) for N in (3, 4, 6) for seed in range(2)]
    for one in judges:
        one.check(one.labels, 100 * one.task.seq_len + one.seeds['seed'])
    outside.write_rows(tmp_path, 'torch_net', judges, settings={'width': 5}, num_parameters=50)
    with pytest.warns(UserWarning, match='2 lanes are there already and stay'):
        outside.write_rows(tmp_path, 'torch_net', judges, settings={'width': 5}, num_parameters=51)
    rows = results.load(tmp_path, strict=True)
    assert len(rows) == 6
    assert set(rows['learner']) == {'outside'}
    assert set(rows['torch_net_width']) == {5}
    assert len(results.load_curves(tmp_path, strict=True)) == 6
    assert analysis.exponent(rows).value == pytest.approx(1.0, abs=0.02)
    qstr_jax.plot(rows)


def test_what_is_wrong_is_one_line(tmp_path):
    one = qstr_jax.judge('qstr', 3, 0, test_samples=5)
    with pytest.raises(ValueError, match=r'must be \(5, 3\)'):
        one.check(np.zeros((5, 4)), 10)
    with pytest.raises(ValueError, match='is not over'):
        outside.write_rows(tmp_path, 'net', [one])
    with pytest.raises(ValueError, match='at least one'):
        outside.write_rows(tmp_path, 'net', [])
    for judges in over(0), [over(0), 'x'], 'x':
        with pytest.raises(ValueError, match='a list of at least one lane'):
            outside.write_rows(tmp_path, 'net', judges)
    with pytest.raises(ValueError, match='give a mapping'):
        outside.write_rows(tmp_path, 'net', [over(0)], settings=[('width', 3)])
    with pytest.raises(ValueError, match=r"^model 'My-Net': a name is made of a-z"):
        outside.write_rows(tmp_path, 'My-Net', [over(0)], settings={'width': 3})
    other = qstr_jax.judge('modular_sum', 3, 0, test_samples=5, max_samples=100)
    other.check(np.zeros((*other.labels.shape, 2), np.float32), 100)
    assert 'accuracy' in other.measured[0]
    with pytest.raises(ValueError, match=r'accuracy=0\.99: rows have that'):
        outside.write_rows(tmp_path, 'net', [over(0), other], accuracy=0.99)
    with pytest.raises(ValueError, match='two of them are of seed 4'):
        outside.write_rows(tmp_path, 'net', [over(0), over(4), over(4)])
    with pytest.raises(ValueError, match='settings: widths'):
        outside.write_rows(tmp_path, 'net', [over(0)], settings={'widths': np.zeros(2)})
    with pytest.raises(ValueError, match='stream'):
        qstr_jax.batches('qstr', 3, 0, 4, stream='init')
    with pytest.raises(ValueError, match='error_rate'):
        qstr_jax.judge('qstr', 3, 0, threshold_on='error_rate')
    for task in {'seq_len': 3}, {3: 1}, 5:
        with pytest.raises(ValueError, match='a mapping of settings'):
            qstr_jax.judge(task, 3, 0)
    assert list(tmp_path.iterdir()) == []


def over(seed):
    one = qstr_jax.judge('qstr', 3, seed, test_samples=5, max_samples=100)
    one.check(one.labels * 0, 100)
    return one


@pytest.mark.parametrize(('one', 'other'), [([64], [128]), (np.int64(64), np.int64(128)), ((8, (4,)), (8, (2,)))])
def test_settings_that_differ_make_cells(tmp_path, one, other):
    for value in one, other:
        outside.write_rows(tmp_path, 'net', [over(0)], settings={'width': value})
    assert results.load(tmp_path, strict=True)['cell'].nunique() == 2


@pytest.mark.parametrize(
    'measures',
    [{'batch_size': 32}, {'train_loss': -1.0}, {'batch_size': ['a']}, {'note': 3}, {'twice': 1}],
    ids=str,
)
def test_no_file_is_left_that_cannot_be_read(tmp_path, measures):
    outside.write_rows(tmp_path, 'net', [over(0)], batch_size=64, note='text')
    judges = [over(1)] * (2 if 'twice' in measures else 1)
    with pytest.raises(ValueError, match=r'.'):
        outside.write_rows(tmp_path, 'net', judges, **{'batch_size': 64, **measures})
    assert len(results.load(tmp_path, strict=True)) == 1


def test_a_measure_that_tells_lanes_apart_is_in_the_curves_too(tmp_path):
    for rate in 1e-3, 1e-2:
        outside.write_rows(tmp_path, 'net', [over(0)], learning_rate=rate)
    assert results.load_curves(tmp_path, strict=True)['learning_rate'].tolist() == [1e-3, 1e-2]


def test_several_may_write_at_once(tmp_path):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda one: outside.write_rows(tmp_path, 'net', [one]), [over(seed) for seed in range(8)]))
    assert len(results.load(tmp_path, strict=True)) == 8


@helpers.needs_torch
@pytest.mark.parametrize(
    'task', ['task={"name": "qstr", "token_dim": 5}', 'task="modular_sum", threshold_on="error_rate", threshold=0.1']
)
def test_the_example_in_pytorch(tmp_path, task):
    """In a process of its own, since PyTorch takes memory that a worker would keep."""
    sizes = f'{task}, seq_lens=(2,), num_seeds=1, max_samples=1280, test_samples=100'
    code = f'import pytorch_model; pytorch_model.main({str(tmp_path)!r}, {sizes})'
    environment = {**os.environ, 'XLA_FLAGS': helpers.QUICK_FLAGS}
    subprocess.run([sys.executable, '-c', code], cwd=helpers.ROOT / 'examples', env=environment, check=True)
    row = results.load(tmp_path, strict=True).iloc[0]
    assert row['learner'] == 'outside'
    assert row['num_samples'] <= 1280
    assert row['test_loss'] < 1.0
