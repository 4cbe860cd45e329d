"""Random labels, and how many a ball fits."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from qstr_jax import tasks
from qstr_jax.theory.capacity import Capacity, capacity
from tests import helpers


def test_random_labels_have_the_prompts_of_qstr_and_labels_of_their_own():
    true, random = (tasks.build(name, seq_len=4, token_dim=2) for name in ('qstr', 'random_labels'))
    assert true.stream_name == random.stream_name
    key, indices = jax.random.key(3), jnp.arange(400)
    link_params = helpers.draw(jax.random.key(0), true).link
    ours, theirs = (helpers.examples(key, indices, task, link_params) for task in (random, true))
    np.testing.assert_array_equal(ours.x_NxD, theirs.x_NxD)
    np.testing.assert_array_equal(ours.t_NxQ, theirs.t_NxQ)
    assert abs(float(jnp.mean(ours.y_N * theirs.y_N))) < 0.1
    assert float(jnp.mean(ours.y_N**2)) == pytest.approx(1, abs=0.15)
    one = tasks.sample(jax.random.fold_in(key, 7), random, link_params)
    np.testing.assert_allclose(one.y_N, ours.y_N[7], rtol=1e-6)


@pytest.mark.parametrize(
    ('risks', 'fitted', 'missed', 'value'),
    [
        ((0.0, 0.01, 0.3, 0.7), 20, 40, math.sqrt(800)),
        ((0.0, 0.2, 0.01, 0.7), 10, 20, math.sqrt(200)),  # A larger n by luck is not the capacity.
        ((0.3, 0.4, 0.5, 0.7), 0, 10, 10),
        ((0.0, 0.0, 0.0, 0.0), 80, math.inf, 80),
        ((0.0, math.nan, 0.0, 0.0), 10, 20, math.sqrt(200)),
    ],
)
def test_the_capacity_ends_at_the_first_n_that_is_missed(risks, fitted, missed, value):
    order = np.array([2, 0, 3, 1])
    found = capacity(np.array([10, 20, 40, 80])[order], np.array(risks)[order])
    assert found == Capacity(fitted=fitted, missed=missed)
    assert found.value == pytest.approx(value)


def test_no_fits_are_one_line():
    with pytest.raises(ValueError, match='0 sample sizes and 0 training risks'):
        capacity([], [])
