"""Mixers: their two forms agree, they see what they should, and their accounts are right."""

import functools
import typing

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from qstr_jax import models
from qstr_jax.models import mixers
from qstr_jax.models.mixers import attention, matrix_state, mixer

NUM_TOKENS, WIDTH, SPLIT = 7, 8, 4
SIZES = {'heads': 2, 'head_dim': 4, 'state_dim': 8, 'hidden_dim': 8, 'filter_dim': 4, 'rank': 4, 'frequencies': 3,
         'expansion': 3}  # fmt: skip
OURS = ('attention', 'deep_cell', 'deltanet', 'gated_deltanet', 'gla', 'gru', 'kda', 'linear_attention', 'long_conv',
        'mamba2', 'mamba3', 'min_gru', 'mlp_mixer', 'mlstm', 'retnet', 'rg_lru', 'rwkv7', 's5')  # fmt: skip
# They see all tokens by themselves, and have no state that is handed on.
SEE_ALL = ('attention', 'mlp_mixer')


def small(name, **settings):
    kind = mixers.spec(name)[0]
    sizes = {key: value for key, value in SIZES.items() if key in mixer.schema(kind)}
    return kind(**dict(mixers.spec(name, **sizes)[1]), **settings)


def drawn(module, key, x_NxW):
    """Parameters with noise, so that those which start at zero count as well."""
    leaves, tree = jax.tree.flatten({'params': module.init(key, x_NxW)['params']})
    noise = jax.random.normal(key, (sum(leaf.size for leaf in leaves),))
    parts = jnp.split(noise, np.cumsum([leaf.size for leaf in leaves])[:-1])
    leaves = [leaf + 0.1 * part.reshape(leaf.shape) for leaf, part in zip(leaves, parts, strict=True)]
    return jax.tree.unflatten(tree, leaves)


def after(module, params, kept, x_NxW):
    """The gradient of what is read later with respect to the carry, and the outputs themselves."""
    rest = {key: part for key, part in kept.items() if key == 'position'}  # which is no number of the state
    weight_NxW = jax.random.normal(jax.random.key(2), x_NxW.shape)

    def total(state):
        y_NxW = module.apply({**params, 'carry': {**state, **rest}}, x_NxW)
        return jnp.sum(weight_NxW * y_NxW), y_NxW

    return jax.grad(total, has_aux=True)({key: part for key, part in kept.items() if key != 'position'})


@functools.cache
def outputs(name):
    """All that is asked about a small causal mixer, in one program."""
    module = small(name, **({'causal': True} if name in SEE_ALL else {}))

    def compute():
        x_2xNxW = jax.random.normal(jax.random.key(1), (2, NUM_TOKENS, WIDTH))
        params_of = jax.vmap(lambda key: drawn(module, key, x_2xNxW[0]))(jax.random.split(jax.random.key(0)))
        params, x_NxW = jax.tree.map(lambda leaf: leaf[0], params_of), x_2xNxW[0]
        made = {
            'own': module.apply(params, x_NxW),
            'changed': module.apply(params, x_NxW.at[SPLIT].add(1.0)),
            'lanes': jax.vmap(module.apply)(params_of, x_2xNxW),
        }
        if has_forms(name):
            made['recurrent'] = module.clone(form='recurrent').apply(params, x_NxW)
        if name in SEE_ALL:
            made['all'] = module.clone(causal=False).apply(params, x_NxW)
            made['all_changed'] = module.clone(causal=False).apply(params, x_NxW.at[SPLIT].add(1.0))
        elif name == 'long_conv':  # whose filter depends on the length, and whose state is in the recurrent form alone
            recurrent = module.clone(form='recurrent')
            _, kept = recurrent.apply(params, x_NxW, mutable=['carry'])
            made['gradient'], _ = after(recurrent, params, kept['carry'], x_NxW)
        else:
            _, kept = module.apply(params, x_NxW[:SPLIT], mutable=['carry'])
            made['gradient'], made['rest'] = after(module, params, kept['carry'], x_NxW[SPLIT:])
        return made

    return jax.tree.map(np.asarray, jax.jit(compute)())


def has_forms(name):
    return 'form' in mixer.schema(mixers.spec(name)[0])


def test_all_mixers_are_tested():
    assert set(OURS) == {name for name in mixers.names() if mixers.spec(name)[0].__module__.startswith('qstr_jax')}
    assert set(OURS) <= set(models.names())


@pytest.mark.parametrize('name', [name for name in OURS if has_forms(name)])
def test_the_recurrent_form_agrees(name):
    made = outputs(name)
    np.testing.assert_allclose(made['recurrent'], made['own'], atol=1e-5)


@pytest.mark.parametrize('name', OURS)
def test_causal_ones_see_no_later_tokens(name):
    made = outputs(name)
    np.testing.assert_allclose(made['changed'][:SPLIT], made['own'][:SPLIT], atol=1e-5)
    assert np.all(np.max(np.abs(made['changed'] - made['own'])[SPLIT:], axis=-1) > 1e-4)


@pytest.mark.parametrize('name', SEE_ALL)
def test_others_see_all_tokens(name):
    made = outputs(name)
    assert np.all(np.max(np.abs(made['all_changed'] - made['all']), axis=-1) > 1e-4)


@pytest.mark.parametrize('name', OURS)
def test_lanes_are_single_runs(name):
    made = outputs(name)
    np.testing.assert_allclose(made['lanes'][0], made['own'], atol=1e-5)
    assert np.max(np.abs(made['lanes'][1] - made['own'])) > 1e-2


@pytest.mark.parametrize('name', OURS)
def test_gradients_are_finite_where_gates_are_shut(name):
    module, x_NxW = small(name), jax.random.normal(jax.random.key(1), (NUM_TOKENS, WIDTH))

    def enlarged(path, leaf):
        return jnp.full_like(leaf, -200.0) if 'bias' in jax.tree_util.keystr(path) else 20 * leaf

    @jax.jit
    def gradients():
        large = jax.tree_util.tree_map_with_path(enlarged, drawn(module, jax.random.key(0), x_NxW))
        return jax.grad(lambda params, x: jnp.sum(jnp.sin(module.apply(params, x))), argnums=(0, 1))(large, x_NxW)

    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradients()))


@pytest.mark.parametrize('name', OURS)
def test_no_part_waits_for_xlas_threads(name):
    # Two of LAPACK's batched solvers at once, one in each direction, wait for each other's threads for ever.
    module = small(name)
    x_LxNxW = jnp.ones((2, NUM_TOKENS, WIDTH))
    params_L = jax.eval_shape(lambda: jax.vmap(lambda x: module.init(jax.random.key(0), x))(x_LxNxW))

    def total(params, x_NxW):
        return jnp.sum(module.apply(params, x_NxW))

    assert 'lapack' not in jax.jit(jax.vmap(jax.grad(total))).lower(params_L, x_LxNxW).as_text()


@pytest.mark.parametrize('name', sorted(set(OURS) - set(SEE_ALL) - {'long_conv'}))
def test_a_prompt_can_be_read_in_pieces(name):
    made = outputs(name)
    np.testing.assert_allclose(made['rest'], made['own'][SPLIT:], atol=1e-5)


@pytest.mark.parametrize('name', sorted(set(OURS) - set(SEE_ALL)))
def test_the_state_size_counts_the_numbers_that_matter(name):
    leaves = jax.tree.leaves(outputs(name)['gradient'])
    numbers = [part for leaf in leaves for part in ((leaf.real, leaf.imag) if np.iscomplexobj(leaf) else (leaf,))]
    assert sum(np.count_nonzero(part) for part in numbers) == small(name).state_size(WIDTH, NUM_TOKENS)


@pytest.mark.parametrize('window', [0, 2])
def test_attention_keeps_keys_and_values_of_the_tokens_that_it_sees(window):
    module = small('attention', causal=True, window=window)

    def last(x_NxW):
        return jnp.sum(module.apply(drawn(module, jax.random.key(0), x_NxW), x_NxW)[-1])

    change = jax.jit(jax.grad(last))(jax.random.normal(jax.random.key(1), (NUM_TOKENS, WIDTH)))
    earlier_and_own = int(jnp.sum(jnp.any(change != 0, axis=-1)))
    assert earlier_and_own == (window + 1 if window else NUM_TOKENS)
    assert module.state_size(WIDTH, NUM_TOKENS) == 2 * 2 * 4 * (window or NUM_TOKENS)


def test_softmax_1_may_attend_to_nothing():
    weights = attention.softmax_1(jnp.array([[[-50.0, -60.0]]]))
    assert float(jnp.sum(weights)) < 1e-12
    np.testing.assert_allclose(attention.softmax_1(jnp.array([[[100.0, 0.0]]])), [[[1.0, 0.0]]], atol=1e-6)


def test_rope_knows_differences_of_positions():
    q, k = jax.random.normal(jax.random.key(0), (2, 1, 1, 8))
    turned = [[attention.rotated(part, first)[0, 0] for part in (q, k)] for first in (0, 5)]
    scores = [float(q @ k) for q, k in turned]
    np.testing.assert_allclose(*scores, rtol=1e-5)
    other = attention.rotated(k, 3)[0, 0]
    assert abs(float(turned[0][0] @ other) - scores[0]) > 1e-3


@pytest.mark.parametrize('rope', [False, True])
def test_rope_alone_tells_attention_the_order_of_tokens(rope):
    module = small('attention', causal=True, rope=rope)
    x_NxW = jax.random.normal(jax.random.key(1), (NUM_TOKENS, WIDTH))
    params = module.init(jax.random.key(0), x_NxW)
    own_W, turned_W = (module.apply(params, one)[-1] for one in (x_NxW, x_NxW[jnp.array([5, 4, 3, 2, 1, 0, 6])]))
    assert bool(jnp.allclose(own_W, turned_W, atol=1e-5)) is not rope


@pytest.mark.parametrize(
    ('text', 'message'),
    [
        ('delta', "mixers='delta': unknown"),
        ('deltanet:heads', 'write settings as deltanet:NAME=VALUE'),
        ('deltanet:heads=two', 'deltanet.heads'),
        ('deltanet:heads={[1]:2}', 'deltanet.heads'),
        ('deltanet:causal=True', 'deltanet.causal: no such setting'),
        ('gla:heads=0', 'gla.heads=0: must be an integer, at least 1'),
        ('attention:window=-1', 'attention.window=-1: must be an integer, at least 0'),
    ],
)
def test_a_mistake_in_a_mixer_is_one_line(text, message):
    with pytest.raises(ValueError, match=message):
        mixers.parsed(text)


@pytest.mark.parametrize('name', ['retnet', 'gla', 'deltanet', 'gated_deltanet', 'kda', 'mamba2', 'mlstm', 'rwkv7'])
def test_outputs_of_a_memory_are_normalised_and_gated_where_asked(name):
    x_NxW = jax.random.normal(jax.random.key(1), (NUM_TOKENS, WIDTH))
    params = drawn(small(name, output='gated'), jax.random.key(0), x_NxW)['params']
    params['out']['kernel'] = jnp.eye(WIDTH).reshape(params['out']['kernel'].shape)  # so outputs are the heads'
    if name == 'rwkv7':  # added after the norm
        params['bonus'] = jnp.zeros_like(params['bonus'])

    @jax.jit
    def heads():
        found = {}
        for output in typing.get_args(matrix_state.Output):
            module = small(name, output=output)
            used = {key: params[key] for key in jax.eval_shape(module.init, jax.random.key(0), x_NxW)['params']}
            y_NxW = module.apply({'params': used}, x_NxW)
            found[output] = y_NxW.reshape(NUM_TOKENS, SIZES['heads'], SIZES['head_dim'])
        return found

    found = heads()
    gated, normed = found['plain'] * gate(name, params, x_NxW), norm(name, params, found['plain'])
    both = norm(name, params, gated) if name == 'mamba2' else normed * gate(name, params, x_NxW)
    for output, expected in {'unnormed': gated, 'normed': normed, 'gated': both}.items():
        np.testing.assert_allclose(found[output], expected, rtol=1e-5, atol=1e-5, err_msg=output)


def gate(name, params, x_NxW):
    """What the outputs of heads are multiplied by."""
    if name == 'rwkv7':
        mixed_NxW = x_NxW + (jnp.pad(x_NxW, ((1, 0), (0, 0)))[:-1] - x_NxW) * params['token_shift'][5][None]
        small_NxR = jax.nn.sigmoid(mixed_NxW @ params['gate_in']['kernel'])
        return jnp.einsum('nr,rhv->nhv', small_NxR, params['gate_out']['kernel'])
    if name == 'kda':
        kernels = params['gate_in']['kernel'], params['gate_out']['kernel']
        return jax.nn.sigmoid(jnp.einsum('nw,wr,rhv->nhv', x_NxW, *kernels))
    squash, of = (jax.nn.sigmoid, 'output_gate') if name == 'mlstm' else (jax.nn.silu, 'gate')
    return squash(jnp.einsum('nw,whv->nhv', x_NxW, params[of]['kernel']))


def norm(name, params, o_NxHxV):
    """Outputs of heads, normalised."""
    own = params['gated_norm' if name == 'mamba2' else 'head_norm']
    axes = (-2, -1) if name == 'mamba2' else -1
    eps = 64e-5 if name == 'rwkv7' else 1e-6
    if name in ('mlstm', 'rwkv7'):
        o_NxHxV = o_NxHxV - jnp.mean(o_NxHxV, axis=axes, keepdims=True)
    o_NxHxV = o_NxHxV * jax.lax.rsqrt(jnp.mean(o_NxHxV**2, axis=axes, keepdims=True) + eps)
    scale, bias = (jnp.atleast_2d(part)[None] for part in (own['scale'], own.get('bias', 0 * own['scale'])))
    return o_NxHxV * scale + bias


@pytest.mark.parametrize('causal', [False, True])
def test_padding_outside_of_a_window_leaves_gradients_finite(causal):
    module = small('attention', causal=causal, window=2)
    x_NxW = jax.random.normal(jax.random.key(0), (NUM_TOKENS, WIDTH))
    params = module.init(jax.random.key(1), x_NxW)
    grads = jax.grad(lambda params: jnp.sum(module.apply(params, x_NxW, length=2)[:2] ** 2))(params)
    chex.assert_tree_all_finite(grads)
