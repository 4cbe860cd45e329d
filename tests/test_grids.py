"""The search on a grid, with made-up scores."""

import itertools
import math

import pytest

from qstr_jax.sweeps import grids
from qstr_jax.sweeps.grids import Grid, Score


def search(axes, samples_at, start=None):
    """The places that the search ends at, and all that it tried."""
    start = start or tuple(grid.start for grid in axes)
    scores = {}
    while found := grids.following(axes, scores, start):
        assert not set(found) & set(scores)
        values = {places: [grid.value(p) for grid, p in zip(axes, places, strict=True)] for places in found}
        scores |= {places: Score(samples_at(*values[places]), 0, 1.0) for places in found}
    return grids.best(scores), scores


@pytest.mark.parametrize('optimum', [1e-5, 1e-3, 3e-3, 0.03, 1.0])
def test_a_ladder_climbs_to_the_optimum_from_anywhere(optimum):
    ladder = Grid(values=(), default=1e-3)
    best, scores = search([ladder], lambda rate: abs(math.log(rate / optimum)))
    assert ladder.value(best[0]) == pytest.approx(optimum)
    neighbours = {(best[0] - 1,), (best[0] + 1,)}
    assert neighbours <= set(scores)
    near, fewer = search([ladder], lambda rate: abs(math.log(rate / optimum)), start=best)
    assert near == best
    assert len(fewer) == 3


def test_rungs_are_one_and_three_times_powers_of_ten():
    ladder = Grid(values=(), default=1e-3)
    assert [ladder.value(ladder.start + step) for step in range(-2, 4)] == [1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2]


def test_all_given_values_are_tried_and_a_best_one_at_the_edge_extends_the_grid():
    grid = Grid(values=(1e-3, 1e-2, 1e-1), default=1e-3)
    best, scores = search([grid], lambda rate: abs(math.log(rate / 10)))
    assert grid.value(best[0]) == 10
    assert {(0,), (1,), (2,), (3,), (4,), (5,)} == set(scores)
    best, scores = search([grid], lambda rate: abs(math.log(rate / 1e-2)))
    assert best == (1,)
    assert set(scores) == {(0,), (1,), (2,)}


def test_zero_cannot_be_extended_below():
    grid = Grid(values=(0.0, 0.01, 0.1), default=0.01)
    best, scores = search([grid], lambda decay: decay)
    assert best == (0,)
    assert set(scores) == {(0,), (1,), (2,)}


def test_two_settings_are_searched_together():
    axes = [Grid(values=(), default=1e-3), Grid(values=(0.01, 0.1, 1.0), default=0.01)]
    best, scores = search(axes, lambda rate, decay: abs(math.log(rate / 3e-2)) + abs(math.log(decay / 0.1)))
    assert (axes[0].value(best[0]), axes[1].value(best[1])) == (3e-2, 0.1)
    for i, step in itertools.product((0, 1), (-1, 1)):
        assert tuple(place + step * (i == j) for j, place in enumerate(best)) in scores


def test_where_no_lane_reaches_the_loss_decides():
    ladder = Grid(values=(), default=1e-3)
    scores = {(place,): Score(math.inf, 3, loss) for place, loss in ((-6, 0.9), (-5, 0.8), (-7, 1.0))}
    assert grids.following([ladder], scores, (-6,)) == [(-4,)]


def test_a_search_ends_where_no_value_matters():
    ladder = Grid(values=(), default=1e-3)
    best, scores = search([ladder], lambda rate: -rate)  # the higher, the better, for ever
    assert ladder.has(best[0])
    assert not ladder.has(best[0] + 1)
    assert len(scores) <= 2 * grids.MOST_STEPS + 1


def test_a_ladder_needs_a_positive_default():
    with pytest.raises(ValueError, match='give several values'):
        Grid(values=(), default=0.0, name='radius')
