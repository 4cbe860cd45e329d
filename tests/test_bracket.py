"""The search for n*: against every answer it can have, with the fits that it may take."""

import jax.numpy as jnp
import pytest

from qstr_jax.learners import bracket
from qstr_jax.learners.outcomes import CENSORED, CENSORED_BELOW, REACHED, RUNNING


def search(n_star, least=4, most=1000, resolution=0.1):
    """Runs a search whose loss is below the threshold from n_star on."""
    state, outcome, fits = bracket.start(least), RUNNING, 0
    while outcome == RUNNING:
        state, outcome = bracket.update(state, jnp.bool_(state.n >= n_star), least, most, resolution)
        fits += 1
    return state, int(outcome), fits


@pytest.mark.parametrize('n_star', [5, 6, 8, 9, 31, 100, 517, 999, 1000])
@pytest.mark.parametrize('resolution', [0.01, 0.1, 0.5])
def test_n_star_is_found_up_to_the_resolution(n_star, resolution):
    state, outcome, fits = search(n_star, resolution=resolution)
    assert outcome == REACHED
    assert state.low < n_star <= state.high
    assert state.high <= max(state.low * (1 + resolution), state.low + 1)
    assert fits <= bracket.max_fits(4, 1000, resolution)


def test_censored_on_both_sides():
    assert search(1001)[1] == CENSORED
    assert search(3)[1] == CENSORED_BELOW
    assert search(4)[1] == CENSORED_BELOW
    assert search(3)[2] == 1


def test_large_n_do_not_overflow():
    state, outcome, _ = search(1_500_000_000, least=10, most=2_000_000_000)
    assert outcome == REACHED
    assert state.low < 1_500_000_000 <= state.high
