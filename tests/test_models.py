"""The models' common ground: registry, settings and their errors, initial weights, one position."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn
from flax import nnx

from qstr_jax import models, tasks
from tests.helpers import quick_jit, random_params

TASK = tasks.build('qstr', seq_len=5, sparsity=2, token_dim=3, encoding_dim=4)


def prompt():
    return np.random.default_rng(0).normal(size=(5, TASK.embedding_dim)).astype(np.float32)


def build(name, **settings):
    return models.build(name, TASK, **settings)


# Registry and settings.


def test_sizes_as_published():
    transformer, rnn, ffn = (build(name) for name in ('transformer', 'rnn', 'ffn'))
    assert (transformer.num_heads, transformer.mlp_width) == (2, 100)
    assert (rnn.width, rnn.cell, rnn.states, rnn.readout) == (1000, 'gru', 'inclusive', 'linear')
    assert ffn.widths == (5 * 3 * 2, 1000)


def test_settings_reach_the_module():
    transformer = build('transformer', num_heads=3, mlp_width=7, attention='merged', initializer='flax')
    assert transformer == models.Transformer(3, 7, 'merged', initializer='flax')
    rnn = build(
        'rnn', width=6, cell='deep', states='exclusive', readout='mlp', readout_widths=(4,), transition_widths=(5, 3),
        radius=2.0, lipschitz=0.1, initializer='flax',
    )  # fmt: skip
    assert rnn == models.Recurrent(6, 'deep', 'exclusive', 'mlp', (4,), (5, 3), 2.0, 0.1, 'flax')
    ffn = build('ffn', widths=(8, 9), form='theorem6', initializer='flax')
    assert ffn == models.Feedforward((8, 9), 3, 'theorem6', 'flax')


@pytest.mark.parametrize(
    ('name', 'settings', 'message'),
    [
        ('perceptron', {}, "models='perceptron': unknown, one of transformer, rnn, ffn"),
        ('transformer', {'num_head': 1}, 'transformer.num_head: no such setting'),
        ('transformer', {'num_heads': 0}, 'num_heads=0: must be an integer, at least 1'),
        ('transformer', {'num_heads': 1.5}, 'num_heads=1.5: must be an integer'),
        ('transformer', {'mlp_width': -1}, 'mlp_width=-1: must be an integer, at least 1'),
        ('transformer', {'attention': 'linear'}, "attention='linear': unknown, one of separate, merged"),
        ('transformer', {'initializer': 'zeros'}, "initializer='zeros': unknown, one of pytorch, flax"),
        ('rnn', {'width': 0}, 'rnn.width=0: must be an integer, at least 1'),
        ('rnn', {'cell': 'mamba'}, "rnn.cell='mamba': unknown, one of gru, lstm, relu, tanh, deep"),
        ('rnn', {'states': 'all'}, "rnn.states='all': unknown, one of inclusive, exclusive"),
        ('rnn', {'readout': 'cubic'}, "rnn.readout='cubic': unknown, one of linear, mlp"),
        ('rnn', {'readout_widths': (4, 0)}, 'rnn.readout_widths=0: must be an integer, at least 1'),
        ('rnn', {'readout_widths': (4,)}, "only rnn.readout='mlp' has them, not 'linear'"),
        ('rnn', {'transition_widths': (0,)}, 'rnn.transition_widths=0: must be an integer, at least 1'),
        ('rnn', {'transition_widths': (4,)}, "only rnn.cell='deep' has it, not 'gru'"),
        ('rnn', {'radius': 1.0}, "rnn.radius=1.0: only rnn.cell='deep' has it, not 'gru'"),
        ('rnn', {'lipschitz': 0.0}, "rnn.lipschitz=0.0: only rnn.cell='deep' has it, not 'gru'"),
        ('rnn', {'cell': 'deep', 'radius': 0.0}, 'rnn.radius=0.0: must be positive'),
        ('rnn', {'cell': 'deep', 'radius': float('nan')}, 'rnn.radius=nan: must be finite'),
        ('rnn', {'cell': 'deep', 'lipschitz': -0.1}, 'rnn.lipschitz=-0.1: must be at least 0'),
        ('rnn', {'initializer': 'zeros'}, "initializer='zeros': unknown, one of pytorch, flax"),
        ('ffn', {'widths': (5, 0)}, 'ffn.widths=0: must be an integer, at least 1'),
        ('ffn', {'widths': 'wide'}, 'ffn.widths='),
        ('ffn', {'form': 'conv'}, "ffn.form='conv': unknown, one of flat, theorem6"),
        ('ffn', {'initializer': 'zeros'}, "initializer='zeros': unknown, one of pytorch, flax"),
    ],
)
def test_bad_settings_are_named_in_one_line(name, settings, message):
    with pytest.raises(ValueError) as error:
        build(name, **settings)
    assert message in str(error.value)
    assert '\n' not in str(error.value)


class Mean(nn.Module):
    """A user's model: no `position`."""

    @nn.compact
    def __call__(self, z_NxE):
        return nn.Dense(1)(z_NxE)[:, 0] + z_NxE.mean()


@pytest.mark.usefixtures('own_entries')
def test_own_model():
    @models.register('average')
    def _average(task, scale: float = 1.0):
        return Mean()

    assert models.names()[-1] == 'average'
    module = models.build('average', TASK, scale=2)
    params = random_params(module, prompt())
    full = models.predict(module, params, prompt())
    at = jax.jit(lambda position: models.predict(module, params, prompt(), position))
    np.testing.assert_allclose([at(j) for j in range(5)], full, rtol=1e-5)
    with pytest.raises(ValueError, match=r"^model 'rnn' exists already, as a model: choose another name$"):
        models.register('rnn')(_average)
    with pytest.raises(ValueError, match='needs a default'):
        models.register('bare')(lambda task, width: Mean())
    for name in ('../evil', 'Upper', 'a-b', 'learner'):
        with pytest.raises(ValueError, match='name'):
            models.register(name)(_average)


class Shaped(nn.Module):
    """A user's mistake: predictions of another shape or type."""

    kind: str

    @nn.compact
    def __call__(self, z_NxE):
        made = nn.Dense(1)(z_NxE)
        return {'(N, 1)': made, '()': made.sum(), '(1,)': made[:1, 0], 'integers': made[:, 0].astype(int)}[self.kind]


@pytest.mark.parametrize('kind', ['(N, 1)', '()', '(1,)', 'integers'])
def test_predictions_of_another_shape_or_type_are_refused_before_training(kind):
    with pytest.raises(ValueError, match=r'must predict floats of shape \(5,\)') as error:
        models.check_output('shaped', Shaped(kind), TASK)
    assert '\n' not in str(error.value)


@pytest.mark.usefixtures('own_entries')
@pytest.mark.parametrize(
    ('builder', 'words'),
    [
        (lambda task: None, 'None'),
        (lambda task: 3, 'int'),
        (lambda task: Mean, 'the class Mean itself'),
        (lambda task: nnx.Linear(2, 3, rngs=nnx.Rngs(0)), 'Linear, a module of Flax NNX'),
    ],
)
def test_a_builder_of_something_else_is_refused(builder, words):
    models.register('nothing')(builder)
    with pytest.raises(
        ValueError, match=f"^models='nothing': its builder must return a flax.linen Module, not {words}$"
    ):
        models.build('nothing', TASK)


@pytest.mark.usefixtures('own_entries')
def test_a_list_of_layers_is_refused_in_one_line():
    models.register('listed')(lambda task: nn.Sequential([nn.Dense(8), nn.Dense(1)]))
    with pytest.raises(
        ValueError, match=r"^models='listed': the attribute layers .*; write a tuple, \(…\) in"
    ) as error:
        models.build('listed', TASK)
    assert '\n' not in str(error.value)


class Odd(nn.Module):
    """Needs more than parameters."""

    kind: str

    @nn.compact
    def __call__(self, z_NxE):
        layer = {
            'dropout': lambda: nn.Dropout(0.5, deterministic=False),
            'batch': lambda: nn.BatchNorm(use_running_average=False),
            'running': lambda: nn.BatchNorm(use_running_average=True),
            'quiet': lambda: nn.Dropout(0.5, deterministic=True),
        }[self.kind]()
        return nn.Dense(1)(layer(z_NxE))[:, 0]


@pytest.mark.parametrize(
    ('kind', 'line'),
    [
        ('dropout', r'asks for random numbers when it predicts \(test_models.py, line \d+\).*leave out Dropout'),
        ('batch', r'keeps a state beside its parameters \(test_models.py, line \d+\).*LayerNorm'),
        ('running', 'keeps a state beside its parameters'),
    ],
)
def test_a_module_with_state_or_randomness_is_refused_and_told_why(kind, line):
    with pytest.raises(ValueError, match=f"^models='odd': {line}") as error:
        models.check_output('odd', Odd(kind), TASK)
    assert '\n' not in str(error.value)
    models.check_output('odd', Odd('quiet'), TASK)


class Tattling(nn.Module):
    """Says whether it was asked for one position."""

    def __call__(self, z_NxE, position=None):
        return jnp.zeros(len(z_NxE)) if position is None else 1.0


def test_predict_asks_for_one_position_where_a_module_can():
    assert models.predict(Tattling(), {}, prompt(), 2) == 1.0
    assert models.predict(Tattling(), {}, prompt()).shape == (5,)


@pytest.mark.parametrize(
    ('name', 'settings'),
    [
        ('transformer', {'attention': 'merged'}),
        ('transformer', {'attention': 'separate'}),
        ('rnn', {'width': 4}),
        ('ffn', {'widths': (6, 5)}),
        ('ffn', {'widths': (6, 5), 'form': 'theorem6'}),
    ],
)
@pytest.mark.parametrize('scheme', ['flax', 'pytorch'])
def test_a_fresh_model_predicts_the_same_at_one_position(name, settings, scheme):
    module = build(name, initializer=scheme, **settings)

    @quick_jit
    def compare(key, z):
        params = module.init(key, z)
        at = jax.lax.map(lambda j: models.predict(module, params, z, j), jnp.arange(5))
        return models.predict(module, params, z), at

    full, at_position = compare(jax.random.key(0), prompt())
    assert full.shape == (5,)
    assert np.all(full != 0)
    np.testing.assert_allclose(at_position, full, rtol=1e-4, atol=1e-6)


# Initial weights: bounds and spreads over many draws.

CASES = {
    'separate': ('transformer', {'num_heads': 2, 'mlp_width': 7}),
    'merged': ('transformer', {'num_heads': 2, 'mlp_width': 7, 'attention': 'merged'}),
    'gru': ('rnn', {'width': 6}),
    'deep': ('rnn', {'width': 6, 'cell': 'deep', 'transition_widths': (5, 4)}),
    'mlp': ('rnn', {'width': 6, 'cell': 'tanh', 'readout': 'mlp', 'readout_widths': (8,)}),
    'flat': ('ffn', {'widths': (6, 5)}),
    'theorem6': ('ffn', {'widths': (6, 5), 'form': 'theorem6'}),
}
E, N = TASK.embedding_dim, TASK.seq_len
RECURRENT = ('input_kernel', 'hidden_kernel', 'input_bias', 'hidden_bias')
# Fan-in of every parameter: PyTorch draws U(±1/√fan_in), Flax kernels of variance 1/fan_in. Not in the table:
# biases of attention's projections (zero) and its in-projection.
FAN_IN = {
    'separate': {'attention/out/kernel': 2 * E, 'hidden': E, 'out': 7},
    'merged': {'hidden': 2 * E, 'out': 7},
    'gru': {**{f'cell/{name}': 6 for name in RECURRENT}, 'out': 12},
    'deep': {
        **{f'cell/{name}': 6 + E for name in ('input_kernel', 'hidden_kernel', 'bias_0')},
        **{'cell/kernel_1': 5, 'cell/bias_1': 5, 'cell/kernel_2': 4, 'out': 12},
    },
    'mlp': {**{f'cell/{name}': 6 for name in RECURRENT}, 'readout_0': 12 + E, 'out': 8},
    'flat': {'hidden_0': N * E, 'hidden_1': 6, 'out': 5},
    'theorem6': {'tokens': N * E, 'indices': N * E, 'hidden_1': 6, 'out': 5},
}
XAVIER = {
    'separate': ('attention/in_kernel', np.sqrt(6 / (4 * E))),  # stacked (3 D_e, D_e)
    'merged': ('attention/qk_HxExE', np.sqrt(6 / (2 * E))),
}


def draws(case, scheme):
    """name → values of that parameter in many initialisations, (draws, *shape)."""
    name, settings = CASES[case]
    module = build(name, initializer=scheme, **settings)
    keys = jax.random.split(jax.random.key(0), 400)
    params = quick_jit(jax.vmap(lambda key: module.init(key, prompt())))(keys)['params']
    leaves = jax.tree_util.tree_leaves_with_path(params)
    return {'/'.join(part.key for part in path): np.asarray(leaf) for path, leaf in leaves}


def fan_in_of(case, name):
    return FAN_IN[case].get(name, FAN_IN[case].get(name.rpartition('/')[0]))


@pytest.mark.parametrize('case', CASES)
def test_pytorch_ranges(case):
    for name, values in draws(case, 'pytorch').items():
        if name in ('attention/in_bias', 'attention/out/bias'):
            assert not np.any(values)
            continue
        limit = XAVIER[case][1] if case in XAVIER and name == XAVIER[case][0] else fan_in_of(case, name) ** -0.5
        assert np.max(np.abs(values)) <= limit * (1 + 1e-6), name
        assert min(np.max(values), -np.min(values)) >= 0.98 * limit, name
        assert np.std(values) == pytest.approx(limit / np.sqrt(3), rel=0.08), name


@pytest.mark.parametrize('case', CASES)
def test_flax_kernels_and_zero_biases(case):
    for name, values in draws(case, 'flax').items():
        kind = name.rpartition('/')[2]
        if 'bias' in kind:
            assert not np.any(values), name
        elif kind == 'hidden_kernel' and case != 'deep':
            blocks = np.split(values[:20], values.shape[-1] // 6, axis=-1)
            for block in blocks:
                products = np.einsum('skab,skac->skbc', block, block)
                np.testing.assert_allclose(products, np.broadcast_to(np.eye(6), products.shape), atol=1e-5)
            assert all(not np.allclose(blocks[0], block) for block in blocks[1:])
            assert not np.allclose(values[:, 0], values[:, 1])
        else:
            assert np.var(values) == pytest.approx(1 / flax_fan_in(case, name), rel=0.15), name
            assert np.mean(values) == pytest.approx(0, abs=5 * np.std(values) / np.sqrt(values.size)), name


def flax_fan_in(case, name):
    """Rows of the matrix itself, whatever PyTorch would count."""
    rows = {
        'attention/in_kernel': E,
        'attention/qk_HxExE': E,
        'cell/input_kernel': E,
        'cell/hidden_kernel': 6,
        'tokens/kernel': N * TASK.token_dim,
        'indices/kernel': N * (E - TASK.token_dim),
    }
    return rows.get(name, fan_in_of(case, name))
