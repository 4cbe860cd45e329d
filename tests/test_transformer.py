"""The Transformer: its formula, and what a prediction at one position costs."""

import jax
import numpy as np
import pytest

from qstr_jax.models import Transformer, attention
from tests.helpers import random_params


def prompt(seq_len=5, width=4):
    return np.random.default_rng(1).normal(size=(seq_len, width)).astype(np.float32)


@pytest.mark.parametrize('form', ['merged', 'separate'])
@pytest.mark.parametrize('output_bias', [True, False])
def test_equals_its_formula(form, output_bias):
    z = prompt()
    module = Transformer(2, 6, form, output_bias)
    variables = random_params(module, z, scale=0.5)
    params = variables['params']
    attend = {'merged': attention.MergedAttention, 'separate': attention.SeparateAttention}[form](2)
    heads = np.asarray(attend.apply({'params': params['attention']}, z, z), np.float64)
    assert heads.shape[1] == (8 if form == 'merged' else 4)
    assert params['hidden']['kernel'].shape == (heads.shape[1], 6)
    hidden = np.maximum(heads @ params['hidden']['kernel'] + params['hidden']['bias'], 0)
    expected = (hidden @ params['out']['kernel'])[:, 0]
    assert ('bias' in params['out']) == output_bias
    if output_bias:
        expected += params['out']['bias']
    np.testing.assert_allclose(module.apply(variables, z), expected, rtol=1e-4, atol=1e-5)


def test_knows_positions_by_the_prompt_alone():
    """Without positional input, permuting the tokens permutes the predictions."""
    z = prompt()
    module = Transformer(2, 6)
    params = random_params(module, z)
    order = np.array([3, 0, 4, 1, 2])
    y = module.apply(params, z)
    np.testing.assert_allclose(module.apply(params, z[order]), y[order], rtol=1e-4, atol=1e-5)


def sizes_of(jaxpr):
    """Shapes of every array that a jaxpr makes, inner ones included."""
    for equation in jaxpr.eqns:
        yield from (variable.aval.shape for variable in equation.outvars)
        for inner in jax.tree.leaves(
            list(equation.params.values()), is_leaf=lambda leaf: hasattr(leaf, 'eqns') or hasattr(leaf, 'jaxpr')
        ):
            inner = getattr(inner, 'jaxpr', inner)
            if hasattr(inner, 'eqns'):
                yield from sizes_of(inner)


@pytest.mark.parametrize('form', ['merged', 'separate'])
def test_one_position_costs_one_query(form):
    seq_len = 101  # no other axis has this size
    z = prompt(seq_len)
    module = Transformer(2, 6, form)
    params = jax.eval_shape(module.init, jax.random.key(0), z)

    def is_quadratic(function, *args):
        shapes = list(sizes_of(jax.make_jaxpr(function)(params, *args).jaxpr))
        assert len(shapes) > 10
        return any(shape.count(seq_len) > 1 or np.prod(shape) >= seq_len**2 for shape in shapes)

    assert is_quadratic(module.apply, z)
    at_position = lambda params, z, position: module.apply(params, z, position=position)  # noqa: E731
    assert not is_quadratic(at_position, z, 3)
    assert not is_quadratic(lambda params, z, j: jax.grad(at_position)(params, z, j), z, 3)


@pytest.mark.parametrize('form', ['merged', 'separate'])
def test_work_at_one_position_grows_like_n(form, monkeypatch):
    monkeypatch.setattr(attention, 'QUERY_BLOCK', 512)  # the account of work counts one block of several
    module = Transformer(1, 6, form)

    def flops(seq_len, position):
        z = jax.ShapeDtypeStruct((seq_len, 4), np.float32)
        params = jax.eval_shape(module.init, jax.random.key(0), z)
        lowered = jax.jit(module.apply).lower(params, z, position)
        return lowered.cost_analysis()['flops']

    growth = [flops(512, position) / flops(128, position) for position in (3, None)]
    assert growth[0] < 4.2
    assert growth[1] > 8
