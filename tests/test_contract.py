"""What a task may be: classes, weights, padding, splits, other test lengths; thresholds on the error rate."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from qstr_jax import models, sweeps, tasks
from qstr_jax.learners import held_out, risks
from qstr_jax.models.registered import REGISTRY
from qstr_jax.storage import results
from qstr_jax.sweeps import outputs
from tests import small
from tests.helpers import quick_jit, random_params

SEQ_LEN = 5
TASK = tasks.build('modular_sum', seq_len=SEQ_LEN, modulus=3)
MODULES = {
    'transformer': {'mlp_width': 8},
    'softmax_1': {'mlp_width': 8, 'softmax_1': True},
    'merged': {'mlp_width': 8, 'attention': 'merged', 'softmax_1': True},
    'rnn': {'width': 6},
    'exclusive': {'width': 6, 'states': 'exclusive', 'readout': 'mlp'},
    'ffn': {'widths': (8,)},
}
PAPER = {'softmax_1': 'transformer', 'merged': 'transformer', 'exclusive': 'rnn'}
# Which have no classes, or answer the same to all prompts.
ONE_NUMBER = ('zero', 'least_squares', 'ridge')


def module_of(name, task=TASK):
    return models.build(PAPER.get(name, name), task, **MODULES.get(name, {}))


def test_padding_of_all_architectures_is_tested():
    """Here, or as mixers in test_backbone."""
    builders = {name: REGISTRY.get(name).builder for name in models.names()}
    ours = {name for name, builder in builders.items() if builder.__module__.startswith('qstr_jax.models')}
    assert ours == {'backbone', *(PAPER.get(name, name) for name in MODULES), *ONE_NUMBER}


def inputs(seed, seq_len=SEQ_LEN):
    return np.random.default_rng(seed).normal(size=(seq_len, TASK.embedding_dim)).astype(np.float32)


@pytest.mark.parametrize('name', MODULES)
def test_no_model_reads_padding(name):
    module, z_NxE = module_of(name), inputs(0)
    params = random_params(module, z_NxE, scale=0.5)
    predict = quick_jit(lambda z_NxE, length: models.predict(module, params, z_NxE, None, length))
    altered_NxE = np.concatenate([z_NxE[:3], 100 * inputs(1)[3:]])
    np.testing.assert_array_equal(predict(z_NxE, 3), predict(altered_NxE, 3))
    assert np.max(np.abs(predict(z_NxE, 5)[:3] - predict(altered_NxE, 5)[:3])) > 1e-3
    assert np.max(np.abs(predict(z_NxE, 3)[:3] - predict(z_NxE, 4)[:3])) > 1e-4
    if name != 'ffn':  # which has weights for each position
        short = quick_jit(lambda: models.predict(module, params, z_NxE[:3]))()
        np.testing.assert_allclose(predict(z_NxE, 3)[:3], short, rtol=1e-4, atol=1e-5)
        whole = quick_jit(lambda: models.predict(module, params, z_NxE))()
        np.testing.assert_allclose(predict(z_NxE, 5), whole, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize('name', [*MODULES, *ONE_NUMBER])
def test_no_risk_depends_on_what_stands_in_the_padding(name):
    """Tokens, indices and labels: neither the risk of a prompt, nor its gradient, nor a position's error."""
    task = tasks.build('qstr', seq_len=SEQ_LEN, token_dim=3)
    task_draw = tasks.draw(tasks.task_key(0, task), task)
    module = module_of(name, task)
    params = random_params(module, np.zeros((SEQ_LEN, task.embedding_dim), np.float32), scale=0.5)
    rng = np.random.default_rng(0)
    x_NxD, y_N = rng.normal(size=(SEQ_LEN, 3)).astype(np.float32), rng.normal(size=SEQ_LEN).astype(np.float32)
    prompt = tasks.Prompt(x_NxD, np.array([[2], [0], [1], [4], [3]]), y_N, length=3)
    is_there_N = np.arange(SEQ_LEN) < 3
    other = prompt._replace(
        x_NxD=np.where(is_there_N[:, None], x_NxD, 9), t_NxQ=prompt.t_NxQ * is_there_N[:, None],
        y_N=np.where(is_there_N, y_N, 9),
    )  # fmt: skip

    @quick_jit
    def measured(prompt):
        whole = jax.value_and_grad(lambda params: risks.prompt_error(module, params, prompt, task, task_draw))(params)
        return whole, risks.position_error(module, params, prompt, 1, task=task, task_draw=task_draw)

    jax.tree.map(np.testing.assert_array_equal, measured(prompt), measured(other))
    all_count = measured(other._replace(length=SEQ_LEN))
    assert abs(all_count[0][0] - measured(other)[0][0]) > 1e-2


@pytest.mark.parametrize('name', MODULES)
def test_a_position_has_the_logits_of_all_positions(name):
    module, z_NxE = module_of(name), inputs(0)
    params = random_params(module, z_NxE, scale=0.5)
    all_NxC, one_C = quick_jit(
        lambda: (models.predict(module, params, z_NxE, None, 4), models.predict(module, params, z_NxE, 2, 4))
    )()
    assert all_NxC.shape == (SEQ_LEN, 3)
    np.testing.assert_allclose(one_C, all_NxC[2], rtol=1e-4, atol=1e-5)


def test_softmax_1_can_look_at_nothing():
    """Its weights are those of a softmax over one more score of 0."""
    module, z_NxE = module_of('merged'), inputs(0)
    params = random_params(module, z_NxE, scale=0.3)

    def weights_of(module):
        _, sown = module.apply(params, z_NxE, mutable='intermediates')
        return np.asarray(sown['intermediates']['attention']['weights_HxMxN'][0])

    mine, plain = weights_of(module), weights_of(module.clone(softmax_1=False))
    scores = np.einsum('me,hef,nf->hmn', z_NxE, np.asarray(params['params']['attention']['qk_HxExE']), z_NxE)
    total = np.exp(scores).sum(-1)
    np.testing.assert_allclose(mine.sum(-1), total / (1 + total), rtol=1e-3)
    np.testing.assert_allclose(plain.sum(-1), 1, rtol=1e-5)


def prompt_of(weights_N=None, length=None, classes=True):
    y_N = jnp.array([0, 2, 1, 1, 0]) if classes else jnp.arange(5.0)
    x_NxD = jnp.eye(3)[jnp.array([0, 2, 1, 0, 2])]
    return tasks.Prompt(x_NxD, jnp.zeros((5, 0), jnp.int32), y_N, weights_N, length)


@pytest.mark.parametrize('classes', [True, False])
@pytest.mark.parametrize(
    ('weights', 'length'), [(None, None), ((0, 1, 0, 3, 0), None), (None, 3), ((1, 1, 0, 5, 5), 3)]
)
def test_risks_are_weighted_means(classes, weights, length):
    task = TASK if classes else tasks.build('latent_index', seq_len=SEQ_LEN, token_dim=3)
    prompt = prompt_of(None if weights is None else jnp.array(weights, jnp.float32), length, classes)
    task_draw = tasks.draw(tasks.task_key(0, task), task)
    module = module_of('transformer', task)
    z_NxE = task.encode(prompt, task_draw)
    params = random_params(module, z_NxE, scale=0.5)
    prediction = np.asarray(models.predict(module, params, z_NxE, None, length), np.float64)
    if classes:
        log_p_NxC = prediction - np.log(np.exp(prediction).sum(axis=1, keepdims=True))
        errors_N = -log_p_NxC[np.arange(5), prompt.y_N]
    else:
        errors_N = (prediction - np.asarray(prompt.y_N)) ** 2
    counts_N = np.ones(5) if weights is None else np.array(weights, float)
    counts_N[5 if length is None else length :] = 0
    wanted = np.sum(counts_N * errors_N) / counts_N.sum()
    assert risks.prompt_error(module, params, prompt, task, task_draw) == pytest.approx(wanted, rel=1e-4)
    one = risks.position_error(module, params, prompt, 1, task=task, task_draw=task_draw)
    assert one == pytest.approx(errors_N[1], rel=1e-3)
    if classes:
        is_right_N = prediction.argmax(axis=1) == np.asarray(prompt.y_N)
        accuracy = risks.prompt_accuracy(module, params, prompt, task, task_draw)
        assert accuracy == pytest.approx(np.sum(counts_N * is_right_N) / counts_N.sum(), rel=1e-5)


def test_pointwise_positions_are_drawn_by_weight():
    counts_BxN = jnp.broadcast_to(jnp.array([0.0, 1.0, 0.0, 3.0]), (4000, 4))
    positions = quick_jit(lambda key: tasks.positions(key, jnp.arange(4000), 4, counts_BxN))(jax.random.key(0))
    np.testing.assert_allclose(np.bincount(positions, minlength=4) / 4000, [0, 0.25, 0, 0.75], atol=0.03)


def test_cross_entropy_is_optax_s():
    logits_NxC, y_N = jnp.array([[0.0, 2.0], [1.0, -1.0]]), jnp.array([1, 1])
    wanted = optax.softmax_cross_entropy_with_integer_labels(logits_NxC, y_N)
    np.testing.assert_array_equal(risks.errors(logits_NxC, y_N, TASK), wanted)


def settings(**changes):
    """A small sweep of a task without a setting token_dim."""
    kept = {name: value for name, value in small.SMALL.items() if name != 'token_dim'}
    return sweeps.Sweep(**{**kept, **changes}).without_unused()


def test_nothing_leaks_between_streams(own_entries):
    @tasks.register('split_numbers')
    @dataclasses.dataclass(frozen=True)
    class SplitNumbers(tasks.Sequence):
        """Tokens are numbers of a pool of 30, of which each stream has its own third."""

        token_dim = 1

        def sample(self, key, link_params, stream):
            first = {'train': 0, 'validation': 10, 'test': 20}[stream]
            x_N = jax.random.randint(key, (self.seq_len,), first, first + 10).astype(jnp.float32)
            return tasks.Prompt(x_N[:, None], jnp.arange(self.seq_len)[:, None], x_N)

    problem = sweeps.cells_of(settings(models='ffn', task='split_numbers'))[0].problem
    keys = held_out.stream_keys(small.lane(0), problem)
    task_draw = tasks.draw(keys['task'], problem.task)
    held = held_out.draw_prompts(keys, problem, {'test': 64, 'validation': 32}, task_draw)
    train = tasks.examples(keys['train'], jnp.arange(64), problem.task, ())
    assert set(np.unique(train.x_NxD)) == set(range(10))
    assert set(np.unique(held.x_NxD[:64])) == set(range(20, 30))
    assert set(np.unique(held.x_NxD[64:])) == set(range(10, 20))


CLASSES = {'task': 'modular_sum', 'threshold_on': 'error_rate', 'threshold': 0.05, 'learning_rate': 1e-2}


def test_the_test_can_be_of_another_length(tmp_path):
    """Parity at N = 3, tested at N = 6: encodings of the first three positions are those of training."""
    sweep = settings(models='rnn', **CLASSES, test_seq_len=6, max_samples=16_000)
    cell = sweeps.cells_of(sweep)[0]
    assert cell.problem.test_task.seq_len == 6
    assert cell.id != sweeps.cells_of(sweep.replace(test_seq_len=3))[0].id
    assert sweeps.cells_of(sweep.replace(test_seq_len=3)) == sweeps.cells_of(sweep.replace(test_seq_len=None))
    assert 'test_seq_len' not in sweep.replace(test_seq_len=None).as_json()
    rows = sweeps.run(sweep, tmp_path, small.quiet())
    assert rows['test_seq_len'].tolist() == [6, 6]
    # The first half of the positions was learnt.
    assert rows['accuracy'].between(0.65, 1).all()
    assert rows['no_retrieval'].tolist() == pytest.approx([5 / 12] * 2)


def test_rows_of_classes_have_their_accuracy(tmp_path):
    sweep = settings(models='rnn', **CLASSES, max_samples=16_000)
    rows = sweeps.run(sweep, tmp_path / 'online', small.quiet())
    assert (rows['outcome'] == 'reached').all()
    assert (rows['accuracy'] > 0.95).all()
    assert rows['no_retrieval'].tolist() == pytest.approx([1 / 3] * 2)
    assert rows['test_loss'].between(1e-4, 0.5).all()
    curves = results.load_curves(tmp_path / 'online')
    assert curves['accuracy'].between(0.2, 1).all()
    assert curves.groupby('seed')['accuracy'].last().tolist() == rows['accuracy'].tolist()
    sweep = settings(models='rnn', **CLASSES, max_samples=None, learners='adamw', num_samples=200, max_steps=200)
    fits = sweeps.run(sweep, tmp_path / 'fits', small.quiet())
    assert (fits['accuracy'] > 0.8).all()
    assert (fits['test_loss'] < 1).all()
    assert fits['test_loss_se'].between(1e-5, 0.5).all()


FIT = {'learners': 'adamw', 'num_samples': 9}


@pytest.mark.parametrize(
    ('changes', 'words'),
    [
        ({'threshold_on': 'error_rate'}, "threshold_on='error_rate': the labels of task 'qstr' are numbers"),
        ({'task': 'modular_sum', 'models': 'ridge', **FIT}, "models='ridge': has one output"),
        ({'task': 'noisy_keys', 'models': 'least_squares', **FIT}, 'knows t'),
        ({'task': 'hops', 'models': 'least_squares', **FIT}, 'linear in the tokens at t'),
        ({'test_seq_len': 5}, "models='ffn': its parameters are for seq_len=3 alone"),
        (
            {'task': 'mqar', 'seq_lens': 8, 'models': 'rnn', 'test_seq_len': 7},
            'test_seq_len=7: seq_len=7: must be even',
        ),
        ({'task': 'modular_sum', 'models': 'one_number'}, r"models='one_number'.*shape \(3, 2\)"),
    ],
)
def test_what_cannot_be_is_refused_before_any_work(changes, words, own_entries):
    @models.register('one_number')
    def one_number(task):
        return models.Feedforward(widths=(4,), token_dim=1)

    with pytest.raises(ValueError, match=words):
        outputs.check(sweeps.cells_of(settings(**{'models': 'ffn', **changes})), {})
