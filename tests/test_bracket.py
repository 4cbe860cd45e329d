"""The search for n*: against every answer it can have, with the fits that it may take."""

import jax.numpy as jnp
import pytest

from qstr_jax.learners import bracket
from qstr_jax.learners.lanes import CENSORED, CENSORED_BELOW, OUTRACED, REACHED, RUNNING


def search(n_star, least=4, most=1000, resolution=0.1, stop_after=0):
    """Runs a search whose loss is below the threshold from n_star on."""
    state, outcome, fits = bracket.start(least), RUNNING, 0
    while outcome == RUNNING:
        is_below = jnp.bool_(state.n >= n_star)
        state, outcome = bracket.update(state, is_below, least, most, resolution, stop_after=stop_after)
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


@pytest.mark.parametrize(
    ('n_star', 'stop_after', 'outcome', 'low', 'fits'),
    [
        (900, 100, OUTRACED, 100, 6),  # 4, 8, 16, 32, 64, and 100 instead of 128.
        (900, 64, OUTRACED, 64, 5),
        (900, 2, OUTRACED, 4, 1),  # No n is below the least.
        (3, 2, CENSORED_BELOW, 0, 1),
        (2000, 1000, CENSORED, 1000, 9),
        (2000, 5000, CENSORED, 1000, 9),
    ],
)
def test_a_race_tries_no_n_above_its_end(n_star, stop_after, outcome, low, fits):
    state, ended, tried = search(n_star, stop_after=stop_after)
    assert (ended, int(state.low), tried) == (outcome, low, fits)


@pytest.mark.parametrize('n_star', [5, 31, 64])
def test_a_search_that_wins_its_race_is_unchanged(n_star):
    assert search(n_star, stop_after=100) == search(n_star)


def test_a_search_that_wins_in_its_last_step_knows_n_star_up_to_the_resolution():
    state, outcome, _ = search(90, stop_after=100)
    assert outcome == REACHED
    assert state.low < 90 <= state.high <= min(100, state.low * 1.1)
