"""Functions as settings: those that differ make cells of their own, or are refused."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from qstr_jax import sweeps
from qstr_jax.settings import function_names
from tests import small


def scaled(scale, shift=None):
    def mine(key, seq_len, token_dim):
        return scale * jax.random.normal(key, (seq_len, token_dim)) + (0 if shift is None else shift)

    return mine


def tokens(key, seq_len, token_dim, scale=3):
    return scale * jax.random.normal(key, (seq_len, token_dim))


class Tokens:
    def __init__(self, scale):
        self.scale = scale

    def __call__(self, key, seq_len, token_dim):
        return tokens(key, seq_len, token_dim, self.scale)

    def draw(self, key, seq_len, token_dim):
        return tokens(key, seq_len, token_dim, self.scale)


@pytest.mark.parametrize(
    ('function', 'name'),
    [
        (tokens, 'tokens'),
        (jnp.tanh, 'tanh'),
        (jax.nn.relu, 'relu'),
        (scaled(5), 'mine(scale=5, shift=None)'),
        (jax.jit(scaled(5)), 'mine(scale=5, shift=None)'),
        (functools.partial(tokens, scale=2), 'tokens(scale=2)'),
        (Tokens(2), 'Tokens(scale=2)'),
        (Tokens(2).draw, 'draw(scale=2)'),
        (lambda key: key, '<lambda>'),
    ],
)
def test_a_function_of_a_module_has_its_name_and_others_what_they_hold(function, name):
    assert function_names.plain(function) == name


def test_arrays_are_told_apart_by_every_number():
    shift = np.zeros(5000)
    names = [
        function_names.plain(scaled(1, array)) for array in (shift, shift + (np.arange(5000) == 2500), jnp.zeros(5000))
    ]
    assert len(set(names)) == 3
    assert function_names.plain(scaled(1, shift.copy())) == names[0]


def test_a_function_that_holds_itself_has_a_name():
    def again(n):
        return again(n - 1) if n else 0

    assert function_names.plain(again).startswith('again(again=')


@pytest.mark.parametrize('setting', ['tokens', 'link'])
def test_closures_of_one_name_are_cells_and_columns_of_their_own(setting):
    def weighted(weight):
        return lambda x_QxD: weight * x_QxD[0, 0]

    values = [scaled(1), scaled(5)] if setting == 'tokens' else [weighted(1), weighted(5)]
    alone = [sweeps.cells_of(small.settings(models='ffn', **{setting: value}))[0] for value in values]
    axis = sweeps.cells_of(small.settings(models='ffn', **{setting: values}))
    for cells in (alone, axis):
        assert len({cell.id for cell in cells}) == len({dict(cell.columns)[setting] for cell in cells}) == 2


def test_an_axis_of_two_functions_that_no_name_tells_apart_is_refused():
    axis = [lambda *given: tokens(*given), lambda *given: 2 * tokens(*given)]
    with pytest.raises(ValueError, match=r"task.tokens: two different values are called '<lambda>'.*name of its own"):
        sweeps.cells_of(small.settings(models='ffn', tokens=axis))


def test_the_id_of_a_function_of_a_module_stays():
    """That of rows from before there was more in a name."""
    assert sweeps.cells_of(small.settings(models='ffn', tokens=tokens))[0].id == 'ffn-qstr-N3-q1-4e2fcd48'
