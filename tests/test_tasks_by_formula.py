"""Tasks by formula: what their oracles and trivial predictors err by, and that prompts are what they say."""

import functools
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from qstr_jax import learners, sweeps, tasks
from qstr_jax.analysis import no_retrieval
from qstr_jax.learners import risks
from qstr_jax.sweeps import outputs, programs
from qstr_jax.tasks import streams
from qstr_jax.tasks.task import REGISTRY
from tests.helpers import quick_jit

NUM_PROMPTS = 4000

# Settings, by task.
TASKS = {
    'qstr': {'sparsity': 2, 'token_dim': 3, 'link': 'hermite2', 'seq_len': 5},
    'simple_qstr': {'sparsity': 2, 'token_dim': 3, 'link': 'sum', 'seq_len': 5},
    'causal_qstr': {'sparsity': 2, 'token_dim': 3, 'link': 'sum', 'seq_len': 5},
    'varying_qstr': {'sparsity': 2, 'token_dim': 3, 'link': 'hermite2', 'seq_len': 5},
    'weighted_qstr': {'sparsity': 2, 'token_dim': 3, 'link': 'sum', 'seq_len': 5},
    'hops': {'token_dim': 3, 'seq_len': 5, 'hops': 2},
    'mqar': {'seq_len': 16, 'num_pairs': 3, 'vocab_size': 16},
    'noisy_keys': {'seq_len': 5, 'key_dim': 3, 'value_dim': 4, 'noise': 0.3},
    'latent_index': {'seq_len': 5, 'token_dim': 4, 'label_noise': 0.2},
    'informative_token': {'seq_len': 6, 'token_dim': 4, 'vocab_size': 5},
    'modular_sum': {'seq_len': 5, 'modulus': 3},
    'permutations': {'seq_len': 5, 'supervised': 'last'},
}
EXACT = set(TASKS) - {'latent_index'}


@functools.cache
def drawn(name):
    """The task, what it draws once, and prompts on the host."""
    task = tasks.build(name, **TASKS[name])
    key = streams.stream_key(0, 'train', task)

    @quick_jit
    def make():
        task_draw = tasks.draw(tasks.task_key(0, task), task)
        return task_draw, tasks.examples(key, jnp.arange(NUM_PROMPTS), task, task_draw.link)

    return (task, *jax.tree.map(np.asarray, make()))


@functools.cache
def errors(name, predictor):
    """Loss and error rate of each prompt."""
    task, task_draw, prompts = drawn(name)

    def error(prompt):
        # Whoever reads the labels reads nonsense.
        prediction = getattr(task, predictor)(prompt._replace(y_N=prompt.y_N * 0), task_draw.link)
        loss = risks.weighted_mean(risks.errors(prediction, prompt.y_N, task), prompt.counts_N)
        if task.loss != 'cross_entropy':
            return loss, loss
        # A guess among the classes of the largest logit.
        is_best_NxC = prediction >= prediction.max(axis=1, keepdims=True) - 1e-6
        share_N = jnp.take_along_axis(is_best_NxC / is_best_NxC.sum(axis=1, keepdims=True), prompt.y_N[:, None], axis=1)
        return loss, 1 - risks.weighted_mean(share_N[:, 0], prompt.counts_N)

    return jax.tree.map(np.asarray, quick_jit(jax.vmap(error))(prompts))


def assert_mean(values, expected):
    values = np.asarray(values, np.float64)
    assert np.mean(values) == pytest.approx(expected, abs=4 * np.std(values) / math.sqrt(len(values)) + 1e-6)


def test_all_tasks_are_tested():
    """Here, or in test_data."""
    ours = {name for name in tasks.names() if REGISTRY.get(name).builder.__module__.startswith('qstr_jax.tasks')}
    assert ours == {*TASKS, 'flights', 'word_heads', 'pointing_digits'}


def without_retrieval(task, threshold_on):
    """What the task says; rows of qSTR are older, and have the formula in the analysis."""
    if task.name in ('qstr', 'simple_qstr'):
        return no_retrieval.no_retrieval_loss(TASKS[task.name]['link'], task.sparsity, task.seq_len)
    return task.no_retrieval(threshold_on)


@pytest.mark.parametrize('name', TASKS)
def test_a_predictor_that_does_not_look_errs_by_what_the_task_says(name):
    task, *_ = drawn(name)
    loss_B, rate_B = errors(name, 'trivial')
    assert_mean(loss_B, without_retrieval(task, 'loss'))
    if task.loss == 'cross_entropy':
        assert_mean(rate_B, without_retrieval(task, 'error_rate'))


@pytest.mark.parametrize('name', [name for name in TASKS if name.endswith('qstr')])
def test_labels_of_qstr_are_its_formula(name):
    """Without the link's own code: Σ_j g(w_j ⟨u_j, x_j⟩)/√q, with 0 in place of tokens that are not asked for."""
    _, task_draw, (x, t, y, *_) = drawn(name)
    asked = np.where(t[..., None] >= 0, np.take_along_axis(x[:, None, :, :3], t[..., None], axis=2), 0)
    projected = np.sum(task_draw.link['u_QxD'] * asked, axis=-1)
    if name == 'weighted_qstr':
        assert 0.5 <= x[..., 3:].min() < x[..., 3:].max() <= 1.5
        projected = x[..., 3:] * projected
    values = (projected**2 - 1) / math.sqrt(2) if TASKS[name]['link'] == 'hermite2' else projected
    np.testing.assert_allclose(y, values.sum(axis=-1) / math.sqrt(2), rtol=1e-4, atol=1e-5)


def test_noisy_keys_ask_for_the_nearest():
    _, task_draw, prompts = drawn('noisy_keys')
    values, keys, queries = np.split(prompts.x_NxD[:200], [4, 7], axis=-1)
    distance = np.linalg.norm(queries[:, :, None] - keys[:, None], axis=-1)
    wanted = np.take_along_axis(values @ task_draw.link['u_D'], distance.argmin(axis=-1), axis=1)
    np.testing.assert_allclose(prompts.y_N[:200], wanted, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(np.mean(distance.min(axis=-1) ** 2), 0.3**2, rtol=0.2)  # the noise, a little less


def test_sums_are_modulo_m():
    _, _, prompts = drawn('modular_sum')
    np.testing.assert_array_equal(prompts.y_N, prompts.x_NxD.argmax(-1).cumsum(axis=1) % 3)


@pytest.mark.parametrize('name', sorted(EXACT))
def test_exact_oracles_err_by_nothing(name):
    loss_B, rate_B = errors(name, 'oracle')
    assert np.max(loss_B) < 1e-6
    assert np.max(rate_B) < 1e-6


def test_the_oracle_of_a_latent_index_errs_by_the_variance_that_it_expects():
    task, task_draw, prompts = drawn('latent_index')
    values_BxN = prompts.x_NxD @ task_draw.link['v_D']
    posterior_BxN = jax.vmap(lambda prompt: task.posterior(prompt, task_draw.link))(prompts)
    mean_B = np.sum(posterior_BxN * values_BxN, axis=1, keepdims=True)
    variance_B = np.sum(posterior_BxN * (values_BxN - mean_B) ** 2, axis=1)
    loss_B, _ = errors('latent_index', 'oracle')
    assert_mean(loss_B - variance_B, task.label_noise)
    assert task.label_noise < np.mean(loss_B) < 0.7 * task.no_retrieval('loss')


def test_one_token_is_informative_and_the_label_is_its_own():
    """Without the task's own code: tokens are found by their embeddings, and each of the V has one label."""
    task, task_draw, (x_BxNxD, t, y, *_) = drawn('informative_token')
    e_MxD = 2 * task_draw.link['e_MxD']  # √d = 2
    tokens_BxN = np.argmin(np.linalg.norm(x_BxNxD[:, :, None] - e_MxD, axis=-1), axis=-1)
    np.testing.assert_allclose(x_BxNxD, e_MxD[tokens_BxN], rtol=1e-6)
    is_informative_BxN = tokens_BxN < task.vocab_size
    assert (is_informative_BxN.sum(axis=1) == 1).all()
    np.testing.assert_array_equal(is_informative_BxN.argmax(axis=1), t[:, 0, 0])
    pairs = set(zip(tokens_BxN[is_informative_BxN], y[:, 0], strict=True))
    assert len(pairs) == len(dict(pairs)) == len({label for _, label in pairs}) == task.vocab_size
    assert (np.bincount(t[:, 0, 0]) > NUM_PROMPTS / 6 - 150).all()


def test_no_later_pair_overwrites_an_earlier_one():
    """Each key stands among the pairs once, and once more as a query, behind which there is a blank."""
    _, _, prompts = drawn('mqar')
    for tokens_N, y_N, weights_N, t_N in zip(
        prompts.x_NxD.argmax(-1), prompts.y_N, prompts.weights_N, prompts.t_NxQ[..., 0], strict=True
    ):
        keys_K, values_K = tokens_N[:6].reshape(3, 2).T
        assert len(set(keys_K)) == len(set(values_K)) == 3
        assert keys_K.min() >= 1
        assert keys_K.max() < 8 <= values_K.min()
        asked = np.flatnonzero(weights_N)
        assert sorted(tokens_N[asked]) == sorted(keys_K)
        assert asked.min() >= 6
        assert not np.any(np.delete(tokens_N[6:], asked - 6))
        assert all(y_N[i] == dict(zip(keys_K, values_K, strict=True))[tokens_N[i]] for i in asked)
        np.testing.assert_array_equal(tokens_N[t_N[asked]], y_N[asked])


def test_queries_of_mqar_follow_the_power_law():
    task = tasks.build('mqar', seq_len=8, num_pairs=1, vocab_size=4, power=0.5)
    prompts = quick_jit(lambda key: tasks.examples(key, jnp.arange(NUM_PROMPTS), task, ()))(jax.random.key(0))
    counts = np.bincount((prompts.weights_N.argmax(1) - 2) // 2, minlength=3)
    wanted = np.arange(1, 4) ** -0.5 / np.sum(np.arange(1, 4) ** -0.5)
    np.testing.assert_allclose(counts / NUM_PROMPTS, wanted, atol=4 * math.sqrt(0.25 / NUM_PROMPTS))


def test_causal_indices_ask_for_nothing_later():
    t_BxNxQ = drawn('causal_qstr')[2].t_NxQ
    assert np.all(t_BxNxQ <= np.arange(5)[:, None])
    np.testing.assert_array_equal(t_BxNxQ.max(axis=(0, 2)), np.arange(5))


def test_hops_follow_the_indices():
    _, task_draw, prompts = drawn('hops')
    for x_NxD, t_N, y_N in zip(prompts.x_NxD[:20], prompts.t_NxQ[:20, :, 0], prompts.y_N[:20], strict=True):
        wanted = [x_NxD[t_N[t_N[i]]] @ task_draw.link['u_V'] for i in range(5)]
        np.testing.assert_allclose(y_N, wanted, rtol=1e-4, atol=1e-5)


def test_missing_indices_are_encoded_as_zero():
    task, task_draw, prompts = drawn('varying_qstr')
    prompt = jax.tree.map(lambda leaf: leaf[0], prompts)
    enc_NxQxE = np.asarray(task.encode(prompt, task_draw))[:, 3 + task.encoding_dim :].reshape(5, 2, -1)
    np.testing.assert_array_equal(np.any(enc_NxQxE != 0, axis=2), prompt.t_NxQ >= 0)
    assert set((prompts.t_NxQ >= 0).sum(-1).ravel()) == {0, 1, 2}


@pytest.mark.parametrize('group', ['S_3', 'S_5'])
def test_tables_compose_permutations(group):
    elements = list(itertools.permutations(range(int(group[2:]))))
    table = tasks.Permutations(group=group).table()
    for a, b in itertools.islice(itertools.product(range(len(elements)), repeat=2), 0, None, 37):
        assert elements[table[a, b]] == tuple(elements[a][i] for i in elements[b])


def test_words_are_multiplied_from_the_left():
    _, _, prompts = drawn('permutations')
    elements = list(itertools.permutations(range(3)))
    for tokens_N, y_N in zip(prompts.x_NxD[:20].argmax(-1), prompts.y_N[:20], strict=True):
        state = (0, 1, 2)
        for token, y in zip(tokens_N, y_N, strict=True):
            state = tuple(elements[token][i] for i in state)
            assert elements[y] == state
    np.testing.assert_array_equal(prompts.weights_N[0], [0, 0, 0, 0, 1])


@pytest.mark.parametrize('name', TASKS)
def test_all_architectures_answer(name):
    """Nothing is computed."""
    models = {'rnn.width': 8, 'ffn.widths': (8,), 'transformer.mlp_width': 8}
    sweep = sweeps.Sweep(('transformer', 'rnn', 'ffn', 'zero'), name, learners='adamw', num_samples=8, **models)
    cells = sweeps.cells_of(sweep.replace(**TASKS[name]))
    outputs.check(cells, {})
    assert len({cell.id for cell in cells}) == 4
    online = sweeps.cells_of(sweep.replace(models='rnn', learners='online', num_samples=()))[0]
    row = jax.eval_shape(functools.partial(learners.init, problem=online.problem), programs.lane_arrays(online.lanes))
    assert row[1].outcome.shape == (5,)


@pytest.mark.parametrize(
    ('name', 'settings', 'words'),
    [
        ('mqar', {'seq_len': 7, 'num_pairs': 1}, 'seq_len=7: must be even'),
        ('mqar', {'seq_len': 2}, 'seq_len=2: must be at least 4'),
        ('mqar', {'seq_len': 8, 'vocab_size': 4}, 'vocab_size=4'),
        ('hops', {'hops': 0}, 'hops=0'),
        ('causal_qstr', {'indices': 'half', 'seq_len': 8}, "indices='half'"),
        ('informative_token', {'vocab_size': 1}, 'vocab_size=1'),
        ('modular_sum', {'modulus': 1}, 'modulus=1'),
        ('permutations', {'group': 'S_4'}, "group='S_4'"),
        ('modular_sum', {'supervised': 'first'}, "supervised='first'"),
    ],
)
def test_impossible_settings_are_one_line(name, settings, words):
    with pytest.raises(ValueError, match=words):
        tasks.build(name, **settings)


def test_the_position_of_a_query_of_mqar_tells_something_of_its_pair():
    """Gaps are drawn one after the other, so that pair 0 is asked for sooner; by enumeration of two pairs."""
    task = tasks.build('mqar', seq_len=8, num_pairs=2, vocab_size=8)
    near = 1 / (1 + 2 ** (task.power - 1))  # P(gap 0) of the pair that is drawn first
    assert task.no_retrieval('error_rate') == pytest.approx(1 - near, abs=2e-3)


@pytest.mark.parametrize(
    ('name', 'changes', 'words'),
    [
        ('noisy_keys', {'key_dim': 1}, 'key_dim=1'),
        ('informative_token', {'token_dim': 1}, 'token_dim=1'),
        ('latent_index', {'max_coherence': 7.0}, r'max_coherence=7.0: must lie in \(0, 1\]'),
    ],
)
def test_what_cannot_be_told_apart_is_refused(name, changes, words):
    with pytest.raises(ValueError, match=words):
        tasks.build(name, **changes)


def test_long_walks_end_where_they_began_as_often_as_drawn_ones():
    """Products of sixteen lengths overflow 64 bits, which took away a twelfth of the share."""
    task = tasks.build('hops', seq_len=64, hops=12)
    next_BxN = np.random.default_rng(0).integers(64, size=(40_000, 64))
    at_BxN = np.broadcast_to(np.arange(64), next_BxN.shape)
    for _ in range(12):
        at_BxN = np.take_along_axis(next_BxN, at_BxN, axis=1)
    share_B = (at_BxN == np.arange(64)).mean(axis=1)
    error = share_B.std() / len(share_B) ** 0.5
    assert abs(share_B.mean() - task.asked_NxN()[0, 0]) < 4 * error < 0.0025
