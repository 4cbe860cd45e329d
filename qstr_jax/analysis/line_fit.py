"""A straight line through log means that are noisy and do not lie on a line: its slope, with an interval.

    mean_j = c + a x_j + b_j + e_j,   b_j ~ N(0, τ²),   e_j ~ N(0, v_j)

with b_j the misfit of the line and v_j the known variance by lane noise. The interval of a is that of random-effects
meta-regression (Knapp and Hartung, Stat. Med. 22, 2003): weights 1/(τ² + v_j), a common factor κ of all variances that
the residuals estimate, and Student's t with L − 2 degrees of freedom for L means. It is exact if all v_j are equal,
whatever τ is. Means that are bounds enter the likelihood as bounds; then the interval is where the profile likelihood
ratio is at most L log(1 + t²/(L − 2)), which without bounds is the same interval. Means may lie on a line by accident,
so it is never narrower than the interval by lane noise alone: ±t √(variance of a by the v_j), where Student's t has the
degrees of freedom of the noise. Three means have one residual, which says next to nothing about the misfit. Their slope
therefore has the interval by lane noise, and says so; bounds enter its likelihood, in which variances are known. It has
no interval where no noise is known, or where the noise does not explain how far the three means are from a line
(F test, 5 %), or how far on the wrong side of it a bound lies.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy

from qstr_jax.analysis.log_means import LogMeans, truncated

BY_MISFIT, BY_NOISE = 'misfit and lane noise', 'lane noise alone'
_MOST_STEPS = 100
# With fewer means the interval is by lane noise alone.
_MIN_FOR_MISFIT = 4
# Level of the test whether three means lie on a line.
_LEVEL = 0.05
# Means with smaller residuals lie on a line, and bounds add nothing.
_EXACT = 1e-6
# Residuals of this size are rounding.
_ROUNDING = 1e-10


class Slope(NamedTuple):
    """A slope with its 95% interval."""

    value: float
    low: float  # lower end; NaN if there is no interval
    high: float
    by: str  # what the interval holds, `BY_MISFIT` or `BY_NOISE`; '' if there is none


def slope(x: np.ndarray, means: LogMeans) -> Slope:
    """The slope a with its interval."""
    known = means.is_measured
    design = np.stack([np.ones_like(x), x], axis=1)
    weight = 1 / np.maximum(
        _misfit(design[known], means.mean[known], means.variance[known]) + means.variance, _ROUNDING**2
    )
    theta, factor, inverse = _weighted(design[known], means.mean[known], weight[known])
    if known.sum() < _MIN_FOR_MISFIT:
        return _of_three(design, means, float(theta[1]))
    degrees = int(known.sum()) - 2
    quantile = float(scipy.special.stdtrit(degrees, 0.975))
    half = quantile * float(np.sqrt(factor * inverse[1, 1]))
    if known.all() or factor / weight[known].mean() < _EXACT**2:
        value, low, high = float(theta[1]), theta[1] - half, theta[1] + half
    else:
        cutoff = (degrees + 2) * np.log1p(quantile**2 / degrees)
        value, low, high = _by_likelihood(design, means.mean, weight, means.side, cutoff, half)
    noise = _noise(design, means.variance, means.degrees)
    return Slope(value, float(min(low, value - noise)), float(max(high, value + noise)), BY_MISFIT)


def _of_three(design: np.ndarray, means: LogMeans, value: float) -> Slope:
    """The slope of three measured means, `value` without bounds, with its interval by lane noise."""
    known = means.is_measured
    noise = _noise(design[known], means.variance[known], means.degrees)
    is_bent = _is_bent(design[known], means.mean[known], means.variance[known], means.degrees)
    if not means.degrees or is_bent or _is_contradicted(design, means):
        return Slope(value, np.nan, np.nan, '')
    if known.all() or not noise:
        return Slope(value, value - noise, value + noise, BY_NOISE)
    cutoff = float(scipy.special.stdtrit(means.degrees, 0.975)) ** 2
    found = _by_likelihood(design, means.mean, 1 / means.variance, means.side, cutoff, noise, has_scale=False)
    return Slope(*found, BY_NOISE)


def _is_bent(design: np.ndarray, mean: np.ndarray, variance: np.ndarray, degrees: int) -> bool:
    """Whether three means are farther from a line than their variances explain; without noise, whether off it."""
    _, factor, _ = _weighted(design, mean, 1 / np.maximum(variance, _ROUNDING**2))
    return bool(scipy.special.fdtrc(1, degrees, factor) < _LEVEL)


def _is_contradicted(design: np.ndarray, means: LogMeans) -> bool:
    """Whether a bound lies on the wrong side of the line through the measured means, by more than noise explains."""
    known = means.is_measured
    weight = 1 / np.maximum(means.variance[known], _ROUNDING**2)
    theta, _, inverse = _weighted(design[known], means.mean[known], weight)
    there = design[~known]
    error = np.sqrt(np.einsum('bi,ij,bj->b', there, inverse, there) + means.noise)
    beyond = means.side[~known] * (means.mean[~known] - there @ theta)
    return bool((beyond > scipy.special.stdtrit(means.degrees, 1 - _LEVEL) * error).any())


def predict(x: np.ndarray, means: LogMeans, at: float) -> tuple[float, float, int]:
    """Mean, variance and degrees of freedom of a lane's log samples at a place, by the line through the means."""
    known = means.is_measured
    design = np.stack([np.ones_like(x), x], axis=1)[known]
    misfit = _misfit(design, means.mean[known], means.variance[known])
    weight = 1 / np.maximum(misfit + means.variance[known], _ROUNDING**2)
    theta, factor, inverse = _weighted(design, means.mean[known], weight)
    there = np.array([1.0, at])
    variance = max(factor, 1.0) * float(there @ inverse @ there) + misfit + means.noise
    return float(there @ theta), variance, int(known.sum()) - 2


def _by_likelihood(
    design: np.ndarray,
    mean: np.ndarray,
    weight: np.ndarray,
    side: np.ndarray,
    cutoff: float,
    half: float,
    *,
    has_scale: bool = True,
) -> tuple[float, float, float]:
    """The slope with the interval of its profile likelihood; `half` is a first guess of half the interval's width."""
    roots, x = np.sqrt(weight), design[:, 1]
    most, theta = _likelihood(design * roots[:, None], mean * roots, side, has_scale)
    best = float(theta[1] / theta[2])

    def above(slope: float) -> float:
        profile, _ = _likelihood(design[:, :1] * roots[:, None], (mean - slope * x) * roots, side, has_scale)
        return 2 * (most - profile) - cutoff

    step = max(half, _ROUNDING)
    return best, _crossing(above, best, -step), _crossing(above, best, step)


def _noise(design: np.ndarray, variance: np.ndarray, degrees: int) -> float:
    """Half of the slope's interval by lane noise alone; 0 where there is no noise, or none is known."""
    if not (variance > 0).all():
        return 0.0
    error = float(np.sqrt(np.linalg.inv(design.T @ (design / variance[:, None]))[1, 1]))
    return float(scipy.special.stdtrit(degrees, 0.975)) * error


def _weighted(design: np.ndarray, mean: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, float, np.ndarray]:
    """Weighted least squares: (c, a), the factor κ of all variances, and the covariance of (c, a) for κ = 1."""
    inverse = np.linalg.inv(design.T @ (weight[:, None] * design))
    theta = inverse @ (design.T @ (weight * mean))
    residual = mean - design @ theta
    return theta, float(weight @ residual**2) / (len(mean) - 2), inverse


def _misfit(design: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> float:
    """τ² at which the weighted residuals are as large as they should be (Paule and Mandel); 0 if they are smaller."""

    def excess(misfit: float) -> float:
        weight = 1 / np.maximum(misfit + variance, _ROUNDING**2)
        return _weighted(design, mean, weight)[1] - 1

    largest = float(np.var(mean)) + _ROUNDING
    if excess(0.0) <= 0 or excess(largest * len(mean)) >= 0:
        return 0.0
    return float(scipy.optimize.brentq(excess, 0.0, largest * len(mean), rtol=1e-12))


def _likelihood(design: np.ndarray, mean: np.ndarray, side: np.ndarray, has_scale: bool) -> tuple[float, np.ndarray]:
    """Greatest log likelihood of a censored line whose variances are all κ, and the (c, a, 1) / √κ that attains it.

    In these parameters it is concave (Olsen, Econometrica 46, 1978), so Newton's method finds it. Without a scale κ is
    1.
    """
    full = np.column_stack([design, -mean])  # residual / √κ = −full @ theta
    known = side == 0
    theta = np.zeros(full.shape[1])
    start = np.linalg.lstsq(design[known], mean[known], rcond=None)[0]
    spread = np.sqrt(np.mean((mean[known] - design[known] @ start) ** 2)) if has_scale else 1.0
    free = len(theta) if has_scale else -1
    theta[:-1], theta[-1] = start / spread, 1 / spread
    value = _value(full, known, side, theta)
    for _ in range(_MOST_STEPS):
        gradient, hessian = _derivatives(full, known, side, theta)
        step = np.zeros_like(theta)
        step[:free] = np.linalg.solve(hessian[:free, :free], gradient[:free])
        length = 1.0
        # The gain to come is half of this; where it is tiny, rounding hides it from the values, so the step is taken.
        is_last = gradient @ step < 1e-12
        while (new := _value(full, known, side, theta + length * step)) < value and length > 1e-9 and not is_last:
            length /= 2
        theta, value = theta + length * step, new
        if is_last:
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
    hazard, shrink = truncated(-z)
    first = np.where(known, -(full @ theta), side * hazard)
    second = np.where(known, 1.0, shrink)
    gradient, hessian = full.T @ first, full.T @ (second[:, None] * full)
    gradient[-1] += known.sum() / theta[-1]
    hessian[-1, -1] += known.sum() / theta[-1] ** 2
    return gradient, hessian


def _crossing(above: Callable[[float], float], best: float, step: float) -> float:
    """Where a function that is negative at `best` becomes positive in the direction of `step`."""
    far = step
    while above(best + far) < 0:
        far *= 2
    return float(scipy.optimize.brentq(above, best, best + far, xtol=1e-12 * abs(step)))
