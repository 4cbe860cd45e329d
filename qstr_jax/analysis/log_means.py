"""Mean log samples at each value of a setting, from lanes that may be censored."""

import dataclasses

import numpy as np
import scipy

from qstr_jax.analysis import erms
from qstr_jax.analysis.measured import Measured

# Where the samples of a lane lie: at the number itself, above it, or below it.
SIDES = {'reached': 0, 'censored': 1, 'outraced': 1, 'censored_below': -1, erms.AT_MOST: -1}
_MOST_STEPS = 1000
_TOLERANCE = 1e-8
# Where all lanes have the same number, nothing says how far a bound is from it.
_LEAST_NOISE = 1e-4


@dataclasses.dataclass(frozen=True, kw_only=True)
class LogMeans:
    """Mean log samples by value of a setting."""

    x: np.ndarray  # the values of the setting, increasing
    mean: np.ndarray  # the mean log samples, or a bound of it
    variance: np.ndarray  # of the mean, by the noise between lanes; 0 where no value has two lanes
    side: np.ndarray  # 0 where the mean is measured, 1 where it lies above `mean`, −1 where it lies below
    noise: float  # variance of a lane about its mean
    degrees: int  # degrees of freedom of the noise

    @property
    def is_measured(self) -> np.ndarray:
        """Where the mean is not a bound."""
        return self.side == 0

    def only(self, keep: np.ndarray) -> 'LogMeans':
        """Some of the values."""
        parts = {name: getattr(self, name)[keep] for name in ('x', 'mean', 'variance', 'side')}
        return LogMeans(**parts, noise=self.noise, degrees=self.degrees)


def log_means(lanes: Measured) -> LogMeans:
    """Mean log samples of the lanes at each value of a setting.

    Lanes are normal about the mean with one variance for all values. A mean with censored lanes is the most likely one
    (Tobit), and where no lane was measured it is a bound.
    """
    values, group = np.unique(lanes.x, return_inverse=True)
    logs, side = np.log(lanes.samples), sides(lanes)
    order = np.lexsort((side, logs, group))  # so that rounding does not depend on the order of the rows
    return from_logs(values, group[order], logs[order], side[order])


def sides(lanes: Measured) -> np.ndarray:
    """On which side of the number the samples of each lane lie, by `SIDES`; no lane has diverged."""
    return np.array([SIDES[outcome] for outcome in lanes.outcome.tolist()], int)


def from_logs(values: np.ndarray, group: np.ndarray, logs: np.ndarray, side: np.ndarray) -> LogMeans:
    """As `log_means`, from arrays."""
    count = len(values)
    measured, lanes = (np.bincount(group, weights=part, minlength=count) for part in (side == 0, side == side))
    mean = np.bincount(group, weights=logs, minlength=count) / lanes
    degrees = int(np.maximum(measured - 1, 0).sum())
    # Where no noise is known, a value that has measured lanes and bounds is a bound as well.
    # Bounds on both sides have a most likely mean between them; where no noise is known such a value is left out.
    is_between = np.logical_and(*(np.bincount(group, weights=side == one, minlength=count) > 0 for one in (1, -1)))
    is_known = (measured > 0) | is_between if degrees else measured == lanes
    of_known = is_known[group]
    variance, noise = np.zeros(count), 0.0
    if degrees:
        known = np.cumsum(is_known) - 1
        found = _most_likely(known[group[of_known]], logs[of_known], side[of_known], mean[is_known])
        mean[is_known], information, noise = found
        lanes[is_known] = information
        variance = noise / lanes
    bound = np.sign(np.bincount(group, weights=side, minlength=count)).astype(int)
    means = LogMeans(
        x=values, mean=mean, variance=variance, side=np.where(is_known, 0, bound), noise=noise, degrees=degrees
    )
    return means.only(is_known | ~is_between)


def _most_likely(
    group: np.ndarray, logs: np.ndarray, side: np.ndarray, mean: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """By expectation-maximisation: the means, how many measured lanes each is worth, and a lane's variance."""
    counts = np.bincount(group)
    spread = np.zeros_like(logs)
    expected, is_censored = logs.copy(), side != 0
    scale = max(_scale(group, logs[~is_censored], ~is_censored), _LEAST_NOISE if is_censored.any() else 0)
    for _ in range(_MOST_STEPS if is_censored.any() else 0):
        before = mean
        hazard, shrink = truncated(side * (logs - mean[group]) / scale)
        expected = np.where(is_censored, mean[group] + side * scale * hazard, logs)
        spread = np.where(is_censored, scale**2 * (1 - shrink), 0)
        mean = np.bincount(group, weights=expected) / counts
        scale = np.sqrt(((expected - mean[group]) ** 2 + spread).sum() / (len(logs) - len(counts)))
        if np.abs(mean - before).max() < _TOLERANCE * scale:
            break
    _, shrink = truncated(side * (logs - mean[group]) / scale if scale else np.zeros_like(logs))
    information = np.bincount(group, weights=np.where(is_censored, shrink, 1))
    return mean, information, float(scale**2)


def _scale(group: np.ndarray, logs: np.ndarray, keep: np.ndarray) -> float:
    """Standard deviation of the measured lanes about the means of their values."""
    group = np.unique(group[keep], return_inverse=True)[1]
    counts = np.bincount(group)
    residual = logs - (np.bincount(group, weights=logs) / counts)[group]
    return float(np.sqrt(residual @ residual / max(len(logs) - len(counts), 1)))


def truncated(bound: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For z > bound of a standard normal z: its mean, and 1 − its variance."""
    # φ/(1 − Φ) in a form that does not overflow.
    hazard = np.sqrt(2 / np.pi) / scipy.special.erfcx(bound / np.sqrt(2))
    return hazard, hazard * (hazard - bound)
