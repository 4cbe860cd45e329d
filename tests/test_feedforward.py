"""Feedforward networks: both forms by their formulas, and what the theorem's first layer can see."""

import jax
import numpy as np
import pytest

from qstr_jax.models import Feedforward
from tests.helpers import quick_jit, random_params

SEQ_LEN, TOKEN_DIM, WIDTH = 4, 3, 8


def prompt(seed=0):
    return np.random.default_rng(seed).normal(size=(SEQ_LEN, WIDTH)).astype(np.float32)


def make(form, widths=(5, 7)):
    module = Feedforward(widths, TOKEN_DIM, form)
    return module, random_params(module, prompt())


@pytest.mark.parametrize('form', ['flat', 'theorem6'])
@pytest.mark.parametrize('widths', [(5,), (5, 7), (6, 3, 4)])
def test_equals_its_formula(form, widths):
    z = prompt()
    module, variables = make(form, widths)
    params = variables['params']
    if form == 'flat':
        layer = z.ravel() @ params['hidden_0']['kernel'] + params['hidden_0']['bias']
        assert params['hidden_0']['kernel'].shape == (SEQ_LEN * WIDTH, widths[0])
    else:
        tokens, indices = params['tokens']['kernel'], params['indices']
        assert set(params['tokens']) == {'kernel'}
        assert tokens.shape == (SEQ_LEN * TOKEN_DIM, widths[0])
        x = np.concatenate([z[i, :TOKEN_DIM] for i in range(SEQ_LEN)])
        codes = np.concatenate([z[i, TOKEN_DIM:] for i in range(SEQ_LEN)])
        layer = x @ tokens + codes @ indices['kernel'] + indices['bias']
    for i in range(1, len(widths)):
        layer = np.maximum(layer, 0) @ params[f'hidden_{i}']['kernel'] + params[f'hidden_{i}']['bias']
        assert layer.shape == (widths[i],)
    expected = np.maximum(layer, 0) @ params['out']['kernel'] + params['out']['bias']
    assert expected.shape == (SEQ_LEN,)
    np.testing.assert_allclose(quick_jit(module.apply)(variables, z), expected, rtol=1e-4, atol=1e-4)


def test_theorem6_sees_tokens_through_w_alone():
    """A change of x in the null space of W, and only such a change, is invisible."""
    z = prompt()
    module, params = make('theorem6')
    w = np.asarray(params['params']['tokens']['kernel'], np.float64).T  # (m_1, N d)
    _, _, rows = np.linalg.svd(w)
    unseen, seen = rows[w.shape[0] :], rows[: w.shape[0]]
    assert len(unseen) == SEQ_LEN * TOKEN_DIM - 5
    before = module.apply(params, z)

    def moved(direction):
        changed = z.copy()
        changed[:, :TOKEN_DIM] += 10 * direction.reshape(SEQ_LEN, TOKEN_DIM)
        return np.max(np.abs(module.apply(params, changed) - before))

    scale = np.max(np.abs(before))
    assert max(moved(direction) for direction in unseen) < 1e-4 * scale
    assert max(moved(direction) for direction in seen) > 0.1 * scale


def test_theorem6_reads_the_indices_beside_w():
    module, params = make('theorem6')
    gradient = jax.grad(lambda z: module.apply(params, z).sum())(prompt())
    assert np.all(np.any(gradient[:, TOKEN_DIM:] != 0, axis=0))


@pytest.mark.parametrize('form', ['flat', 'theorem6'])
def test_prediction_at_a_position_equals_the_full_one(form):
    module, params = make(form)
    full = module.apply(params, prompt())
    at = jax.jit(lambda position: module.apply(params, prompt(), position=position))
    np.testing.assert_allclose([at(j) for j in range(SEQ_LEN)], full, rtol=1e-5, atol=1e-5)
