"""Tasks: distributions of tokens and indices, labels against plain Python, nested data, bad settings."""

import dataclasses
import functools
import math
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from qstr_jax import tasks
from qstr_jax.tasks import encodings, links, streams
from tests import helpers
from tests.helpers import quick_jit

LINKS = ('linear', 'mean', 'sum', 'hermite2', 'norm2', 'two_layer')
NUM_PROMPTS = 20_000


def stream(task, name='train'):
    return streams.stream_key(0, name, task)


@functools.cache
def draw(task):
    drawn = helpers.draw(tasks.task_key(0, task), task)
    return jax.tree.map(np.asarray, drawn)


@functools.cache
def setup(task, num_prompts, name='train', jit=quick_jit):
    """Prompts 0..n−1 as numpy arrays."""
    link_params = {} if task.link.name == 'first_entry' else draw(task).link

    @jit
    def make(key):
        return tasks.examples(key, jnp.arange(num_prompts), task, link_params)

    return jax.tree.map(np.asarray, make(stream(task, name)))


def prompt_number(i, prompts):
    return jax.tree.map(lambda leaf: leaf[i], prompts)


def plain_task(name='qstr', **settings):
    """A task whose label costs nothing to compile."""
    return tasks.build(name, **{'seq_len': 6, 'token_dim': 3, 'link': first_entry, **settings})


def first_entry(x_QxD):
    return x_QxD[0, 0]


SUM_TASK = {name: tasks.build(name, seq_len=6, sparsity=2, token_dim=3, link='sum') for name in ('qstr', 'simple_qstr')}


def assert_uniform(counts):
    """χ² of the counts within five standard deviations of its mean, on both sides."""
    counts = np.ravel(counts)
    expected = counts.sum() / counts.size
    statistic, freedom = np.sum((counts - expected) ** 2) / expected, counts.size - 1
    assert abs(statistic - freedom) < 5 * math.sqrt(2 * freedom)


def assert_standard_normal(values, atol_scale=5):
    values = np.asarray(values, np.float64)
    for power, moment in (1, 0), (2, 1), (3, 0), (4, 3), (6, 15):
        spread = math.sqrt(math.prod(range(1, 2 * power, 2)) - moment**2)
        assert abs(np.mean(values**power) - moment) < atol_scale * spread / math.sqrt(values.size)
    tail = 2 * (1 - 0.99865)  # P(|x| > 3)
    assert np.mean(np.abs(values) > 3) == pytest.approx(tail, abs=5 * math.sqrt(tail / values.size))


# Distributions.


@pytest.mark.parametrize('name', ['qstr', 'simple_qstr'])
def test_tokens_are_independent_standard_normals(name):
    prompts = setup(plain_task(name=name, sparsity=2), NUM_PROMPTS)
    assert_standard_normal(prompts.x_NxD)
    flat = prompts.x_NxD.reshape(NUM_PROMPTS, -1)
    correlations = flat.T @ flat / NUM_PROMPTS - np.eye(flat.shape[1])
    assert np.max(np.abs(np.triu(correlations, 1))) < 5 / math.sqrt(NUM_PROMPTS)
    assert np.max(np.abs(flat[1:].T @ flat[:-1])) < 5 * math.sqrt(NUM_PROMPTS)  # between prompts


@pytest.mark.parametrize('name', ['qstr', 'simple_qstr'])
@pytest.mark.parametrize('seq_len', [6, 7])
def test_indices_are_uniform_and_independent(name, seq_len):
    prompts = setup(plain_task(name=name, seq_len=seq_len, sparsity=2), NUM_PROMPTS)
    t = prompts.t_NxQ
    assert t.dtype == np.int32
    assert t.min() == 0
    assert t.max() == seq_len - 1
    for i in range(seq_len):
        # Both entries of t_i together: uniform on [N]², so repeats are as likely as anything else.
        assert_uniform(np.bincount(seq_len * t[:, i, 0] + t[:, i, 1], minlength=seq_len**2))
    if name == 'simple_qstr':
        assert np.all(t == t[:, :1])
    else:
        for i in range(seq_len - 1):
            pairs = seq_len * t[:, i, 0] + t[:, i + 1, 0]
            assert_uniform(np.bincount(pairs, minlength=seq_len**2))
    assert_uniform(np.bincount(seq_len * t[:-1, 0, 0] + t[1:, 0, 0], minlength=seq_len**2))


@pytest.mark.parametrize('name', ['qstr', 'simple_qstr'])
def test_tokens_and_indices_are_independent(name):
    prompts = setup(plain_task(name=name, sparsity=2), NUM_PROMPTS)
    flat = prompts.x_NxD.reshape(NUM_PROMPTS, -1)
    rows = prompts.t_NxQ[:, :1] if name == 'simple_qstr' else prompts.t_NxQ
    one_hot = np.eye(6)[rows.reshape(NUM_PROMPTS, -1)].reshape(NUM_PROMPTS, -1)
    share = math.sqrt(NUM_PROMPTS / 6)  # prompts of one value: its mean has this precision
    for power, mean, spread in (1, 0, 1), (2, 1, math.sqrt(2)):
        sums = one_hot.T @ (flat**power - mean)
        assert np.max(np.abs(sums)) < 5 * spread * share


@pytest.mark.parametrize(('seq_len', 'sparsity'), [(5, 2), (8, 3)])
def test_half_and_half_distributions(seq_len, sparsity):
    """Propositions 3 and 21; the paper counts positions from 1."""
    task = plain_task(seq_len=seq_len, sparsity=sparsity, indices='half', tokens='half')
    prompts = setup(task, NUM_PROMPTS)
    num_gaussian = math.ceil(seq_len / 2) - 1
    assert task.num_gaussian == num_gaussian
    assert_standard_normal(prompts.x_NxD[:, :num_gaussian])
    assert not np.any(prompts.x_NxD[:, num_gaussian:])
    for i in range(seq_len):
        t_i = prompts.t_NxQ[:, i]
        if i + 1 >= seq_len / 2:
            assert np.all(t_i == np.arange(sparsity))
        else:
            for k in range(sparsity):
                assert_uniform(np.bincount(t_i[:, k], minlength=seq_len))


def test_half_of_the_shortest_prompt_is_all_zeros():
    task = plain_task(seq_len=2, tokens='half')
    assert not np.any(tasks.sample(stream(task), task, {}).x_NxD)


@pytest.mark.parametrize('seq_len', range(2, 10))
def test_half_tokens_cover_what_half_indices_ask_for(seq_len):
    task = plain_task(seq_len=seq_len, tokens='half')
    assert task.num_gaussian == sum(i < seq_len / 2 for i in range(1, seq_len + 1))
    largest = [q for q in range(1, seq_len) if q < seq_len / 2][-1:]
    assert largest in ([], [task.num_gaussian])


def own_indices(key, seq_len, sparsity):
    first = jax.random.randint(key, (seq_len, 1), 0, 2)
    return first + jnp.arange(sparsity)[None, :]


def own_tokens(key, seq_len, token_dim):
    return jax.random.uniform(key, (seq_len, token_dim), minval=2.0, maxval=3.0)


@pytest.mark.parametrize('name', ['qstr', 'simple_qstr'])
def test_own_distributions(name):
    task = plain_task(name=name, sparsity=2, indices=own_indices, tokens=own_tokens)
    prompts = setup(task, 500)
    t, x = prompts.t_NxQ, prompts.x_NxD
    assert np.all((x >= 2) & (x < 3))
    assert np.mean(x) == pytest.approx(2.5, abs=0.02)
    assert np.all(t[..., 1] == t[..., 0] + 1)
    assert set(np.unique(t[..., 0])) == {0, 1}
    assert np.mean(t[..., 0]) == pytest.approx(0.5, abs=0.12)
    assert np.all(t == t[:, :1]) == (name == 'simple_qstr')
    prompt = prompt_number(3, prompts)
    np.testing.assert_allclose(prompt.y_N, slow_labels(prompt, task, {}), rtol=1e-6)


def test_one_own_distribution_leaves_the_other_as_it_is():
    own_t = setup(plain_task(sparsity=2, indices=own_indices), NUM_PROMPTS)
    assert_standard_normal(own_t.x_NxD)
    own_x = setup(plain_task(sparsity=2, tokens=own_tokens), NUM_PROMPTS)
    assert_uniform(np.bincount(own_x.t_NxQ[:, 2, 1], minlength=6))


@pytest.mark.parametrize(
    ('setting', 'function', 'shapes'),
    [
        ('indices', lambda key, seq_len, sparsity: jnp.zeros((seq_len, 1), jnp.int32), ('(6, 2)', '(6, 1)')),
        ('indices', lambda key, seq_len, sparsity: jnp.zeros((1, sparsity), jnp.int32), ('(6, 2)', '(1, 2)')),
        ('tokens', lambda key, seq_len, token_dim: jnp.zeros((seq_len, 1)), ('(6, 3)', '(6, 1)')),
    ],
)
def test_own_distribution_of_a_wrong_shape_is_an_error(setting, function, shapes):
    task = plain_task(sparsity=2, **{setting: function})
    expected = '{}: the function must return shape {}, not {}'.format(setting, *shapes)
    with pytest.raises(ValueError, match=f'^{re.escape(expected)}$'):
        tasks.sample(stream(task), task, {})


# Labels.


def slow_labels(prompt, task, link_params):
    """y_i = g(x_{t_i1}, …, x_{t_iq}), position by position."""
    y = []
    for i in range(task.seq_len):
        tokens = np.stack([prompt.x_NxD[int(t)] for t in prompt.t_NxQ[i]])
        y.append(float(task.link.apply(link_params, tokens)))
    return y


@pytest.mark.parametrize('link', LINKS)
@pytest.mark.parametrize('name', ['qstr', 'simple_qstr'])
def test_labels_equal_slow_labels(name, link):
    task = tasks.build(name, seq_len=5, sparsity=3, token_dim=2, link=link)
    link_params = task.link.init(stream(task, 'task'), 3, 2)
    rng = np.random.default_rng(0)
    labels = quick_jit(task.labels)
    for _ in range(3):
        x, t = rng.normal(size=(5, 2)).astype(np.float32), rng.integers(0, 5, (5, 3))
        t = t[:1].repeat(5, 0) if name == 'simple_qstr' else t
        prompt = tasks.Prompt(x, t, labels(x, t, link_params))
        expected = slow_labels(prompt, task, link_params)
        np.testing.assert_allclose(prompt.y_N, expected, rtol=1e-5, atol=1e-5)
        assert len({round(y, 4) for y in expected}) == 1 or name == 'qstr'


@pytest.mark.parametrize('name', ['qstr', 'simple_qstr'])
def test_variance_of_sampled_labels(name):
    # One in N pairs of indices is a repeat, whose label is ⟨u_1 + u_2, x⟩/√2.
    u = draw(SUM_TASK[name]).link['u_QxD']
    expected = 1 + float(u[0] @ u[1]) / 6
    y = setup(SUM_TASK[name], NUM_PROMPTS).y_N[:, 0]
    assert np.mean(y) == pytest.approx(0, abs=5 / math.sqrt(NUM_PROMPTS))
    assert np.var(y) == pytest.approx(expected, abs=5 * math.sqrt(3 / NUM_PROMPTS))


def test_encode_uses_the_drawn_vectors_and_the_scale():
    task = plain_task(seq_len=4, sparsity=2, token_dim=8, encoding_scale='scaled')
    drawn, prompt = draw(task), tasks.sample(stream(task), task, {})
    z = tasks.encode(prompt, task, drawn)
    assert task.scale == 2.0
    assert z.shape == (4, task.embedding_dim) == (4, 8 + 3 * 6)
    omega = drawn.encodings.omega_NxE
    for i in range(4):
        first, second = prompt.t_NxQ[i]
        expected = np.concatenate([prompt.x_NxD[i], 2 * omega[i], 2 * omega[first], 2 * omega[second]])
        np.testing.assert_allclose(z[i], expected, rtol=1e-6)


# Datasets are pure functions.


def assert_same_bits(ours, theirs):
    for one, other in zip(ours, theirs, strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize('name', ['qstr', 'simple_qstr'])
def test_training_sets_are_nested(name):
    small, large = (setup(SUM_TASK[name], num_prompts, jit=jax.jit) for num_prompts in (10, 37))
    assert_same_bits(small, prompt_number(slice(10), large))
    assert not np.any(small.x_NxD == large.x_NxD[10:20])


@pytest.mark.parametrize('name', ['qstr', 'simple_qstr'])
def test_a_batch_equals_single_prompts_bit_for_bit(name):
    task = SUM_TASK[name]
    prompts, link_params = setup(task, 10, jit=jax.jit), draw(task).link
    sample = jax.jit(lambda i: tasks.sample(jax.random.fold_in(stream(task), i), task, link_params))
    for i in 0, 7:
        assert_same_bits(sample(i), prompt_number(i, prompts))
    # Without jit too, but for the last bit of the labels: their sum is not fused then.
    plain = tasks.sample(jax.random.fold_in(stream(task), 7), task, link_params)
    assert_same_bits(plain[:2], prompt_number(7, prompts)[:2])
    np.testing.assert_allclose(plain.y_N, prompts.y_N[7], rtol=1e-5, atol=1e-6)


def test_examples_by_any_index():
    task = SUM_TASK['qstr']
    pick = jax.jit(lambda i: tasks.examples(stream(task), i, task, draw(task).link))
    prompts = setup(task, 37, jit=jax.jit)
    assert_same_bits(pick(jnp.array([31, 3, 3])), prompt_number(np.array([31, 3, 3]), prompts))


def test_streams_are_independent():
    task = plain_task(sparsity=2)
    train, test = (setup(task, NUM_PROMPTS, name).x_NxD.ravel() for name in ('train', 'test'))
    assert abs(np.mean(train * test)) < 5 / math.sqrt(train.size)


def test_draw_depends_on_its_key_alone():
    task = SUM_TASK['qstr']
    same, other = (helpers.draw(tasks.task_key(seed, task), task) for seed in (0, 1))
    assert np.array_equal(same.encodings.omega_NxE, draw(task).encodings.omega_NxE)
    assert np.array_equal(same.link['u_QxD'], draw(task).link['u_QxD'])
    assert not np.array_equal(same.link['u_QxD'], other.link['u_QxD'])
    assert not np.array_equal(same.encodings.omega_NxE, other.encodings.omega_NxE)


def test_positions_are_uniform_and_a_function_of_the_example():
    key = stream(plain_task(), 'position')
    positions = np.asarray(quick_jit(lambda: tasks.positions(key, jnp.arange(20_000), 6))())
    assert_uniform(np.bincount(positions, minlength=6))
    assert_uniform(np.bincount(6 * positions[1:] + positions[:-1], minlength=36))
    again = tasks.positions(key, jnp.array([17, 5]), 6)
    assert again.tolist() == positions[[17, 5]].tolist()


# Settings.


def test_defaults_and_derived_sizes():
    task = tasks.build('qstr', seq_len=12, sparsity=2, token_dim=7)
    assert task.encoding_dim == 12 == encodings.default_encoding_dim(12)
    assert [tasks.build('qstr', seq_len=n, encoding_factor=3.0).encoding_dim for n in (8, 64, 512)] == [6, 12, 18]
    assert task.embedding_dim == 7 + 3 * 12
    assert task.scale == 1.0
    assert task.num_gaussian == 12
    assert task.link is links.get('linear')


def test_tasks_compare_and_hash_by_value():
    for link in 'linear', first_entry:
        one, two = (tasks.build('qstr', seq_len=5, link=link) for _ in range(2))
        assert one == two
        assert hash(one) == hash(two)
        assert dataclasses.replace(one) == one
        assert one != tasks.build('qstr', seq_len=6, link=link)


@pytest.mark.parametrize(
    ('settings', 'message'),
    [
        ({'name': 'qstrr'}, "task='qstrr': unknown; did you mean 'qstr'"),
        ({'seq_len': 1}, 'seq_len=1: must be an integer, at least 2'),
        ({'seq_len': 8.0}, 'seq_len=8.0: must be an integer'),
        ({'seq_len': '8'}, "seq_len='8': must be an integer"),
        ({'sparsity': 0}, 'sparsity=0: must be an integer, at least 1'),
        ({'sparsity': True}, 'sparsity=True: must be an integer'),
        ({'sparsity': 9}, 'sparsity=9: must be at most seq_len=8'),
        ({'token_dim': 0}, 'token_dim=0: must be an integer, at least 1'),
        ({'link': 'quadratic'}, "link='quadratic': unknown, one of linear"),
        ({'indices': 'fixed'}, "indices='fixed': must be a function, or one of uniform, half"),
        ({'tokens': 'laplace'}, "tokens='laplace': must be a function, or one of gaussian, half"),
        ({'encoding_dim': 0}, 'encoding_dim=0: must be an integer, at least 1'),
        ({'encoding_factor': 0.0}, 'encoding_factor=0.0: must be positive'),
        (
            {'encoding_factor': 3.0, 'encoding_dim': 7},
            'encoding_factor=3: means d_e = 6 at N = 8, not encoding_dim=7; give one of the two',
        ),
        (
            {'seq_len': 64, 'encoding_dim': 10, 'max_coherence': 0.25},
            'max_coherence=0.25: impossible at seq_len=64 with encoding_dim=10, where any unit vectors have a coherence'
            ' of at least 0.293',
        ),
        (
            {'encoding_dim': 2},
            'encoding_dim=2: there are only 4 distinct encodings for seq_len=8; use encoding_dim ≥ 3',
        ),
        ({'encoding_scale': 'big'}, "encoding_scale='big': one of unscaled, scaled"),
        ({'max_coherence': 0.0}, 'max_coherence=0.0: must lie in (0, 1]'),
        ({'max_coherence': 1.5}, 'max_coherence=1.5: must lie in (0, 1]'),
        ({'max_coherence': math.nan}, 'max_coherence=nan: must be finite'),
        ({'max_coherence': '0.5'}, "max_coherence='0.5': must be a number"),
        (
            {'name': 'simple_qstr', 'indices': 'half'},
            "indices='half': positions have different indices, so the task must be 'qstr'",
        ),
        ({'sparsity': 4, 'indices': 'half'}, "sparsity=4: indices='half' needs q < N/2"),
        ({'seq_len': 2, 'indices': 'half'}, "sparsity=1: indices='half' needs q < N/2"),
    ],
)
def test_bad_settings_are_named_in_one_line(settings, message):
    with pytest.raises(ValueError) as error:
        tasks.build(**{'name': 'qstr', **settings})
    assert message in str(error.value)
    assert '\n' not in str(error.value)


def test_smallest_settings_work():
    task = plain_task(seq_len=2, sparsity=2, token_dim=1, encoding_dim=1)
    assert draw(task).encodings.complete
    assert tasks.sample(stream(task), task, {}).x_NxD.shape == (2, 1)
    assert tasks.build('qstr', seq_len=8, encoding_dim=2, distinct_encodings=False).encoding_dim == 2


def test_check_draw():
    task = tasks.build('qstr', seq_len=64, encoding_dim=10, max_coherence=0.5)
    task.check_draw(np.array([True, True]))
    with pytest.raises(ValueError) as error:
        task.check_draw(np.array([True, False]))
    assert str(error.value).startswith('encoding_dim=10: too small to draw seq_len=64 distinct vectors')
    assert 'max_coherence=0.5' in str(error.value)
    assert '\n' not in str(error.value)
