"""Whether a lane that used up its budget is a failure or a bound.

Some lanes never learn, however long they train, so a used-up budget is not a measured time. It is a lower bound on the
samples of learning only where learners at the same N may need that many: at least one in twenty of them would need more
than the budget, by Student's t about the log samples of those that learn there, or about the line through all N where
fewer than two learn. Then the lane is a bound in the likelihood. It is also a bound at an N outside those at which
lanes learn, since a line cannot show beyond its end that lanes off it fail, and where lanes learn at fewer than three
N. Everywhere else it is a failure: it counts in the share that learns, but in no mean and no exponent.
"""

import numpy as np
import scipy

from qstr_jax.analysis import line_fit
from qstr_jax.analysis.log_means import LogMeans, from_logs, sides
from qstr_jax.analysis.measured import Measured

# A lane that used up its budget is a bound if at least this share of learners needs more, and a failure otherwise.
LEAST_SHARE = 0.05
# From fewer measured N nothing can be predicted at another N.
_MIN_POINTS = 3
# Fewer learners say nothing about others at their N.
_MIN_LEARNERS = 2


def is_failure(lanes: Measured) -> np.ndarray:
    """Which lanes used up a budget that no learner comes near; no lane may have diverged."""
    is_spent, side, logs = lanes.has('censored'), sides(lanes), np.log(lanes.samples)
    order = np.lexsort((side, logs, lanes.x))  # Rounding must not depend on the order of the rows.
    found = np.zeros(len(lanes), bool)
    found[order] = failures(lanes.x[order], logs[order], side[order], is_spent[order])
    return found


def failures(x: np.ndarray, logs: np.ndarray, side: np.ndarray, is_spent: np.ndarray) -> np.ndarray:
    """As `is_failure`, from arrays."""
    found = np.zeros(len(x), bool)
    if not is_spent.any() or is_spent.all():
        return found
    values, group = np.unique(x[~is_spent], return_inverse=True)
    learners = from_logs(values, group, logs[~is_spent], side[~is_spent])
    if learners.is_measured.sum() < _MIN_POINTS:
        return found
    counts = np.bincount(group, weights=side[~is_spent] == 0)
    pairs = set(zip(x[is_spent], logs[is_spent], strict=True))
    shares = {pair: _share_above(learners, counts, *pair) for pair in pairs}
    found[is_spent] = [shares[pair] < LEAST_SHARE for pair in zip(x[is_spent], logs[is_spent], strict=True)]
    return found


def _share_above(learners: LogMeans, counts: np.ndarray, at: float, log_budget: float) -> float:
    """The share of learners at a value that need more than a budget; `counts` is how many there are at each value."""
    known = learners.x[learners.is_measured]
    if not known.min() <= at <= known.max():
        return 1.0
    here = np.flatnonzero((learners.x == at) & (counts >= _MIN_LEARNERS))
    if len(here) and learners.degrees:
        centre, variance = learners.mean[here[0]], learners.variance[here[0]] + learners.noise
        degrees = learners.degrees
    else:
        centre, variance, degrees = line_fit.predict(np.log(learners.x), learners, float(np.log(at)))
    # Where all learners have the same number, every other number is infinitely far from it.
    z = (log_budget - centre) / max(np.sqrt(variance), 1e-9)
    return float(scipy.special.stdtr(degrees, -z))
