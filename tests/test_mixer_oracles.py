"""Mixers equal reference code, in outputs and gradients; `tests/oracles` has the arrays, and what makes them."""

import hashlib
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import traverse_util

from qstr_jax.models import mixers
from qstr_jax.models.mixers import mixer
from tests import helpers

FOLDER = helpers.ROOT / 'tests/oracles'
MADE = json.loads((FOLDER / 'made.json').read_text())
SIZES = {'heads': 2, 'head_dim': 4, 'rank': 4, 'state_dim': 4, 'hidden_dim': 4, 'filter_dim': 4}
OTHERS = {
    'attention': {'causal': True},
    'mlp_mixer_causal': {'causal': True},
    'rg_lru': {'heads': 2, 'state_dim': 8},
    'deep_cell_bounded': {'radius': 2.0, 'lipschitz': 0.25},
}


def mixer_of(name):
    """The mixer of a file of arrays."""
    return name.removesuffix('_causal').removesuffix('_bounded')


def test_every_mixer_is_compared():
    ours = {name for name in mixers.names() if mixers.spec(name)[0].__module__.startswith('qstr_jax.')}
    assert {mixer_of(name) for name in MADE['sha256']} == ours


@pytest.mark.parametrize('name', MADE['sha256'])
def test_outputs_and_gradients(name):
    path = FOLDER / f'{name}.npz'
    assert hashlib.sha256(path.read_bytes()).hexdigest() == MADE['sha256'][name]
    arrays = dict(np.load(path))
    own = {key.removeprefix('params/'): value for key, value in arrays.items() if key.startswith('params/')}
    params = {'params': traverse_util.unflatten_dict(own, sep='/')}
    kind = mixers.spec(mixer_of(name))[0]
    settings = {key: size for key, size in SIZES.items() if key in mixer.schema(kind)} | OTHERS.get(name, {})
    module = kind(**settings)

    def total(params, x_NxW, form):
        y_NxW = (module.clone(form=form) if hasattr(module, 'form') else module).apply(params, x_NxW)
        return jnp.sum(y_NxW * arrays['weight']), y_NxW

    run = jax.jit(jax.value_and_grad(total, argnums=(0, 1), has_aux=True), static_argnums=2)
    for form in ('parallel', 'recurrent') if hasattr(module, 'form') else ('only',):
        (_, y_NxW), (of_params, of_x) = run(params, arrays['x'], form)
        np.testing.assert_allclose(y_NxW, arrays['y'], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(of_x, arrays['gradient/x'], rtol=1e-3, atol=5e-5)
        for key, gradient in traverse_util.flatten_dict(of_params['params'], sep='/').items():
            np.testing.assert_allclose(gradient, arrays[f'gradient/params/{key}'], rtol=1e-3, atol=5e-5, err_msg=key)
