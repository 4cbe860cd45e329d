"""From covering numbers to risks: Lemmas 18 and 32, Corollaries 19 and 33, with all constants.

The paper has them up to constants. A class of losses min((y − f)², τ) is covered at ε wherever the predictions are
covered at ε/(2√τ) (`truncated`), and log C is a function such as `covering.log_cover_transformer`.
"""

import math
from collections.abc import Callable

import numpy as np

from qstr_jax.theory import domain

# Levels at which integrals and infima are evaluated; both bounds stay valid for any of them.
LEVELS = 400

LogCover = Callable[[float], float]


def truncated(log_cover: LogCover, level: float) -> LogCover:
    """log C of the losses min((y − f)², τ): they are 2√τ-Lipschitz in the prediction."""
    domain.positive(level=level)
    return lambda distance: log_cover(distance / (2 * math.sqrt(level)))


def one_step(log_cover: LogCover, num_samples: int, bound: float) -> float:
    """Lemma 32: the empirical Rademacher complexity is ≤ inf_ε ε + B √(2 log C(ε)/n), by Massart's lemma."""
    domain.positive(num_samples=num_samples, bound=bound)
    distances = np.geomspace(1e-6, 1, LEVELS) * bound
    return min(float(eps) + bound * math.sqrt(2 * max(0.0, log_cover(float(eps))) / num_samples) for eps in distances)


def chaining(log_cover: LogCover, num_samples: int, bound: float) -> float:
    """Lemma 18: the empirical Rademacher complexity is ≤ inf_α 4α + 12 ∫_α^B √(log C(ε)/n) dε (Dudley).

    log C falls with ε, so the sum over left ends of intervals is at least the integral.
    """
    domain.positive(num_samples=num_samples, bound=bound)
    ends = np.geomspace(1e-6, 1, LEVELS + 1) * bound
    heights = np.array([math.sqrt(max(0.0, log_cover(float(eps))) / num_samples) for eps in ends[:-1]])
    integrals = np.cumsum((heights * np.diff(ends))[::-1])[::-1]
    return float(np.min(4 * ends[:-1] + 12 * integrals))


def risk(train_risk: float, complexity: float, *, num_samples: int, bound: float, failure: float) -> float:
    """Corollaries 19 and 33: with probability ≥ 1 − δ all losses of the class have E ℓ ≤ R̂ + 2ℛ̂ + 3B √(log(2/δ)/2n)."""
    domain.positive(num_samples=num_samples, bound=bound, failure=failure)
    return train_risk + 2 * complexity + 3 * bound * math.sqrt(math.log(2 / failure) / (2 * num_samples))
