"""Measured quantities against their definitions, on constructed and on random weights."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from qstr_jax import tasks
from qstr_jax.learners import span_of_inputs
from qstr_jax.models import Feedforward, Recurrent
from qstr_jax.theory import constructions, measures, sensitivity
from tests import helpers

TASK = tasks.build('qstr', seq_len=8, sparsity=2, token_dim=3, link='sum', encoding_dim=12)


@functools.cache
def setup():
    task_draw = helpers.draw(jax.random.key(0), TASK)
    examples = jax.jit(tasks.examples, static_argnames='task')
    prompts = examples(jax.random.key(1), jnp.arange(4), TASK, task_draw.link)
    return task_draw, prompts


@functools.cache
def z_examples():
    task_draw, prompts = setup()
    return jax.vmap(lambda prompt: tasks.encode(prompt, TASK, task_draw))(prompts)


def test_alignment_of_the_construction_whatever_the_order_of_heads():
    task_draw, _ = setup()
    built = constructions.transformer(TASK, task_draw, 5.0, num_heads=3)
    aligned = measures.alignment(built.params, TASK)
    assert aligned.index_H.tolist() == [0, 1, -1]
    assert (aligned.share, aligned.cosine) == pytest.approx((1, 1))
    swapped = {'params': {'attention': {'qk_HxExE': built.params['params']['attention']['qk_HxExE'][::-1]}}}
    aligned = measures.alignment(swapped, TASK)
    assert aligned.index_H.tolist() == [-1, 1, 0]
    assert aligned.share == pytest.approx(1)


def test_alignment_of_separate_weights_and_of_noise():
    d, d_e, size = TASK.token_dim, TASK.encoding_dim, TASK.embedding_dim
    noise_Ex3xHxE = np.random.default_rng(0).normal(size=(size, 3, 2, size))
    aligned = measures.alignment({'params': {'attention': {'in_kernel': jnp.asarray(noise_Ex3xHxE)}}}, TASK)
    assert aligned.share < 0.3
    assert abs(aligned.cosine) < 0.5
    # W_Q copies ω_{t_h} and W_K copies ω_j onto the same coordinates: W_Q^T W_K is the construction's.
    kernel_Ex3xHxE = np.zeros((size, 3, 2, size))
    for head in range(2):
        kernel_Ex3xHxE[d + (head + 1) * d_e : d + (head + 2) * d_e, 0, head, :d_e] = 2 * np.eye(d_e)
        kernel_Ex3xHxE[d : d + d_e, 1, head, :d_e] = np.eye(d_e)
    aligned = measures.alignment({'params': {'attention': {'in_kernel': jnp.asarray(kernel_Ex3xHxE)}}}, TASK)
    assert (aligned.share, aligned.cosine) == pytest.approx((1, 1))
    np.testing.assert_allclose(aligned.share_HxQ, np.eye(2), atol=1e-6)


def test_off_mass_is_one_minus_the_weight_on_the_right_token():
    task_draw, prompts = setup()
    built = constructions.transformer(TASK, task_draw, 5.0, alpha=3.0)
    mass = measures.off_mass(built.module, built.params, prompts, TASK, task_draw)
    omega_NxE = np.asarray(task_draw.encodings.omega_NxE)
    weights_NxN = np.exp(3.0 * omega_NxE @ omega_NxE.T)
    right_N = np.diag(weights_NxN) / weights_NxN.sum(1)
    assert mass['mean'] == pytest.approx(1 - np.mean(right_N[np.asarray(prompts.t_NxQ)]), abs=1e-5)
    assert mass['max'] == pytest.approx(1 - np.min(right_N[np.asarray(prompts.t_NxQ)]), abs=1e-5)


def test_heads_match_the_indices_that_they_look_at_most():
    assert measures.match_heads([[0.9, 0.8], [0.9, 0.1]]).tolist() == [1, 0]


@functools.cache
def random_rnn():
    """Parameters of an RNN, its states at one prompt, and its predictions there."""
    module, z_NxE = Recurrent(6, 'deep', 'exclusive', 'mlp', (7, 5), (4,), radius=2.0), z_examples()[0]
    params = jax.jit(module.init)(jax.random.key(3), z_NxE)
    states_NxF = jax.jit(functools.partial(sensitivity.recurrent_states, module))(params, z_NxE)
    return params, z_NxE, states_NxF, jax.jit(module.apply)(params, z_NxE)


def test_states_and_read_out_make_up_the_recurrent_network():
    params, z_NxE, states_NxF, expected_N = random_rnn()
    assert states_NxF.shape == (8, 12)
    assert not states_NxF[0, :6].any()
    assert not states_NxF[-1, 6:].any()
    prediction_N = jax.vmap(lambda h, z: sensitivity.read_out(params, h, z))(states_NxF, z_NxE)
    np.testing.assert_allclose(prediction_N, expected_N, rtol=1e-4, atol=1e-6)


def test_state_sensitivity_bounds_the_gradients():
    params, z_NxE, states_NxF, _ = random_rnn()
    by_layers = float(sensitivity.state_sensitivity(params, 6, 2.0))
    sampled = float(sensitivity.state_sensitivity_sampled(params, states_NxF, z_NxE, 2.0))
    assert 0 < sampled <= by_layers
    tree = params['params']
    norms = [np.linalg.norm(tree[name]['kernel'], 2) for name in ('readout_1', 'out')]
    first = np.linalg.norm(tree['readout_0']['kernel'][:12], 2)
    assert by_layers == pytest.approx((2 * first * np.prod(norms)) ** 2, rel=1e-4)
    linear = {'params': {'out': {'kernel': jnp.full((12, 1), 0.5)}}}
    assert float(sensitivity.state_sensitivity(linear, 6, 1.0)) == pytest.approx(3)


def test_transition_lipschitz_of_both_directions():
    cell = random_rnn()[0]['params']['cell']
    hidden_2, last_2 = (np.linalg.norm(cell[name], 2, axis=(1, 2)) for name in ('hidden_kernel', 'kernel_1'))
    np.testing.assert_allclose(
        sensitivity.transition_lipschitz({'params': {'cell': cell}}), hidden_2 * last_2, rtol=1e-5
    )


def off_span(params, layer, x_BxNxD):
    """The share ‖W (I − P_S)‖_F/‖W‖_F of an FFN's token weights off the span S of some prompts' tokens."""
    (size, seq_len, token_dim), kernel = x_BxNxD.shape, params['params'][layer]['kernel']
    kernel_VxM = kernel.reshape(seq_len, -1, kernel.shape[-1])[:, :token_dim].reshape(seq_len * token_dim, -1)
    basis_RxV = span_of_inputs.basis(x_BxNxD.reshape(size, -1))
    tokens = {'params': {span_of_inputs.LAYER: {'kernel': kernel_VxM}}}
    return float(span_of_inputs.residual(tokens, basis_RxV) / jnp.linalg.norm(kernel_VxM))


@pytest.mark.parametrize('form', ['theorem6', 'flat'])
def test_span_residual_stays_zero_under_gradient_descent_and_not_under_adam(form):
    with jax.enable_x64(True):
        rng = np.random.default_rng(0)
        z_BxNxE, y_BxN = rng.normal(size=(10, 6, 7)), rng.normal(size=(10, 6))
        x_BxNxD = jnp.asarray(z_BxNxE[..., :4])
        module = Feedforward((16,), 4, form)
        params = jax.jit(module.init)(jax.random.key(2), z_BxNxE[0])
        params = jax.tree.map(lambda leaf: leaf.astype(float), params)
        layer = 'tokens' if form == 'theorem6' else 'hidden_0'
        kernel = params['params'][layer]['kernel']
        params['params'][layer]['kernel'] = jnp.zeros_like(kernel)
        random = {'params': {layer: {'kernel': kernel}}}

        def loss(params):
            return jnp.mean((jax.vmap(module.apply, (None, 0))(params, z_BxNxE) - y_BxN) ** 2)

        residuals = {}
        for name, optimiser in (('sgd', optax.sgd(0.1, momentum=0.9)), ('adam', optax.adam(0.01))):

            @jax.jit
            def step(trained, state, optimiser=optimiser):
                updates, state = optimiser.update(jax.grad(loss)(trained), state)
                return optax.apply_updates(trained, updates), state

            trained, state = params, optimiser.init(params)
            for _ in range(5):
                trained, state = step(trained, state)
            residuals[name] = off_span(trained, layer, x_BxNxD)
        assert residuals['sgd'] < 1e-12
        assert residuals['adam'] > 1e-3
        expected = np.sqrt(1 - 10 / 24)  # random weights: the share of dimensions outside the span
        assert off_span(random, layer, x_BxNxD) == pytest.approx(expected, abs=0.1)
