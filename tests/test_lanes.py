"""Lanes of a batch: what is computed for the chosen ones alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from qstr_jax.learners import lanes

VALUES_K = jnp.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
NAN = np.nan


@pytest.mark.parametrize(
    ('chosen', 'sums', 'runs'),
    [
        ([True, False, True], [3, NAN, 11], [1, 5]),
        ([False, True, False], [NAN, 7, NAN], [3]),
        ([False] * 3, [NAN] * 3, []),
    ],
)
def test_only_the_chosen_lanes_are_run(chosen, sums, runs):
    seen = []

    def function(scale, value_F):
        jax.debug.callback(lambda first: seen.append(float(first)), value_F[0])
        return {'sum': jnp.sum(value_F), 'scaled_F': scale * value_F}

    run = jax.jit(lambda chosen_K: lanes.over_chosen(function, chosen_K, jnp.full(3, 2.0), VALUES_K))
    found = run(jnp.array(chosen))
    jax.effects_barrier()
    np.testing.assert_array_equal(found['sum'], sums)
    np.testing.assert_array_equal(found['scaled_F'], np.where(np.array(chosen)[:, None], 2 * VALUES_K, NAN))
    assert sorted(seen) == runs


@pytest.mark.parametrize('is_chosen', [True, False])
def test_a_batch_of_one_lane(is_chosen):
    found = lanes.over_chosen(jnp.sum, jnp.array([is_chosen]), VALUES_K[:1])
    np.testing.assert_array_equal(found, [3.0 if is_chosen else NAN])
