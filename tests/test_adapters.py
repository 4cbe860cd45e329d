"""Modules of other libraries train in vmapped lanes, each lane from its own weights, as Linen ones do."""

import importlib.util
import sys

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import linen as nn
from flax import nnx

from qstr_jax import models, sweeps, tasks
from tests import small

LIBRARIES = ('equinox', 'nnx', 'torch')
KINDS = ('attention', 'recurrent')
SEQ_LEN, DIM = 3, 6


def needs(library):
    """Skips a test where a library is not installed."""
    for name in {'torch': ('torch', 'torchax'), 'nnx': ()}.get(library, (library,)):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f'{name} is not installed')


class NnxAttention(nnx.Module):
    def __init__(self, dim: int, width: int, *, rngs: nnx.Rngs):
        self.attention = nnx.MultiHeadAttention(1, dim, width, decode=False, rngs=rngs)
        self.readout = nnx.Linear(dim, 1, rngs=rngs)

    def __call__(self, z_NxE):
        return self.readout(self.attention(z_NxE))[:, 0]


class NnxRecurrent(nnx.Module):
    def __init__(self, dim: int, width: int, *, rngs: nnx.Rngs):
        self.cell = nnx.RNN(nnx.GRUCell(dim, width, rngs=rngs))
        self.readout = nnx.Linear(width, 1, rngs=rngs)

    def __call__(self, z_NxE):
        return self.readout(self.cell(z_NxE))[:, 0]


def equinox_modules():
    import equinox as eqx

    class Attention(eqx.Module):
        attention: eqx.nn.MultiheadAttention
        readout: eqx.nn.Linear

        def __init__(self, dim: int, width: int, *, key):
            keys = jax.random.split(key)
            self.attention = eqx.nn.MultiheadAttention(1, dim, qk_size=width, key=keys[0])
            self.readout = eqx.nn.Linear(dim, 1, key=keys[1])

        def __call__(self, z_NxE):
            return jax.vmap(self.readout)(self.attention(z_NxE, z_NxE, z_NxE))[:, 0]

    class Recurrent(eqx.Module):
        cell: eqx.nn.GRUCell
        readout: eqx.nn.Linear

        def __init__(self, dim: int, width: int, *, key):
            keys = jax.random.split(key)
            self.cell = eqx.nn.GRUCell(dim, width, key=keys[0])
            self.readout = eqx.nn.Linear(width, 1, key=keys[1])

        def __call__(self, z_NxE):
            def step(state, z_E):
                state = self.cell(z_E, state)
                return state, self.readout(state)[0]

            return jax.lax.scan(step, jnp.zeros(self.cell.hidden_size), z_NxE)[1]

    return {'attention': Attention, 'recurrent': Recurrent}


def torch_modules():
    import torch

    class Attention(torch.nn.Module):
        def __init__(self, dim: int, width: int):
            super().__init__()
            self.embed = torch.nn.Linear(dim, width)
            self.attention = torch.nn.MultiheadAttention(width, 1)
            self.readout = torch.nn.Linear(width, 1)

        def forward(self, z_NxE):
            h_NxE = self.embed(z_NxE)
            return self.readout(self.attention(h_NxE, h_NxE, h_NxE, need_weights=False)[0])[:, 0]

    class Recurrent(torch.nn.Module):
        def __init__(self, dim: int, width: int):
            super().__init__()
            self.cell = torch.nn.GRU(dim, width)
            self.readout = torch.nn.Linear(width, 1)

        def forward(self, z_NxE):
            return self.readout(self.cell(z_NxE)[0])[:, 0]

    class Copied(torch.nn.Module):
        """Its layers are deep copies of one, and its mask and positions are made on the way."""

        def __init__(self, dim: int, width: int):
            super().__init__()
            self.embed = torch.nn.Linear(dim, width)
            layer = torch.nn.TransformerEncoderLayer(width, 1, width, batch_first=True, norm_first=True)
            self.blocks = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
            self.readout = torch.nn.Linear(width, 1)

        def forward(self, z_NxE):
            mask_NxN = torch.triu(torch.ones(len(z_NxE), len(z_NxE), dtype=torch.bool), 1)
            h_NxE = self.embed(z_NxE) + torch.arange(len(z_NxE))[:, None] / 8
            return self.readout(self.blocks(h_NxE[None], mask=mask_NxN)[0])[:, 0]

    class Loop(torch.nn.Module):
        """A loop over tokens that starts from zeros and writes in place."""

        def __init__(self, dim: int, width: int):
            super().__init__()
            self.cell = torch.nn.GRUCell(dim, width)
            self.readout = torch.nn.Linear(width, 1)

        def forward(self, z_NxE):
            state_1xW = torch.zeros(1, self.cell.hidden_size)
            states_NxW = torch.zeros(len(z_NxE), self.cell.hidden_size)
            for i in range(len(z_NxE)):
                state_1xW = self.cell(z_NxE[i : i + 1], state_1xW)
                states_NxW[i] = state_1xW[0]
            return self.readout(states_NxW)[:, 0]

    return {'attention': Attention, 'recurrent': Recurrent, 'copied': Copied, 'loop': Loop}


def adapted(library, kind, dim, width):
    """One module of each library and kind as a Linen module."""
    if library == 'nnx':
        return models.from_nnx({'attention': NnxAttention, 'recurrent': NnxRecurrent}[kind], dim, width=width)
    modules = equinox_modules() if library == 'equinox' else torch_modules()
    adapter = models.from_equinox if library == 'equinox' else models.from_torch
    return adapter(modules[kind], dim, width=width)


@pytest.mark.parametrize('kind', KINDS)
@pytest.mark.parametrize('library', LIBRARIES)
def test_a_module_trains_in_vmapped_lanes(library, kind):
    """Lanes start from weights of their own keys, are the same alone, and learn which token is the label."""
    needs(library)
    module = adapted(library, kind, DIM, width=8)
    z_BxNxE = jax.random.normal(jax.random.key(0), (64, SEQ_LEN, DIM))

    def train(key):
        def loss(params):
            prediction_BxN = jax.vmap(lambda z_NxE: models.predict(module, params, z_NxE))(z_BxNxE)
            return jnp.mean((prediction_BxN - z_BxNxE[:, :, 0]) ** 2)

        def step(state, _):
            params, moments = state
            value, grads = jax.value_and_grad(loss)(params)
            updates, moments = optimizer.update(grads, moments, params)
            return (optax.apply_updates(params, updates), moments), value

        optimizer = optax.adam(3e-2)
        params = module.init(key, z_BxNxE[0])
        return jax.lax.scan(step, (params, optimizer.init(params)), length=100)[1]

    keys = jax.random.split(jax.random.key(1), 2)
    losses_KxS = jax.jit(jax.vmap(train))(keys)
    assert losses_KxS[0, 0] != losses_KxS[1, 0]
    assert (losses_KxS[:, -1] < 0.3 * losses_KxS[:, 0]).all()
    chex.assert_trees_all_close(losses_KxS[1, :10], jax.jit(train)(keys[1])[:10], rtol=1e-4)


class NnxDropout(nnx.Module):
    def __init__(self, dim: int, width: int, *, rngs: nnx.Rngs):
        both = (nnx.RNN(nnx.LSTMCell(dim, width, rngs=rngs), rngs=rngs) for _ in range(2))
        self.cells, self.dropout = nnx.Bidirectional(*both, rngs=rngs), nnx.Dropout(0.5, rngs=rngs)
        self.readout = nnx.Linear(2 * width, 1, rngs=rngs)

    def __call__(self, z_NxE):
        return self.readout(self.dropout(self.cells(z_NxE)))[:, 0]


def equinox_dropout():
    import equinox as eqx

    class Dropout(eqx.Module):
        readout: eqx.nn.Linear
        dropout: eqx.nn.Dropout

        def __init__(self, dim: int, width: int, *, key):
            self.readout, self.dropout = eqx.nn.Linear(dim, 1, key=key), eqx.nn.Dropout(0.5)

        def __call__(self, z_NxE):
            return self.dropout(jax.vmap(self.readout)(z_NxE))[:, 0]

    return Dropout


@pytest.mark.parametrize('library', ['equinox', 'nnx'])
def test_a_module_with_dropout_runs_without_it(library):
    """Modules may ask for streams besides that of parameters, as a dropout and an LSTM's first state do."""
    needs(library)
    adapter = {'equinox': models.from_equinox, 'nnx': models.from_nnx}[library]
    module = adapter(equinox_dropout() if library == 'equinox' else NnxDropout, DIM, width=8)
    z_NxE = jax.random.normal(jax.random.key(0), (32, DIM))
    params = module.init(jax.random.key(1), z_NxE)
    assert (models.predict(module, params, z_NxE) != 0).all()
    same = module.init(jax.random.key(1), z_NxE)
    chex.assert_trees_all_equal(params['params'], same['params'])
    other = module.init(jax.random.key(2), z_NxE)
    assert any((a != b).any() for a, b in zip(*map(jax.tree.leaves, (params, other)), strict=True))


class NnxCall(nnx.Module):
    """Layers that its call may switch to training; its settings have names that Flax's bridge knows as well."""

    def __init__(self, dim: int, kind: str, name: str = '', skip_rng: int = 0, *, rngs: nnx.Rngs):
        self.kind, self.rngs = kind, rngs
        self.noise = jax.random.normal(rngs.params(), (dim,))  # drawn once, which is no noise
        self.attention = nnx.MultiHeadAttention(1, dim, 4, dropout_rate=0.5, decode=False, rngs=rngs)
        self.dropout, self.norm = nnx.Dropout(0.5, rngs=rngs), nnx.BatchNorm(dim, rngs=rngs)
        self.cell, self.seen = nnx.RNN(nnx.LSTMCell(dim, dim, rngs=rngs), rngs=rngs), nnx.Variable(jnp.zeros(()))

    def __call__(self, z_NxE):
        return {
            'evaluated': lambda: self.norm(self.attention(self.dropout(self.cell(z_NxE + self.noise[None])))),
            'dropout': lambda: self.dropout(z_NxE, deterministic=False),
            'attention': lambda: self.attention(z_NxE, deterministic=False),
            'noise': lambda: z_NxE + jax.random.normal(self.rngs.noise(), z_NxE.shape),
            'norm': lambda: self.norm(z_NxE, use_running_average=False),
            'count': self.counted,
        }[self.kind]()[:, 0]

    def counted(self):
        self.seen[...] += 1
        return jnp.ones((SEQ_LEN, 1))


RANDOM, STATE = 'asks for random numbers when it predicts; .*', 'keeps a state beside its parameters; .*'
LINES = {'dropout': RANDOM, 'attention': RANDOM, 'noise': RANDOM, 'norm': STATE, 'count': STATE}


@pytest.mark.parametrize('kind', ['evaluated', *LINES])
def test_an_nnx_module_that_trains_in_its_call_is_refused(kind):
    """It would take one dropout mask, or the statistics of one prompt, for all."""
    task = tasks.build('qstr', seq_len=SEQ_LEN, token_dim=3)
    module = models.from_nnx(NnxCall, task.embedding_dim, kind, name='mine', skip_rng=2)
    if kind == 'evaluated':
        return models.check_output('mine', module, task)
    with pytest.raises(ValueError, match=f"^models='mine': {LINES[kind]}$"):
        models.check_output('mine', module, task)


class NnxOwnKey(NnxAttention):
    def __init__(self, dim: int, width: int, *, rngs: nnx.Rngs):
        super().__init__(dim, width, rngs=nnx.Rngs(0))


def equinox_own_key():
    class OwnKey(equinox_modules()['attention']):
        def __init__(self, dim: int, width: int, *, key):
            super().__init__(dim, width, key=jax.random.key(0))

    return OwnKey


class LinenOwnKey(nn.Module):
    @nn.compact
    def __call__(self, z_NxE):
        def draw(key, shape):
            return jax.random.normal(jax.random.key(0), shape)

        return z_NxE @ self.param('w', draw, z_NxE.shape[-1:])


@pytest.mark.parametrize('library', ['equinox', 'nnx', 'linen'])
def test_a_module_whose_lanes_would_start_alike_is_refused(library):
    needs('equinox' if library == 'equinox' else 'nnx')
    task = tasks.build('qstr', seq_len=SEQ_LEN, token_dim=3)
    module = {
        'equinox': lambda: models.from_equinox(equinox_own_key(), task.embedding_dim, width=8),
        'nnx': lambda: models.from_nnx(NnxOwnKey, task.embedding_dim, width=8),
        'linen': LinenOwnKey,
    }[library]()
    with pytest.raises(ValueError, match=r"^models='mine': draws its first parameters from a key of its own[^\n]*$"):
        models.check_output('mine', module, task)


class Zeros(nn.Module):
    """A linear readout of random features."""

    @nn.compact
    def __call__(self, z_NxE):
        features_NxF = jnp.tanh(z_NxE @ jax.random.normal(jax.random.key(0), (z_NxE.shape[-1], 8)))
        return nn.Dense(1, kernel_init=nn.initializers.zeros)(features_NxF)[:, 0]


def test_first_parameters_that_are_constants_are_no_key_of_its_own():
    task = tasks.build('qstr', seq_len=SEQ_LEN, token_dim=3)
    models.check_output('mine', Zeros(), task)


@pytest.mark.parametrize('library', LIBRARIES)
def test_what_is_wrong_with_its_arguments_is_a_line(library):
    needs(library)
    adapter = getattr(models, f'from_{library}')
    if library == 'nnx':
        kind, made = NnxRecurrent, NnxRecurrent(DIM, 8, rngs=nnx.Rngs(0))
    else:
        kind = (equinox_modules() if library == 'equinox' else torch_modules())['recurrent']
        made = kind(DIM, 8, **({'key': jax.random.key(0)} if library == 'equinox' else {}))
    with pytest.raises(ValueError, match=f'^models.from_{library}: give the class and its arguments, not a module$'):
        adapter(made)
    with pytest.raises(ValueError, match=rf'^models.from_{library}: widths=\[4, 4\]: give a tuple$'):
        adapter(kind, DIM, widths=[4, 4])
    with pytest.raises(ValueError, match=rf'^models.from_{library}: argument 1=\[4\]: give a tuple$'):
        adapter(kind, [4])


def test_its_settings_are_those_of_the_builder(tmp_path, own_entries):
    """The width of an NNX module is a column."""

    @models.register('adapted')
    def builder(task, width: int = 8):
        return models.from_nnx(NnxRecurrent, task.embedding_dim, width=width)

    rows = sweeps.run(small.settings(models='adapted', adapted={'width': 3}), tmp_path, small.quiet())
    assert list(rows['adapted_width']) == [3, 3]
    assert rows['test_loss'].nunique() == 2


@pytest.mark.parametrize('kind', [*KINDS, 'copied', 'loop'])
def test_a_torch_module_says_what_it_says_in_pytorch(kind):
    needs('torch')
    import torch

    module, z_NxE = adapted('torch', kind, DIM, width=8), jax.random.normal(jax.random.key(0), (SEQ_LEN, DIM))
    params = module.init(jax.random.key(1), z_NxE)
    original = module.make().eval()
    original.load_state_dict({name: torch.tensor(np.asarray(v)) for name, v in params['params']['module'].items()})
    with torch.no_grad():
        said_N = original(torch.tensor(np.asarray(z_NxE))).numpy()
    np.testing.assert_allclose(models.predict(module, params, z_NxE), said_N, rtol=1e-4, atol=1e-5)


def test_a_library_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, 'equinox', None)
    with pytest.raises(ValueError, match=r'models.from_equinox: equinox is not installed; make install EXTRA=adap'):
        models.from_equinox(object)
