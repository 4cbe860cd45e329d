"""N^a against (log N)^p: which law the lengths follow, by a criterion that counts lengths and not lanes.

Each law is a straight line, in log N or in log log N, with the same number of parameters, so the difference of their
AICc is that of −2 log likelihood. In the likelihood each length is one observation, its mean log samples; its variance
is the lane noise plus the fitted misfit τ² of the law. More lanes do not make more observations.
"""

import dataclasses

import numpy as np

from qstr_jax.analysis import line_fit
from qstr_jax.analysis.log_means import LogMeans

POWER, POWER_OF_LOG, UNDECIDED = 'N^a', '(log N)^p', 'undecided'
# With one length left out, three others are needed, since two points always lie on a line.
_MIN_LENGTHS = 4
# A difference of −2 log likelihood from which one law counts as better: then it is e² times as likely.
_DIFFERENCE = 4.0
# Values of τ² that are tried, as shares of the variance of the means.
_TRIED = np.concatenate([[0.0], np.logspace(-8, 0.5, 120)])
_ROUNDING = 1e-9


@dataclasses.dataclass(frozen=True, kw_only=True)
class Law:
    """Which law the lengths follow."""

    name: str  # `POWER`, `POWER_OF_LOG` or `UNDECIDED`
    difference: float  # −2 log likelihood of (log N)^p minus that of N^a; positive where N^a is the better one
    # The length that decides the result: without it the other law would be better; None if there is none.
    deciding: int | None
    # The length without which both laws fit alike, though no other would be better; None if there is none.
    needed: int | None
    log_power: line_fit.Slope  # p, with its interval


def law(means: LogMeans) -> Law | None:
    """Which law the lengths follow: undecided if both fit alike, or if without one length the other would be better."""
    known = means.only(means.is_measured)
    if len(known.x) < _MIN_LENGTHS or means.x.min() < 2:
        return None
    difference = _difference(known)
    without = [_difference(known.only(known.x != length)) for length in known.x]
    sign = np.sign(difference)
    name = {1: POWER, -1: POWER_OF_LOG}.get(int(sign), UNDECIDED) if abs(difference) > _DIFFERENCE else UNDECIDED
    flips = [int(length) for length, other in zip(known.x, without, strict=True) if sign * other <= 0]
    deciding = flips[0] if flips and name != UNDECIDED else None
    name = name if deciding is None else UNDECIDED
    least = int(np.argmin(sign * np.array(without)))
    needed = int(known.x[least]) if name != UNDECIDED and sign * without[least] <= _DIFFERENCE else None
    log_power = line_fit.slope(np.log(np.log(means.x)), means)
    return Law(name=name, difference=difference, deciding=deciding, needed=needed, log_power=log_power)


def _difference(means: LogMeans) -> float:
    log_n = np.log(means.x)
    return _deviance(np.log(log_n), means) - _deviance(log_n, means)


def _deviance(x: np.ndarray, means: LogMeans) -> float:
    """−2 log likelihood of a line in x, without constants, at the best τ²."""
    centre = means.mean - means.mean.mean()
    scale = float(centre @ centre) / len(centre) + _ROUNDING
    variance_TxL = np.maximum(scale * _TRIED[:, None] + means.variance, _ROUNDING * scale)
    weight_TxL = 1 / variance_TxL
    total = weight_TxL.sum(axis=1, keepdims=True)
    x_TxL = x - (weight_TxL * x).sum(axis=1, keepdims=True) / total
    y_TxL = centre - (weight_TxL * centre).sum(axis=1, keepdims=True) / total
    slope_T = (weight_TxL * x_TxL * y_TxL).sum(axis=1) / (weight_TxL * x_TxL**2).sum(axis=1)
    residual_TxL = y_TxL - slope_T[:, None] * x_TxL
    return float((np.log(variance_TxL) + weight_TxL * residual_TxL**2).sum(axis=1).min())
