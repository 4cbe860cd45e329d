"""Recurrent networks against Flax's cells and plain loops; what bounds, cuts and hides their states."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn

from qstr_jax.models import Recurrent, deep_cell, gated_cell
from tests.helpers import quick_jit, random_params

SEQ_LEN, INPUT, WIDTH = 5, 3, 4


def prompt(seed=0, seq_len=SEQ_LEN):
    return np.random.default_rng(seed).normal(size=(seq_len, INPUT)).astype(np.float32)


def make(scale=0.7, **settings):
    module = Recurrent(WIDTH, **settings)
    return module, random_params(module, prompt(), scale=scale)


def run(module, params, z):
    return quick_jit(module.apply)(params, z)


def direction(cell, k):
    """Parameters of one direction, in float64."""
    return {name: np.asarray(leaf[k], np.float64) for name, leaf in cell.items()}


def predict(params, forward_NxH, backward_NxH):
    """The linear read-out of states that stand at their own positions."""
    out = params['params']['out']
    states = np.concatenate([forward_NxH, backward_NxH], axis=-1)
    return states @ out['kernel'][:, 0] + out['bias'][0]


# Flax's own cells, both directions, inclusive states.


def flax_gru(cell, k):
    """r, z and n read b_i + b_h where Flax has one bias; n keeps its two."""
    p = direction(cell, k)
    blocks = {name: np.split(leaf, 3, axis=-1) for name, leaf in p.items()}
    params = {}
    for i, gate in enumerate('rzn'):
        bias = blocks['input_bias'][i] + (blocks['hidden_bias'][i] if gate != 'n' else 0)
        params[f'i{gate}'] = {'kernel': blocks['input_kernel'][i], 'bias': bias}
        params[f'h{gate}'] = {'kernel': blocks['hidden_kernel'][i]}
    params['hn']['bias'] = blocks['hidden_bias'][2]
    return {'cell': params}


def flax_lstm(cell, k):
    p = direction(cell, k)
    blocks = {name: np.split(leaf, 4, axis=-1) for name, leaf in p.items()}
    params = {}
    for i, gate in enumerate('ifgo'):
        params[f'i{gate}'] = {'kernel': blocks['input_kernel'][i]}
        bias = blocks['input_bias'][i] + blocks['hidden_bias'][i]
        params[f'h{gate}'] = {'kernel': blocks['hidden_kernel'][i], 'bias': bias}
    return {'cell': params}


@pytest.mark.parametrize(
    ('kind', 'flax_cell', 'transfer'), [('gru', nn.GRUCell, flax_gru), ('lstm', nn.OptimizedLSTMCell, flax_lstm)]
)
def test_gated_cells_equal_flax(kind, flax_cell, transfer):
    z = prompt()
    module, params = make(cell=kind)
    theirs = nn.Bidirectional(nn.RNN(flax_cell(WIDTH)), nn.RNN(flax_cell(WIDTH)))
    cell = params['params']['cell']
    transferred = {'forward_rnn': transfer(cell, 0), 'backward_rnn': transfer(cell, 1)}
    transferred = jax.tree.map(lambda leaf: leaf.astype(np.float32), transferred)
    states = np.asarray(run(theirs, {'params': transferred}, z))
    expected = predict(params, states[:, :WIDTH], states[:, WIDTH:])
    np.testing.assert_allclose(run(module, params, z), expected, rtol=1e-4, atol=1e-5)
    kernels = cell['hidden_kernel']
    assert not np.allclose(kernels[0], kernels[1])  # directions have their own weights


# Plain loops.


def simple_states(p, z_NxE, kind):
    activation = {'relu': lambda a: np.maximum(a, 0), 'tanh': np.tanh}[kind]
    h, states = np.zeros(WIDTH), []
    for z in z_NxE:
        h = activation(z @ p['input_kernel'] + p['input_bias'] + h @ p['hidden_kernel'] + p['hidden_bias'])
        states.append(h)
    return np.stack(states)


def deep_states(p, z_NxE, radius=None, lipschitz=None):
    kernels = [p[name] for name in sorted(p) if name.startswith('kernel_')]
    hidden = p['hidden_kernel']
    if lipschitz is not None:
        norms = [np.linalg.svd(kernel)[1][0] for kernel in (hidden, *kernels)]
        hidden = hidden * min(1, lipschitz / np.prod(norms))
    h, states = np.zeros(WIDTH), []
    for z in z_NxE:
        layer = h @ hidden + z @ p['input_kernel'] + p['bias_0']
        for i, kernel in enumerate(kernels, start=1):
            layer = np.maximum(layer, 0) @ kernel + p.get(f'bias_{i}', 0)
        h = h + layer
        if radius is not None:
            h = h * min(1, radius / np.linalg.norm(h))
        states.append(h)
    return np.stack(states)


def both(states_of, params, z, states='inclusive'):
    """States of both directions at their own positions."""
    cell = params['params']['cell']
    forward, backward = states_of(direction(cell, 0), z), states_of(direction(cell, 1), z[::-1])
    if states == 'exclusive':
        start = np.zeros((1, WIDTH))
        forward, backward = np.concatenate([start, forward[:-1]]), np.concatenate([start, backward[:-1]])
    return forward, backward[::-1]


@pytest.mark.parametrize('states', ['inclusive', 'exclusive'])
@pytest.mark.parametrize('kind', ['relu', 'tanh'])
def test_simple_cells_equal_a_loop(kind, states):
    z = prompt()
    module, params = make(cell=kind, states=states)
    expected = predict(params, *both(lambda p, z: simple_states(p, z, kind), params, z, states))
    np.testing.assert_allclose(run(module, params, z), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ('states', 'settings'),
    [
        ('inclusive', {}),
        ('exclusive', {'radius': 1.5}),
        ('exclusive', {'lipschitz': 0.1}),
        ('inclusive', {'radius': 0.8, 'lipschitz': 0.0}),
    ],
)
def test_deep_transitions_equal_a_loop(states, settings):
    z = prompt()
    module, params = make(cell='deep', states=states, transition_widths=(6, 5), **settings)
    cell = params['params']['cell']
    # Three layers; the first and the second have a bias, the last has none.
    assert set(cell) == {'hidden_kernel', 'input_kernel', 'kernel_1', 'kernel_2', 'bias_0', 'bias_1'}
    expected = predict(params, *both(lambda p, z: deep_states(p, z, **settings), params, z, states))
    np.testing.assert_allclose(run(module, params, z), expected, rtol=1e-3, atol=1e-4)


def test_mlp_readout_equals_its_formula():
    z = prompt()
    module, params = make(cell='tanh', states='exclusive', readout='mlp', readout_widths=(6, 5))
    states = both(lambda p, z: simple_states(p, z, 'tanh'), params, z, 'exclusive')
    layer = np.concatenate([*states, z], axis=-1)
    for name in 'readout_0', 'readout_1':
        layer = np.maximum(layer @ params['params'][name]['kernel'] + params['params'][name]['bias'], 0)
    out = params['params']['out']
    assert set(out) == {'kernel'}
    np.testing.assert_allclose(run(module, params, z), (layer @ out['kernel'])[:, 0], rtol=1e-3, atol=1e-4)


# What a prediction may depend on.


@pytest.mark.parametrize('cell', ['tanh', 'lstm'])
def test_exclusive_states_have_not_seen_their_own_token(cell):
    diagonals = {}
    for states in ('inclusive', 'exclusive'):
        module, params = make(cell=cell, states=states)
        jacobian = quick_jit(jax.jacobian(lambda z: module.apply(params, z)))(prompt())  # noqa: B023
        seen = np.max(np.abs(jacobian), axis=-1)
        diagonals[states] = np.diag(seen)
        assert np.all(seen[~np.eye(SEQ_LEN, dtype=bool)] > 0)
    assert np.all(diagonals['exclusive'] == 0)
    assert np.all(diagonals['inclusive'] > 0)


SETTINGS = [
    *({'cell': cell} for cell in (*gated_cell.GATES, 'deep')),
    {'cell': 'gru', 'states': 'exclusive', 'readout': 'mlp'},
    {'cell': 'deep', 'states': 'exclusive', 'readout': 'mlp', 'radius': 1.0, 'lipschitz': 0.2},
    {'cell': 'tanh', 'states': 'inclusive', 'readout': 'mlp'},
    {'cell': 'lstm', 'states': 'exclusive'},
]


@pytest.mark.parametrize('settings', SETTINGS, ids=lambda settings: '-'.join(map(str, settings.values())))
def test_prediction_at_a_position_equals_the_full_one(settings):
    module, params = make(**settings)

    @quick_jit
    def compare(z):
        at = jax.lax.map(lambda j: module.apply(params, z, position=j), jnp.arange(SEQ_LEN))
        return module.apply(params, z), at

    full, at_position = compare(prompt())
    assert len(set(np.asarray(full).tolist())) == SEQ_LEN
    np.testing.assert_allclose(at_position, full, rtol=1e-5, atol=1e-5)


def test_more_steps_than_one_unrolled_block():
    module, params = make(cell='gru')
    z = prompt(seq_len=2 * gated_cell.UNROLL + 3)
    # Reversing the prompt and swapping the directions' weights changes nothing but the order.
    swapped = jax.tree.map(lambda leaf: leaf[::-1], params['params']['cell'])
    out = params['params']['out']
    halves = np.roll(out['kernel'], WIDTH, axis=0)
    other = {'params': {'cell': swapped, 'out': {'kernel': halves, 'bias': out['bias']}}}
    expected = run(module, params, z)[::-1]
    np.testing.assert_allclose(run(module, other, z[::-1]), expected, rtol=1e-4, atol=1e-5)


def plain_states(kind, inputs_of, recurrent_of):
    """`gated_cell.gated_states` as a loop, with the derivative that JAX finds by itself."""
    gates, states_of = gated_cell.GATES[kind], []
    for inputs_NxG, (w_HxG, bias_G) in zip(inputs_of, recurrent_of, strict=True):
        carry, states = (jnp.zeros(len(w_HxG)),) * (2 if kind == 'lstm' else 1), []
        for inputs_G in inputs_NxG:
            carry = gates.update(carry, inputs_G, carry[0] @ w_HxG + bias_G)
            states.append(carry[0])
        states_of.append(jnp.stack(states))
    return jnp.stack(states_of)


@pytest.mark.slow
@pytest.mark.parametrize('kind', gated_cell.GATES)
def test_derivatives_of_gated_states_are_those_of_a_loop(kind):
    """Of one prompt and of several, by all arguments; first derivatives and a product with the second."""
    rng = np.random.default_rng(0)
    features = gated_cell.GATES[kind].num_gates * WIDTH
    inputs_of = tuple(rng.normal(size=(3, SEQ_LEN, features)) for _ in range(2))
    recurrent_of = tuple((rng.normal(size=(WIDTH, features)), rng.normal(size=features)) for _ in range(2))
    mix = rng.normal(size=(3, 2, SEQ_LEN, WIDTH))

    def derivatives(states):
        def one(arguments, mix):
            return jnp.sum(mix * states(kind, *arguments) ** 2)

        def batch(arguments, mix):
            return jax.vmap(one, in_axes=((0, None), 0))(arguments, mix).sum()

        single = tuple(inputs[0] for inputs in inputs_of), recurrent_of
        several = inputs_of, recurrent_of
        gradient = jax.grad(batch)
        bent = jax.jvp(lambda arguments: gradient(arguments, mix), (several,), (jax.tree.map(jnp.ones_like, several),))
        return jax.grad(one)(single, mix[0]), bent

    with jax.enable_x64(True):
        found, expected = (quick_jit(derivatives, static_argnums=0)(f) for f in (gated_cell.gated_states, plain_states))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11), found, expected)


# Π_r and α_N.


def test_projection_onto_the_ball():
    rng = np.random.default_rng(0)
    h = rng.normal(size=(200, 6)).astype(np.float32) * rng.uniform(0, 1, (200, 1)).astype(np.float32)
    projected = deep_cell.project_ball(h, 0.7)
    norms = np.linalg.norm(h, axis=-1)
    inside = norms <= 0.7
    assert 50 < inside.sum() < 150
    assert np.array_equal(projected[inside], h[inside])
    # Compiled, r/√(r²) becomes r · rsqrt(r²), which some CPUs only approximate: 1e9 showed it.
    assert np.array_equal(quick_jit(deep_cell.project_ball, static_argnums=1)(h, 1e9), h)
    np.testing.assert_allclose(np.linalg.norm(projected[~inside], axis=-1), 0.7, rtol=1e-6)
    np.testing.assert_allclose(projected, h * np.minimum(1, 0.7 / norms)[:, None], rtol=1e-5)


def test_projection_has_the_identity_as_its_derivative_at_zero():
    jacobian = jax.jacobian(lambda h: deep_cell.project_ball(h, 0.7))(jnp.zeros(3))
    np.testing.assert_allclose(jacobian, np.eye(3), rtol=1e-6)


def make_deep(scale=1.5, **settings):
    """(both directions' states of a prompt, parameters) of a cell with large weights."""
    module = deep_cell.DeepCell(WIDTH, (6, 5), **settings)
    params = random_params(module, np.stack([prompt(), prompt()]), scale=scale)
    return module, params


def test_radius_bounds_every_state():
    z = np.stack([prompt(1), prompt(2)])
    free, params = make_deep()
    bound, _ = make_deep(radius=2.0)
    assert np.max(np.linalg.norm(run(free, params, z), axis=-1)) > 20
    norms = np.linalg.norm(run(bound, params, z), axis=-1)
    assert np.max(norms) <= 2.0 * (1 + 1e-6)
    assert np.max(norms) >= 2.0 * (1 - 1e-6)
    wide, _ = make_deep(radius=1e9)
    assert np.array_equal(run(wide, params, z), run(free, params, z))


def steepest(module, params):
    """Largest ‖Δf‖/‖Δh‖ of h_2 = h_1 + f(h_1, z_2), over prompts that differ in z_1 alone; per direction."""
    z = np.random.default_rng(5).normal(size=(40, 2, 2, INPUT)).astype(np.float32)
    z[:, :, 1] = z[:1, :, 1]
    states = quick_jit(jax.vmap(lambda each: module.apply(params, each)))(z)
    states = np.asarray(states, np.float64)
    first, change = states[:, :, 0], states[:, :, 1] - states[:, :, 0]
    gaps = [np.linalg.norm(part[1:] - part[:-1], axis=-1) for part in (change, first)]
    return np.max(gaps[0] / gaps[1], axis=0)


@pytest.mark.parametrize('alpha', [0.0, 0.05, 0.5])
def test_lipschitz_bounds_the_effect_of_the_state(alpha):
    free, params = make_deep()
    assert np.all(steepest(free, params) > 1)
    bound, _ = make_deep(lipschitz=alpha)
    effect = steepest(bound, params)
    assert np.all(effect <= alpha + 1e-5)
    assert np.all(effect >= 0.05 * alpha)


def test_lipschitz_shrinks_the_product_of_norms_to_alpha_and_no_further():
    for scale, expected in (1.5, 0.3), (0.1, None):
        module, params = make_deep(scale, lipschitz=0.3)
        p = params['params']
        kernels = [p['kernel_1'], p['kernel_2']]
        shrunk = np.asarray(module._bounded(p['hidden_kernel'], kernels), np.float64)
        for k in range(2):
            norms = [np.linalg.svd(kernel[k])[1][0] for kernel in (shrunk, *kernels)]
            if expected:
                assert np.prod(norms) == pytest.approx(expected, rel=1e-4)
            else:
                assert np.prod(norms) < 0.3
                assert np.array_equal(shrunk[k], p['hidden_kernel'][k].astype(np.float64))


def test_alpha_zero_cuts_the_state():
    """Without the hidden state the last state is a sum over tokens, in any order."""
    module, params = make_deep(lipschitz=0.0)
    z = np.stack([prompt(), prompt()[::-1]])
    states = np.asarray(run(module, params, z))
    swapped = np.asarray(run(module, params, z[:, ::-1]))
    np.testing.assert_allclose(states[:, -1], swapped[:, -1], rtol=1e-4, atol=1e-3)
    free, _ = make_deep()
    assert not np.allclose(*(run(free, params, each)[:, -1] for each in (z, z[:, ::-1])), rtol=0.1)


@pytest.mark.parametrize('scale', [0.0, 1.0])
def test_gradient_of_a_bounded_cell_is_finite(scale):
    """Also where all weights are zero, as in the constructions that a learner may start from."""
    module, params = make_deep(scale, radius=1.0, lipschitz=0.3)
    z = np.stack([prompt(), prompt()[::-1]])
    gradient = quick_jit(jax.grad(lambda params: jnp.sum(module.apply(params, z) ** 2)))(params)
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(gradient))
    assert any(np.any(leaf) for leaf in jax.tree.leaves(gradient)) == (scale > 0)
