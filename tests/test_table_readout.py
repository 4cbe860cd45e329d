"""FFNs with a table as read-out: stationary, in the span of their prompts, and at their floor where it is reached."""

import numpy as np
import pytest

from qstr_jax.theory import floors, table_readout


def fitted(num_samples, indices, **settings):
    """A fit at N = 3, d = 4 of prompts that ask for some indices, with its prompts and u."""
    rng = np.random.default_rng(0)
    u_D = rng.normal(size=4)
    u_D /= np.linalg.norm(u_D)
    x_BxV = rng.normal(size=(num_samples, 12))
    t_BxR = np.tile(indices, (num_samples, 1))
    how = {'width': 6, 'weight_decay': 1e-3, 'max_steps': 4000, 'seed': 1, **settings}
    return table_readout.fit(x_BxV, t_BxR, u_D, **how), x_BxV, u_D


def test_a_fit_is_stationary_and_ends_in_the_span_of_its_prompts():
    fit, x_BxV, _ = fitted(6, [0, 1, 2])
    assert fit.residual < 1e-3
    assert fit.off_span(x_BxV) < 1e-4
    early, _, _ = fitted(6, [0, 1, 2], max_steps=1)
    assert early.residual > 0.1
    assert early.off_span(x_BxV) > 0.1


def test_prompts_that_ask_for_every_index_lead_to_the_floor_and_one_index_alone_does_not():
    fit, x_BxV, u_D = fitted(6, [0, 1, 2], weight_decay=1e-5)
    floor = float(floors.theorem6_given(x_BxV.reshape(6, 3, 4), u_D))
    assert 0.2 < floor == pytest.approx(fit.loss(u_D), abs=0.01)
    assert fitted(6, [0])[0].loss(u_D) > floor + 0.2


def test_the_population_loss_is_that_of_fresh_prompts():
    fit, _, u_D = fitted(6, [0, 1])
    rng = np.random.default_rng(2)
    x_BxV, t_B = rng.normal(size=(200_000, 12)), rng.integers(3, size=200_000)
    prediction_B = np.sum((x_BxV @ fit.w_MxV.T) * fit.a_NxM[t_B], axis=1)
    label_B = x_BxV.reshape(-1, 3, 4)[np.arange(len(t_B)), t_B] @ u_D
    assert np.mean((prediction_B - label_B) ** 2) == pytest.approx(fit.loss(u_D), rel=0.02)
