"""The proofs' networks do what the proofs say, in the modules that are trained."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from qstr_jax import models, tasks
from qstr_jax.learners import risks
from qstr_jax.tasks import encodings
from qstr_jax.theory import constructions, interpolation, measures, networks, recurrences, sensitivity

LINKS = ('linear', 'sum', 'hermite2')


_examples = jax.jit(tasks.examples, static_argnames='task')
_draw = jax.jit(tasks.draw, static_argnames='task')


@functools.cache
def _float32_draw(task, seed):
    with jax.enable_x64(False):
        return _draw(jax.random.key(seed), task)


def draw(task, seed=0):
    """Drawn in float32 whatever the precision (one program for both), the link's numbers cast to it."""
    drawn = _float32_draw(task, seed)
    return drawn._replace(link=jax.tree.map(lambda leaf: leaf.astype(float), drawn.link))


@functools.cache
def raw_sample(task, count, seed):
    with jax.enable_x64(False):
        return _examples(jax.random.key(seed), jnp.arange(count), task, _float32_draw(task, 0).link)


@functools.partial(jax.jit, static_argnames=('task', 'dtype'))
def relabel(prompts, task, link_params, dtype=jnp.float64):
    """The same tokens in another precision, labelled by the task's link."""
    x_BxNxD = prompts.x_NxD.astype(dtype)
    y_BxN = jax.vmap(lambda x, t: task.labels(x, t, link_params))(x_BxNxD, prompts.t_NxQ)
    return tasks.Prompt(x_BxNxD, prompts.t_NxQ, y_BxN)


def sample(task, count, dtype=jnp.float64, seed=1):
    return relabel(raw_sample(task, count, seed), task, draw(task).link, dtype)


@functools.partial(jax.jit, static_argnames='module')
def predictions(module, params, prompts, omega_NxE, scale):
    def predict(prompt):
        z_NxE = encodings.encode(prompt.x_NxD, prompt.t_NxQ, omega_NxE, scale)
        return models.predict(module, params, z_NxE)

    return jax.lax.map(predict, prompts)


def largest_error(built, prompts, task, task_draw):
    omega_NxE = task_draw.encodings.omega_NxE
    prediction_BxN = predictions(built.module, built.params, prompts._replace(y_N=None), omega_NxE, task.scale)
    return float(np.max(np.abs(prompts.y_N - np.asarray(prediction_BxN))))


def radius_of(prompts):
    return float(np.max(np.linalg.norm(prompts.x_NxD, axis=-1)))


def check_shapes(built, task):
    """The parameters are what the module's own `init` would make."""
    z_NxE = jnp.zeros((task.seq_len, task.embedding_dim))
    expected = jax.eval_shape(built.module.init, jax.random.key(0), z_NxE)
    assert jax.tree.map(jnp.shape, built.params) == jax.tree.map(jnp.shape, expected)


@pytest.mark.parametrize(
    ('sparsity', 'seq_len', 'scale', 'precise'),
    [
        pytest.param(1, 1024, 'scaled', True, marks=pytest.mark.slow),
        pytest.param(2, 1024, 'unscaled', True, marks=pytest.mark.slow),
        pytest.param(4, 1024, 'scaled', True, marks=pytest.mark.slow),
        (2, 128, 'scaled', False),
        (4, 16, 'unscaled', True),
    ],
)
def test_transformer_meets_its_bound(sparsity, seq_len, scale, precise):
    with jax.enable_x64(precise):
        dtype = jnp.float64 if precise else jnp.float32
        sizes = {'encoding_dim': round(16 * np.log(seq_len)), 'encoding_scale': scale}
        first = tasks.build('qstr', seq_len=seq_len, sparsity=sparsity, token_dim=10, link='linear', **sizes)
        for link in LINKS:
            task = tasks.build('qstr', seq_len=seq_len, sparsity=sparsity, token_dim=10, link=link, **sizes)
            params = task.link.init(jax.random.key(4), sparsity, 10)
            task_draw = draw(first)._replace(link=params)
            prompts = relabel(raw_sample(first, 1, 1), task, params, dtype)
            radius = radius_of(prompts)
            built = constructions.transformer(task, task_draw, radius, error=0.1)
            check_shapes(built, task)
            bound = 0.2 if link == 'hermite2' else 0.1  # η_g + η, and linear forms are exact
            assert built.bounds['output'] == pytest.approx(bound)
            assert built.bounds['squared_error'] == pytest.approx(bound**2)
            assert largest_error(built, prompts, task, task_draw) <= bound
            assert built.bounds['alpha'] < 1.05 * constructions.paper_alpha(task, task_draw, radius)


def test_transformer_off_mass_and_error_follow_alpha():
    """Both stay below their bounds for every α, and fall as it grows; extra heads change nothing."""
    with jax.enable_x64(True):
        task = tasks.build('qstr', seq_len=32, sparsity=2, token_dim=10, link='sum', encoding_dim=56)
        task_draw = draw(task)
        prompts = sample(task, 4)
        errors = []
        for alpha in (0.0, 4.0, 8.0, 16.0, 32.0):
            built = constructions.transformer(task, task_draw, radius_of(prompts), alpha=alpha, num_heads=3)
            mass = measures.off_mass(built.module, built.params, prompts, task, task_draw)
            errors.append(largest_error(built, prompts, task, task_draw))
            assert 0 <= mass['mean'] <= mass['max'] <= built.bounds['off_mass'] + 1e-12
            assert errors[-1] <= built.bounds['output']
        assert errors == sorted(errors, reverse=True)
        assert errors[-1] < 1e-6
        assert built.norms['query_key_frobenius'] == pytest.approx(32 * np.sqrt(56))
        assert built.norms['query_key_two_one'] == pytest.approx(32 * 56)
        assert built.norms['query_key_balanced'] ** 2 == pytest.approx(2 * 2 * 32 * 56)
        assert built.norms['r_a'] == pytest.approx(2)
        assert built.norms['r_w'] == pytest.approx(1)


def test_sparse_average_needs_one_head():
    def distinct(key, seq_len, sparsity):
        keys = jax.random.split(key, seq_len)
        return jax.vmap(lambda k: jax.random.permutation(k, seq_len)[:sparsity])(keys)

    with jax.enable_x64(True):
        task = tasks.build(
            'qstr',
            seq_len=12,
            sparsity=3,
            token_dim=5,
            link='mean',
            indices=distinct,
            encoding_dim=24,
            encoding_scale='scaled',
        )
        task_draw = draw(task)
        prompts = sample(task, 20)
        built = constructions.sparse_average(task, task_draw, radius_of(prompts), error=1e-6)
        check_shapes(built, task)
        assert built.module.num_heads == 1
        assert built.bounds['output'] <= 1e-6
        assert largest_error(built, prompts, task, task_draw) <= built.bounds['output']
        repeated = prompts._replace(t_NxQ=prompts.t_NxQ.at[..., 1].set(prompts.t_NxQ[..., 0]))
        repeated = relabel(repeated, task, task_draw.link)
        assert largest_error(built, repeated, task, task_draw) > 0.1


@pytest.mark.parametrize(('precise', 'limit'), [(True, 1e-12), (False, 1e-5)])
@pytest.mark.parametrize(('sparsity', 'seq_len', 'link'), [(1, 512, 'linear'), (2, 64, 'sum'), (3, 512, 'two_layer')])
def test_retrieving_rnn_is_exact(sparsity, seq_len, link, precise, limit):
    with jax.enable_x64(precise):
        dtype = jnp.float64 if precise else jnp.float32
        scale = 'scaled' if sparsity == 2 else 'unscaled'
        task = tasks.build(
            'simple_qstr', seq_len=seq_len, sparsity=sparsity, token_dim=10, link=link, encoding_scale=scale
        )
        task_draw = draw(task)
        prompts = sample(task, 3, dtype)
        token_bound = float(np.max(np.abs(prompts.x_NxD)))
        built = recurrences.retrieving(task, task_draw, token_bound)
        check_shapes(built, task)
        networks.check_tokens(built, prompts.x_NxD)
        assert built.module.lipschitz == 0
        assert largest_error(built, prompts, task, task_draw) <= limit
        d_e, distance = task.encoding_dim, networks.separation(task_draw.encodings.omega_NxE).distance
        ratio = token_bound / (task.scale * distance)
        square = 4 * sparsity * d_e + 20 + 60 * sparsity + 40 * sparsity * d_e * ratio**2
        assert built.norms['transition_square'] == pytest.approx(square, rel=3e-4)


def test_retrieving_rnn_states_hold_the_relevant_tokens():
    with jax.enable_x64(True):
        task = tasks.build('simple_qstr', seq_len=16, sparsity=2, token_dim=3, link='hermite2')
        task_draw = draw(task)
        prompts = sample(task, 1)
        prompt = jax.tree.map(lambda leaf: leaf[0], prompts)
        built = recurrences.retrieving(task, task_draw, 6.0, error=0.05)
        z_NxE = tasks.encode(prompt, task, task_draw)
        states_NxF = jax.jit(functools.partial(sensitivity.recurrent_states, built.module))(built.params, z_NxE)
        expected = np.zeros((16, 2, 2, 3))
        for block, t in enumerate(prompt.t_NxQ[0]):
            expected[t + 1 :, 0, block] = prompt.x_NxD[t]
            expected[:t, 1, block] = prompt.x_NxD[t]
        np.testing.assert_allclose(states_NxF, expected.reshape(16, -1), atol=1e-12)
        assert largest_error(built, prompts, task, task_draw) <= built.bounds['output'] == 0.05


@pytest.mark.parametrize('state_radius', [None, 1.0])
@pytest.mark.parametrize(('sparsity', 'seq_len', 'dim'), [(1, 16, 1), (2, 6, 3)])
def test_storing_rnn_is_exact_on_qstr(sparsity, seq_len, dim, state_radius):
    with jax.enable_x64(True):
        task = tasks.build(
            'qstr',
            seq_len=seq_len,
            sparsity=sparsity,
            token_dim=dim,
            link='sum',
            encoding_dim=16,
            encoding_scale='scaled',
        )
        task_draw = draw(task)
        prompts = sample(task, 50)
        token_bound = float(np.max(np.abs(prompts.x_NxD)))
        built = recurrences.storing(task, task_draw, token_bound, state_radius=state_radius)
        check_shapes(built, task)
        assert built.module.width == seq_len * dim
        assert largest_error(built, prompts, task, task_draw) <= 1e-12
        if state_radius:
            assert built.bounds['state_norm'] == pytest.approx(1)
            assert built.norms['state_projection'] > 2


_pointwise = jax.jit(risks.pointwise, static_argnames=('module', 'task'))


def memorise(prompts, positions_B, task, seed=0):
    """A memoriser and its training risk on one draw of (u, ω)."""
    built = interpolation.memorising(jax.random.key(seed), prompts, positions_B, task)
    risk = _pointwise(built.module, built.params, prompts, positions_B, task=task, task_draw=draw(task))
    return built, float(risk)


def training_set(count, seed=0):
    task = tasks.build('qstr', seq_len=16, sparsity=1, token_dim=10, link='linear')
    positions_B = tasks.positions(jax.random.key(seed), jnp.arange(count), task.seq_len)
    return sample(task, count, seed=seed + 100), positions_B, task


@pytest.mark.slow
def test_memorising_rnn_fits_with_cubic_norm():
    with jax.enable_x64(True):
        samples, squares = (8, 32, 128), []
        nested = [training_set(128, seed) for seed in range(2)]
        for n in samples:
            fits = [memorise(jax.tree.map(lambda leaf, n=n: leaf[:n], p), j[:n], task) for p, j, task in nested]
            assert max(risk for _, risk in fits) < 1e-8
            for built, _ in fits:
                assert built.norms['separation'] >= interpolation.least_separation(n)
                assert built.norms['square'] <= built.norms['square_layerwise'] <= built.bounds['square']
                assert built.norms['square'] / n**3 < 5
                assert built.norms['param_norm'] == pytest.approx(np.sqrt(built.norms['square']))
            squares.append(np.mean([built.norms['square'] for built, _ in fits]))
        exponent = np.polyfit(np.log(samples), np.log(squares), 1)[0]
        assert 1.8 < exponent <= 3
        prompts, _, task = nested[0]
        assert largest_error(built, prompts, task, draw(task)) > 1  # it learnt nothing else


def test_separating_direction_is_found_often_enough(monkeypatch):
    """Lemma 37 promises each draw a chance of 1/3."""
    monkeypatch.setattr(interpolation, '_TRIES', 1)
    rng, found = np.random.default_rng(0), 0
    for seed in range(100):
        try:
            interpolation.separating_direction(jax.random.key(seed), rng.normal(size=(40, 10)))
            found += 1
        except ValueError:
            pass
    assert found > 33


def test_bad_input_is_named():
    task = tasks.build('qstr', seq_len=8, sparsity=2, token_dim=4, link='sum', encoding_dim=12)
    simple = tasks.build('simple_qstr', seq_len=8, sparsity=2, token_dim=4, link='sum', encoding_dim=12)
    good = draw(task)
    omega_NxE = good.encodings.omega_NxE
    equal = good._replace(encodings=good.encodings._replace(omega_NxE=omega_NxE.at[5].set(omega_NxE[2])))
    for call in (
        lambda: constructions.transformer(task, equal, 5.0),
        lambda: recurrences.retrieving(simple, equal, 5.0),
        lambda: recurrences.storing(task, equal, 5.0),
    ):
        with pytest.raises(ValueError, match=r'^encodings 2 and 5 are equal'):
            call()
    with pytest.raises(ValueError, match=r'^coherence=0.01: must be below 1 and at least the max'):
        constructions.transformer(task, good, 5.0, coherence=0.01)
    with pytest.raises(ValueError, match=r'^num_heads=1: .* H ≥ q = 2'):
        constructions.transformer(task, good, 5.0, num_heads=1)
    other = tasks.build(
        'simple_qstr', seq_len=8, sparsity=2, token_dim=4, link=lambda x_QxD: jnp.max(x_QxD), encoding_dim=12
    )
    for call in (constructions.transformer, recurrences.retrieving, recurrences.storing):
        with pytest.raises(ValueError, match=r"^link '<lambda>' has no two-layer form"):
            call(other, good, 5.0)
    built = recurrences.retrieving(simple, good, 2.0)
    with pytest.raises(ValueError, match=r'^M=2: below the data, max \|x_jk\| = 2.5'):
        networks.check_tokens(built, jnp.full((8, 4), 2.5))
    with pytest.raises(ValueError, match=r'^radius=1: below the data'):
        networks.check_tokens(constructions.transformer(task, good, 1.0), jnp.ones((8, 4)))
    with pytest.raises(ValueError, match="needs 'simple_qstr'"):
        recurrences.retrieving(task, good, 2.0)
    with pytest.raises(ValueError, match='M must be positive'):
        recurrences.storing(task, good, 0.0)
    with pytest.raises(ValueError, match=r"^link='sum': one head can only average"):
        constructions.sparse_average(task, good, 5.0)
    crowded = tasks.build('qstr', seq_len=8, sparsity=2, token_dim=4, link='mean', encoding_dim=6)
    with pytest.raises(ValueError, match=r'^encodings: one head needs 8 linearly independent'):
        constructions.sparse_average(crowded, draw(crowded), 5.0)
    with pytest.raises(ValueError, match='same z'):
        interpolation.interpolate([1.0, 1.0], [0.0, 1.0])
    with pytest.raises(ValueError, match=r'^no direction of 64 separates'):
        interpolation.separating_direction(jax.random.key(0), np.ones((3, 2)))
    with pytest.raises(ValueError, match=r'^n=1'):
        interpolation.memorising(jax.random.key(0), sample(task, 4, jnp.float32), jnp.arange(1), task)
