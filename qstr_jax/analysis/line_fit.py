"""A straight line through log means that are noisy and do not lie on a line: its slope, with an interval.

    mean_j = c + a x_j + b_j + e_j,   b_j ~ N(0, τ²),   e_j ~ N(0, v_j)

with b_j the misfit of the line and v_j the known variance by lane noise. The interval of a is that of random-effects
meta-regression (Knapp and Hartung, Stat. Med. 22, 2003): weights 1/(τ² + v_j), a common factor κ of all variances that
the residuals estimate, and Student's t with L − 2 degrees of freedom for L means. It is exact if all v_j are equal,
whatever τ is. Means that are bounds enter the likelihood as such; then the interval is where the profile likelihood
ratio is at most L log(1 + t²/(L − 2)), which without bounds is the same interval. Three or four means may lie on a line
by accident, so half of an interval is never less than a standard error by lane noise alone.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy

_MOST_STEPS = 100
# Half of an interval is at least so many standard errors by lane noise alone.
_LEAST = 1.0
# With smaller residuals means lie on a line, and bounds tell nothing more.
_EXACT = 1e-6
# Residuals of this size are rounding.
_ROUNDING = 1e-10


class Slope(NamedTuple):
    """A slope with its 95% interval.

    Attributes:
        value: the slope.
        low: lower end.
        high: upper end.
    """

    value: float
    low: float
    high: float


def slope(x: np.ndarray, mean: np.ndarray, variance: np.ndarray, side: np.ndarray) -> Slope:
    """The slope a with its interval.

    Args:
        x: one number per mean.
        mean: the means, or their bounds.
        variance: v_j.
        side: 0 where a mean is measured, at least three times; 1 where it lies above, −1 where it lies below.
    """
    known = side == 0
    design = np.stack([np.ones_like(x), x], axis=1)
    weight = 1 / np.maximum(_misfit(design[known], mean[known], variance[known]) + variance, _ROUNDING**2)
    value, factor, error = _weighted(design[known], mean[known], weight[known])
    degrees = int(known.sum()) - 2
    quantile = float(scipy.special.stdtrit(degrees, 0.975))
    least = _LEAST * _error(design, variance)
    if known.all() or factor / weight[known].mean() < _EXACT**2:
        half = max(quantile * error, least)
        return Slope(value, value - half, value + half)
    value, low, high = _by_likelihood(design, mean, weight, side, quantile, error)
    return Slope(value, min(low, value - least), max(high, value + least))


def _by_likelihood(
    design: np.ndarray, mean: np.ndarray, weight: np.ndarray, side: np.ndarray, quantile: float, error: float
) -> Slope:
    """The slope with the interval of its profile likelihood; `error` is a first guess of its standard error."""
    roots, x = np.sqrt(weight), design[:, 1]
    degrees = int((side == 0).sum()) - 2
    cutoff = (degrees + 2) * np.log1p(quantile**2 / degrees)
    most, theta = _likelihood(design * roots[:, None], mean * roots, side)
    best = float(theta[1] / theta[2])

    def above(slope: float) -> float:
        profile, _ = _likelihood(design[:, :1] * roots[:, None], (mean - slope * x) * roots, side)
        return 2 * (most - profile) - cutoff

    step = max(quantile * error, _ROUNDING)
    return Slope(best, *(_crossing(above, best, sign * step) for sign in (-1, 1)))


def _error(design: np.ndarray, variance: np.ndarray) -> float:
    """Standard error of the slope by lane noise alone; 0 where that is not known."""
    if not (variance > 0).all():
        return 0.0
    return float(np.sqrt(np.linalg.inv(design.T @ (design / variance[:, None]))[1, 1]))


def _weighted(design: np.ndarray, mean: np.ndarray, weight: np.ndarray) -> tuple[float, float, float]:
    """Weighted least squares: the slope, the factor κ of all variances, and the slope's standard error."""
    inverse = np.linalg.inv(design.T @ (weight[:, None] * design))
    theta = inverse @ (design.T @ (weight * mean))
    residual = mean - design @ theta
    factor = float(weight @ residual**2) / (len(mean) - 2)
    return float(theta[1]), factor, float(np.sqrt(factor * inverse[1, 1]))


def _misfit(design: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> float:
    """τ² at which the weighted residuals are as large as they should be (Paule and Mandel); 0 if they are smaller."""

    def excess(misfit: float) -> float:
        weight = 1 / np.maximum(misfit + variance, _ROUNDING**2)
        return _weighted(design, mean, weight)[1] - 1

    largest = float(np.var(mean)) + _ROUNDING
    if excess(0.0) <= 0 or excess(largest * len(mean)) >= 0:
        return 0.0
    return float(scipy.optimize.brentq(excess, 0.0, largest * len(mean), rtol=1e-6))


def _likelihood(design: np.ndarray, mean: np.ndarray, side: np.ndarray) -> tuple[float, np.ndarray]:
    """Greatest log likelihood of a censored line whose variances are all κ, and (c, a, 1) / √κ, where that is.

    In these parameters it is concave (Olsen, Econometrica 46, 1978), so Newton's method finds it.
    """
    full = np.column_stack([design, -mean])  # residual / √κ = −full @ theta
    known = side == 0
    theta = np.zeros(full.shape[1])
    start = np.linalg.lstsq(design[known], mean[known], rcond=None)[0]
    spread = np.sqrt(np.mean((mean[known] - design[known] @ start) ** 2))
    theta[:-1], theta[-1] = start / spread, 1 / spread
    value = _value(full, known, side, theta)
    for _ in range(_MOST_STEPS):
        gradient, hessian = _derivatives(full, known, side, theta)
        step = np.linalg.solve(hessian, gradient)
        length = 1.0
        while (new := _value(full, known, side, theta + length * step)) < value and length > 1e-9:
            length /= 2
        theta, gain, value = theta + length * step, new - value, new
        if abs(gain) < 1e-9:
            break
    return value, theta


def _value(full: np.ndarray, known: np.ndarray, side: np.ndarray, theta: np.ndarray) -> float:
    if theta[-1] <= 0:
        return -np.inf
    z = full @ theta
    log_tails = scipy.special.log_ndtr((side * z)[~known])
    return float(known.sum() * np.log(theta[-1]) - z[known] @ z[known] / 2 + log_tails.sum())


def _derivatives(
    full: np.ndarray, known: np.ndarray, side: np.ndarray, theta: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Gradient of the log likelihood, and minus its second derivative."""
    z = side * (full @ theta)
    # φ/Φ in a form that does not overflow.
    hazard = np.sqrt(2 / np.pi) / scipy.special.erfcx(-z / np.sqrt(2))
    first = np.where(known, -(full @ theta), side * hazard)
    second = np.where(known, 1.0, hazard * (hazard + z))
    gradient, hessian = full.T @ first, full.T @ (second[:, None] * full)
    gradient[-1] += known.sum() / theta[-1]
    hessian[-1, -1] += known.sum() / theta[-1] ** 2
    return gradient, hessian


def _crossing(above: Callable[[float], float], best: float, step: float) -> float:
    """Where a function that is negative at `best` becomes positive in the direction of `step`."""
    far = step
    while above(best + far) < 0:
        far *= 2
    return float(scipy.optimize.brentq(above, best, best + far, xtol=1e-6 * abs(step)))
