"""Attention against plain numpy and Flax's own module on transferred weights."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn

from qstr_jax.models import attention
from tests.helpers import quick_jit, random_params

SEQ_LEN, WIDTH = 5, 4


def inputs(seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(SEQ_LEN, WIDTH)).astype(np.float32)


def softmax(scores):
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


@pytest.mark.parametrize('num_heads', [1, 3])
def test_merged_attention_equals_its_formula(num_heads):
    z = inputs()
    module = attention.MergedAttention(num_heads)
    params = random_params(module, z, z)
    qk = np.asarray(params['params']['qk_HxExE'], np.float64)
    assert qk.shape == (num_heads, WIDTH, WIDTH)
    expected = [np.concatenate([softmax(z_i @ qk[h] @ z.T) @ z for h in range(num_heads)]) for z_i in z]
    np.testing.assert_allclose(module.apply(params, z, z), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(module.apply(params, z[1:3], z), expected[1:3], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize('num_heads', [1, 3])
def test_separate_attention_equals_flax(num_heads):
    z = inputs()
    ours = attention.SeparateAttention(num_heads)
    params = random_params(ours, z, z, scale=0.7)
    in_kernel, in_bias = params['params']['in_kernel'], params['params']['in_bias']
    out = params['params']['out']
    theirs = nn.MultiHeadDotProductAttention(num_heads, qkv_features=num_heads * WIDTH, out_features=WIDTH)
    transferred = {
        name: {'kernel': in_kernel[:, i], 'bias': in_bias[i]} for i, name in enumerate(('query', 'key', 'value'))
    }
    transferred['out'] = {'kernel': out['kernel'].reshape(num_heads, WIDTH, WIDTH), 'bias': out['bias']}
    for query in z, z[2:4]:
        expected = quick_jit(theirs.apply)({'params': transferred}, query, z)
        np.testing.assert_allclose(quick_jit(ours.apply)(params, query, z), expected, rtol=1e-4, atol=1e-5)


def test_forms_agree_on_the_same_scores():
    """W_QK = W_Q^T W_K/√D_e without biases: the attention weights are the same."""
    z = inputs()
    separate, merged = attention.SeparateAttention(1), attention.MergedAttention(1)
    params = random_params(separate, z, z)['params']
    params['in_bias'] = np.zeros_like(params['in_bias'])
    query, key = params['in_kernel'][:, 0, 0], params['in_kernel'][:, 1, 0]
    qk = {'qk_HxExE': (query @ key.T / np.sqrt(WIDTH))[None]}
    weights = [
        module.apply({'params': p}, z, z, mutable='intermediates')[1]['intermediates']['weights_HxMxN'][0]
        for module, p in ((separate, params), (merged, qk))
    ]
    assert weights[0].shape == (1, SEQ_LEN, SEQ_LEN)
    np.testing.assert_allclose(weights[0].sum(-1), 1.0, rtol=1e-5)
    np.testing.assert_allclose(weights[0], weights[1], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize('form', [attention.MergedAttention, attention.SeparateAttention])
def test_few_queries_have_the_gradients_of_all(form):
    """Another order of products, the same function."""
    z = inputs()
    module = form(2)
    params = random_params(module, z, z, scale=0.7)

    @functools.partial(quick_jit, static_argnums=2)
    @jax.grad
    def gradient(p, query, rows):
        return jnp.sum(jnp.sin(module.apply(p, query, z)[jnp.array(rows)]))

    few = gradient(params, z[2:4], (0, 1))
    among_all = gradient(params, z, (2, 3))
    chex.assert_trees_all_close(few, among_all, rtol=1e-4, atol=1e-5)


def test_few_queries_do_not_project_every_token():
    """Work per token is linear in D_e, as it is not for all queries."""

    def flops(width, num_queries):
        z = jax.ShapeDtypeStruct((512, width), np.float32)
        query = jax.ShapeDtypeStruct((num_queries, width), np.float32)
        module = attention.SeparateAttention(1)
        params = jax.eval_shape(module.init, jax.random.key(0), query, z)
        return jax.jit(module.apply).lower(params, query, z).cost_analysis()['flops']

    token_share = [flops(width, 1) / (512 * width) for width in (8, 32)]
    assert token_share[1] < 1.5 * token_share[0]
    all_share = [flops(width, 512) / (512 * width) for width in (8, 512)]
    assert all_share[1] > 2 * all_share[0]


@pytest.mark.parametrize('form', [attention.MergedAttention, attention.SeparateAttention])
def test_blocks_of_queries_change_nothing(form, monkeypatch):
    z = inputs()
    module = form(2)
    params = random_params(module, z, z)

    def outputs_and_gradients(p):
        return quick_jit(jax.value_and_grad(lambda p: jnp.sum(jnp.sin(module.apply(p, z, z)))))(p)

    whole = outputs_and_gradients(params)
    monkeypatch.setattr(attention, 'QUERY_BLOCK', 2)
    blocks = []
    kept = attention.in_blocks
    monkeypatch.setattr(attention, 'in_blocks', lambda attend, query: blocks.append(query) or kept(attend, query))
    chex.assert_trees_all_close(outputs_and_gradients(params), whole, rtol=1e-5, atol=1e-6)
    assert blocks[0].shape[1] > attention.QUERY_BLOCK


def test_memory_of_long_prompts_grows_with_their_length():
    """Four times the tokens: about four times the memory of a gradient, not sixteen."""
    module = attention.SeparateAttention(1)

    def scratch(seq_len):
        z = jnp.ones((seq_len, WIDTH))
        params = jax.eval_shape(module.init, jax.random.key(0), z, z)
        loss = jax.jit(jax.grad(lambda p: jnp.sum(module.apply({'params': p['params']}, z, z))))
        return loss.lower(params).compile().memory_analysis().temp_size_in_bytes

    assert scratch(4096) < 6 * scratch(1024)
    assert scratch(4096) < 4 * 4096**2  # the weights alone
