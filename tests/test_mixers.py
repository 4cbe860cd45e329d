"""Mixers: their two forms agree, they see what they should, and their accounts are right."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from qstr_jax import models
from qstr_jax.models import mixers
from qstr_jax.models.mixers import mixer

NUM_TOKENS, WIDTH, SPLIT = 7, 8, 4
SIZES = {'heads': 2, 'head_dim': 4, 'state_dim': 8, 'hidden_dim': 8, 'filter_dim': 4, 'rank': 4}
OURS = ('attention', 'deep_cell', 'deltanet', 'gated_deltanet', 'gla', 'gru', 'kda', 'linear_attention', 'long_conv',
        'mamba2', 'mamba3', 'min_gru', 'mlp_mixer', 'mlstm', 'retnet', 'rg_lru', 'rwkv7', 's5')  # fmt: skip
# Without a state that is handed on: they see all tokens by themselves.
SEE_ALL = ('attention', 'mlp_mixer')
STATES = tuple(name for name in OURS if name not in SEE_ALL)


def small(name, **settings):
    kind = mixers.spec(name)[0]
    sizes = {key: value for key, value in SIZES.items() if key in mixer.schema(kind)}
    return kind(**dict(mixers.spec(name, **sizes)[1]), **settings)


@functools.cache
def made(name):
    """A small mixer, causal, with two lanes of parameters, and two prompts."""
    module = small(name, **({'causal': True} if name in SEE_ALL else {}))
    x_2xNxW = jax.random.normal(jax.random.key(1), (2, NUM_TOKENS, WIDTH))
    params = jax.jit(jax.vmap(lambda key: {'params': module.init(key, x_2xNxW[0])['params']}))(
        jax.random.split(jax.random.key(0))
    )
    # Noise on all parameters, so that those which start at zero count as well.
    leaves, tree = jax.tree.flatten(params)
    noise = [leaf + 0.1 * jax.random.normal(jax.random.key(i), leaf.shape) for i, leaf in enumerate(leaves)]
    return module, jax.tree.unflatten(tree, noise), x_2xNxW


def first_lane(name):
    module, params, x_2xNxW = made(name)
    return module, jax.tree.map(lambda leaf: leaf[0], params), x_2xNxW[0]


@functools.cache
def outputs(name):
    module, params, x_NxW = first_lane(name)
    return jax.jit(module.apply)(params, x_NxW)


def test_all_mixers_are_tested():
    assert set(OURS) <= set(mixers.names())
    assert set(OURS) <= set(models.names())


@pytest.mark.parametrize('name', [name for name in OURS if 'form' in mixer.schema(mixers.spec(name)[0])])
def test_the_recurrent_form_agrees(name):
    module, params, x_NxW = first_lane(name)
    np.testing.assert_allclose(module.clone(form='recurrent').apply(params, x_NxW), outputs(name), atol=1e-5)


@pytest.mark.parametrize('name', OURS)
def test_causal_ones_see_no_later_tokens(name):
    module, params, x_NxW = first_lane(name)
    other = jax.jit(module.apply)(params, x_NxW.at[SPLIT].add(1.0))
    np.testing.assert_allclose(other[:SPLIT], outputs(name)[:SPLIT], atol=1e-5)
    assert np.all(np.max(np.abs(other[SPLIT:] - outputs(name)[SPLIT:]), axis=-1) > 1e-4)


@pytest.mark.parametrize('name', SEE_ALL)
def test_others_see_all_tokens(name):
    module, params, x_NxW = first_lane(name)
    module = module.clone(causal=False)
    change = module.apply(params, x_NxW.at[SPLIT].add(1.0)) - module.apply(params, x_NxW)
    assert np.all(np.max(np.abs(change), axis=-1) > 1e-4)


@pytest.mark.parametrize('name', OURS)
def test_lanes_are_single_runs(name):
    module, params, x_2xNxW = made(name)
    lanes = jax.jit(jax.vmap(module.apply))(params, x_2xNxW)
    np.testing.assert_allclose(lanes[0], outputs(name), atol=1e-5)


@pytest.mark.parametrize('name', STATES)
def test_the_state_is_all_that_is_carried_and_each_number_matters(name):
    module, params, x_NxW = first_lane(name)
    if name == 'long_conv':  # whose filter depends on the length, and whose state is in the recurrent form alone
        module, parts = module.clone(form='recurrent'), (x_NxW, x_NxW)
    else:
        parts = (x_NxW[:SPLIT], x_NxW[SPLIT:])
    weight = jax.random.normal(jax.random.key(2), parts[1].shape)

    def after(floats, rest):
        y = module.apply({**params, 'carry': {**rest, **floats}}, parts[1])
        return jnp.sum(weight * y), y

    _, kept = module.apply(params, parts[0], mutable=['carry'])
    whole = {'cell': kept['carry']['cell']} if name == 'deep_cell' else kept['carry']
    counted = {key: part for key, part in whole.items() if key != 'position'}
    rest = {key: part for key, part in whole.items() if key == 'position'}
    gradient, y = jax.jit(jax.grad(after, has_aux=True))(counted, rest)
    if name != 'long_conv':
        np.testing.assert_allclose(y, outputs(name)[SPLIT:], atol=1e-5)
    parts_of = [(leaf.real, leaf.imag) if jnp.iscomplexobj(leaf) else (leaf,) for leaf in jax.tree.leaves(gradient)]
    matter = sum(int(jnp.sum(part != 0)) for parts in parts_of for part in parts)
    assert matter == module.state_size(WIDTH, NUM_TOKENS)


@pytest.mark.parametrize('window', [0, 2])
def test_attention_keeps_keys_and_values_of_the_tokens_that_it_sees(window):
    module, params, x_NxW = first_lane('attention')
    module = module.clone(window=window)
    change = jax.jacrev(lambda x_NxW: jnp.sum(module.apply(params, x_NxW)[-1]))(x_NxW)
    earlier_and_own = int(jnp.sum(jnp.any(change != 0, axis=-1)))
    assert earlier_and_own == (window + 1 if window else NUM_TOKENS)
    assert module.state_size(WIDTH, NUM_TOKENS) == 2 * 2 * 4 * (window or NUM_TOKENS)


def test_softmax_one_may_attend_to_nothing():
    from qstr_jax.models.mixers import attention

    weights = attention.softmax_one(jnp.array([-50.0, -60.0]))
    assert float(jnp.sum(weights)) < 1e-12
    np.testing.assert_allclose(attention.softmax_one(jnp.array([100.0, 0.0])), [1.0, 0.0], atol=1e-6)


def test_rope_knows_differences_of_positions():
    from qstr_jax.models.mixers import attention

    q, k = jax.random.normal(jax.random.key(0), (2, 1, 1, 8))
    turned = [[attention.rotated(part, first)[0, 0] for part in (q, k)] for first in (0, 5)]
    scores = [float(q @ k) for q, k in turned]
    np.testing.assert_allclose(*scores, rtol=1e-5)
    other = attention.rotated(k, 3)[0, 0]
    assert abs(float(turned[0][0] @ other) - scores[0]) > 1e-3


@pytest.mark.parametrize(
    ('text', 'message'),
    [
        ('delta', "mixers='delta': unknown"),
        ('deltanet:heads', 'write settings as deltanet:NAME=VALUE'),
        ('deltanet:heads=two', 'deltanet.heads'),
        ('deltanet:causal=True', 'deltanet.causal: no such setting'),
    ],
)
def test_a_mistake_in_a_mixer_is_one_line(text, message):
    with pytest.raises(ValueError, match=message):
        mixers.parsed(text)
