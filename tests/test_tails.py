"""Tails and Rademacher bounds: beside exact probabilities and complexities, which they must not fall below."""

import math

import numpy as np
import pytest
from scipy import stats

from qstr_jax.theory import bounds, rates


@pytest.mark.parametrize('token_dim', [1, 4, 10])
def test_lemma12_is_above_the_exact_probability(token_dim):
    moment = bounds.gaussian_moment(token_dim)
    orders = np.linspace(1, 60, 200)
    log_moments = [(math.lgamma((token_dim + r) / 2) - math.lgamma(token_dim / 2)) * 2 / r for r in orders]
    least = 2 * np.exp(log_moments) / (token_dim * orders)  # C_x that each moment asks for
    assert least.max() == pytest.approx(moment)
    for num_samples, seq_len in ((1, 2), (20, 8), (1000, 64)):
        radius = rates.token_radius(num_samples, seq_len, token_dim, moment)
        for share in (0.6, 0.8, 1.0, 1.2):
            exact = -np.expm1(num_samples * seq_len * stats.chi2.logcdf((share * radius) ** 2, token_dim))
            assert exact <= bounds.largest_token(share * radius, num_samples, seq_len, token_dim, moment)
        at_radius = bounds.largest_token(radius, num_samples, seq_len, token_dim, moment)
        assert at_radius == pytest.approx((num_samples * seq_len) ** -0.5)


def linear_class(num_samples):
    """The class ⟨w, x⟩, ‖w‖ ≤ 1, on points of the unit sphere of R³: its log C, and its complexity by Monte Carlo."""
    rng = np.random.default_rng(0)
    x_BxD = rng.normal(size=(num_samples, 3))
    x_BxD /= np.linalg.norm(x_BxD, axis=1, keepdims=True)
    norms = [np.linalg.norm(rng.choice([-1.0, 1.0], num_samples) @ x_BxD) for _ in range(2000)]
    return lambda distance: bounds.log_ball(3, 1.0, distance), np.mean(norms) / num_samples


@pytest.mark.parametrize('bound', [bounds.one_step, bounds.chaining])
def test_complexities_are_below_their_bounds_which_fall_like_the_root_of_n(bound):
    found = {}
    for num_samples in (100, 10_000):
        log_cover, complexity = linear_class(num_samples)
        found[num_samples] = bound(log_cover, num_samples, 1.0)
        assert complexity <= found[num_samples]
        assert bound(lambda eps, cover=log_cover: cover(eps) / 1e4, num_samples, 1.0) < complexity
    assert found[10_000] < found[100] / 6


def test_truncated_losses_are_covered_where_predictions_are():
    assert bounds.truncated(lambda eps: 1 / eps, 4.0)(0.8) == pytest.approx(1 / 0.2)


def test_risks_are_below_the_bound_of_a_finite_class():
    """Two hundred coins: the one that fits n tosses best errs, but not more than the corollary says."""
    rng, num_samples = np.random.default_rng(1), 200
    losses_KxB = rng.integers(2, size=(200, num_samples)).astype(float)
    complexity = math.sqrt(2 * math.log(200) / num_samples)
    best = losses_KxB.mean(axis=1).min()
    assert best < 0.45
    assert 0.5 <= bounds.risk(best, complexity, num_samples=num_samples, bound=1.0, failure=0.01)
    assert bounds.risk(best, 0.0, num_samples=10**8, bound=1.0, failure=0.01) == pytest.approx(best, abs=1e-3)
