"""The backbone: patterns, directions, sizes; one block of attention is the paper's Transformer."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn

from qstr_jax import models, tasks
from qstr_jax.learners import held_out
from qstr_jax.models import backbone, mixers
from tests import helpers

TASK = tasks.build('qstr', seq_len=5, token_dim=3)
TINY = {'width': 6, 'mlp_width': 6}


def build(name='backbone', **settings):
    return models.build(name, TASK, **settings)


def made(module, key=0):
    z_NxE = jax.random.normal(jax.random.key(1), (TASK.seq_len, TASK.embedding_dim))
    return jax.jit(module.init)(jax.random.key(key), z_NxE), z_NxE


def test_a_pattern_is_repeated_to_the_depth():
    module = build(mixers=('gru:state_dim=4', 'attention'), depth=5, **TINY)
    assert [kind.__name__ for kind, _ in module.blocks] == ['GRU', 'Attention', 'GRU', 'Attention', 'GRU']
    assert dict(module.blocks[2][1])['state_dim'] == 4
    attention = 2 * 2 * 16 * TASK.seq_len
    assert module.state_size(TASK.seq_len) == 3 * 2 * 4 + 2 * attention
    params = jax.eval_shape(module.init, jax.random.key(0), jnp.ones((TASK.seq_len, TASK.embedding_dim)))
    assert {'mixer_0', 'mixer_0_back', 'mixer_1', 'mixer_4'} < set(params['params'])
    assert 'mixer_1_back' not in params['params']


class Silent(nn.Module):
    """A mixer that does not say what it carries."""

    @nn.compact
    def __call__(self, x_NxW):
        return jnp.cumsum(x_NxW, axis=0)


class Named(Silent):
    """One with a field of that name."""

    state_size: int = 16


@pytest.mark.parametrize('kind', [Silent, Named])
def test_a_mixer_need_not_say_its_state_size(kind):
    module = backbone.Backbone(blocks=((mixers.gru.GRU, ()), (kind, ())), width=6)
    assert np.isnan(module.state_size(TASK.seq_len))


def test_a_mixer_is_an_architecture_of_its_name():
    alone = build('gru', state_dim=4, depth=1, **TINY)
    assert alone == build(mixers=('gru:state_dim=4',), depth=1, **TINY)


@pytest.mark.parametrize('mixer', ['gru:state_dim=4', 'attention'])
def test_directions(mixer):
    for bidirectional in (False, True):
        module = build(mixers=(mixer,), depth=1, bidirectional=bidirectional, short_conv=3, **TINY)
        params, z_NxE = made(module)
        apply = jax.jit(module.apply)
        change = apply(params, z_NxE.at[3].add(1.0)) - apply(params, z_NxE)
        assert bool(jnp.any(change[:3] != 0)) == bidirectional
        assert jnp.all(change[3:] != 0)


@pytest.mark.parametrize('mixer', mixers.names())
def test_padding_is_not_seen(mixer):
    """Of n = 3 tokens, in both directions and behind a convolution; the answer is that to the n tokens alone."""
    module = build(mixers=(mixer,), depth=1, short_conv=2, **TINY)
    z_NxE = np.random.default_rng(0).normal(size=(TASK.seq_len, TASK.embedding_dim)).astype(np.float32)
    params = helpers.random_params(module, z_NxE, scale=0.6)
    # Whose weights belong to positions, and whose filter is stretched over the N of the prompt.
    is_for_n = mixer in ('mlp_mixer', 'long_conv')

    @helpers.quick_jit
    def answers(z_NxE):
        whole, padded = (models.predict(module, params, z_NxE, None, length)[:3] for length in (5, 3))
        return whole, padded, padded if is_for_n else models.predict(module, params, z_NxE[:3])

    whole, padded, alone = answers(z_NxE)
    other, still, _ = answers(np.concatenate([z_NxE[:3], -z_NxE[3:]]))
    np.testing.assert_array_equal(padded, still)
    assert np.max(np.abs(whole - other)) > 1e-5
    np.testing.assert_allclose(padded, alone, rtol=1e-4, atol=1e-5)


def test_several_outputs():
    module = build(mixers=('min_gru',), depth=1, **TINY).clone(num_outputs=3)
    params, z_NxE = made(module)
    assert module.apply(params, z_NxE).shape == (TASK.seq_len, 3)


def test_one_block_of_attention_is_the_papers_transformer():
    width = TASK.embedding_dim
    paper = models.build('transformer', TASK, num_heads=2, mlp_width=width)
    theirs, z_NxE = made(paper)
    ours = build(
        mixers=('attention:heads=2:head_dim=0',),
        depth=1,
        norm='none',
        residual=False,
        embedding=False,
        mlp='plain',
        mlp_width=width,
    )
    attention, rest = theirs['params']['attention'], theirs['params']
    mixer = {
        name: {'kernel': attention['in_kernel'][:, i], 'bias': attention['in_bias'][i]}
        for i, name in enumerate(('query', 'key', 'value'))
    }
    mixer['out'] = {'kernel': attention['out']['kernel'].reshape(2, width, width), 'bias': attention['out']['bias']}
    params = {
        'mixer_0': mixer,
        'mlp_in_0': rest['hidden'],
        'mlp_out_0': {'kernel': jnp.eye(width), 'bias': jnp.zeros(width)},
        'out': rest['out'],
    }
    np.testing.assert_allclose(ours.apply({'params': params}, z_NxE), paper.apply(theirs, z_NxE), atol=1e-5)


@pytest.mark.parametrize(('name', 'num_outputs'), [('attention', 1), ('s5', 1), ('mlp_mixer', 1), ('min_gru', 3)])
def test_the_width_follows_from_the_number_of_parameters(name, num_outputs):
    module = build(name, num_parameters=20_000).clone(num_outputs=num_outputs)
    count = backbone.num_parameters(module, TASK.seq_len, TASK.embedding_dim)
    assert abs(count / 20_000 - 1) < 0.05
    assert count == num_leaves(module)


@pytest.mark.parametrize('settings', [{'mlp_width': 100}, {'mlp': 'none'}])
def test_so_does_it_where_the_number_is_linear_in_the_width(settings):
    module = build('mlstm', num_parameters=20_000, **settings)
    assert abs(backbone.num_parameters(module, TASK.seq_len, TASK.embedding_dim) / 20_000 - 1) < 0.05


@pytest.mark.parametrize(
    'settings',
    [
        {'mixers': ('attention', 'min_gru'), 'width': 8, 'short_conv': 4},
        {'mixers': ('mlp_mixer', 'min_gru'), 'width': 8, 'short_conv': 2, 'bidirectional': False, 'mlp': 'none'},
        {'mixers': ('min_gru',), 'embedding': False, 'norm': 'layer', 'mlp_width': 5},
    ],
)
def test_parameters_are_counted_with_convolutions_and_directions(settings):
    module = build(**settings)
    assert backbone.num_parameters(module, TASK.seq_len, TASK.embedding_dim) == num_leaves(module)


def num_leaves(module):
    return sum(leaf.size for leaf in jax.tree.leaves(held_out.abstract_params(module, TASK)))


@pytest.mark.parametrize('mixer', ['mamba2', 's5'])
def test_the_initializer_leaves_a_mixers_own(mixer):
    flax, pytorch = (
        made(build(mixers=(mixer,), depth=1, initializer=scheme, bidirectional=False, **TINY))[0]['params']
        for scheme in ('flax', 'pytorch')
    )
    jax.tree.map(np.testing.assert_array_equal, flax['mixer_0'], pytorch['mixer_0'])
    assert not np.allclose(flax['embedding']['kernel'], pytorch['embedding']['kernel'])


def test_mamba2_starts_with_slow_decays():
    params = made(build('mamba2', depth=1, **TINY))[0]['params']['mixer_0']
    step_H = jax.nn.softplus(params['step_bias'])
    assert jnp.all((step_H > 0.9e-3) & (step_H < 0.11))
    assert jnp.all((params['log_rate'] >= 0) & (params['log_rate'] <= jnp.log(16.0)))


@pytest.mark.parametrize(
    ('settings', 'message'),
    [
        ({'mixers': ('gru', 'gla', 'kda')}, 'depth=2: the pattern has 3 mixers'),
        ({'width': 8, 'num_parameters': 100}, 'give one of the two'),
        ({'mlp': 'none', 'mlp_width': 8}, "would be ignored, since mlp='none'"),
        ({'embedding': False, 'width': 8}, 'the width is D_e then'),
        ({'num_parameters': 3000}, 'num_parameters=3000: no width comes near; 7 and 8 have 2839 and 3313 parameters'),
        ({'short_conv': -1}, 'backbone.short_conv=-1'),
    ],
)
def test_mistakes(settings, message):
    with pytest.raises(ValueError, match=message):
        build(**settings)


def test_a_mixer_has_no_setting_of_the_backbone_or_of_flax():
    with pytest.raises(ValueError, match="no setting may be called 'width'"):

        @mixers.register('wide')
        class Wide(mixers.gru.GRU):
            width: int = 3

    with pytest.raises(ValueError, match="no setting may be called 'init', which is Flax's"):

        @mixers.register('wide')
        class Started(mixers.gru.GRU):
            init: str = 'small'

    assert 'wide' not in models.names()
