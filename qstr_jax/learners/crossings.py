"""When a threshold is crossed, and the crossings of several thresholds in one lane of online training.

A threshold is crossed at the first check whose test loss, on all test prompts, is strictly below it. The crossings are
read off the lane's curve; the end of a lane is judged in the same way. Up to a crossing the lane equals that of a run
with only this threshold, since screening follows the largest threshold that is not yet crossed.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def is_below(loss: Any, threshold: Any) -> Any:
    """Whether a loss is good enough: strictly below the threshold."""
    return loss < threshold


def checked(thresholds: tuple[float, ...], last: float) -> tuple[float, ...]:
    """The thresholds from the largest to the smallest."""
    if not all(value > last for value in thresholds):
        raise ValueError(f'thresholds={thresholds}: must be above threshold={last}, where a lane is over')
    if len(set(thresholds)) < len(thresholds):
        raise ValueError(f'thresholds={thresholds}: a value is given twice')
    return tuple(sorted(thresholds, reverse=True))


def pending(curves: Any, learner: Any) -> jax.Array:
    """The largest threshold that one lane has not crossed, −∞ if there is none."""
    if not learner.thresholds:
        return jnp.float32(learner.threshold)
    values = jnp.array([*learner.thresholds, learner.threshold])
    least = jnp.min(jnp.where(curves.test_se_C == 0, curves.test_C, jnp.inf))
    return jnp.max(jnp.where(is_below(least, values), -jnp.inf, values))


def text(curves: Any, learner: Any) -> str:
    """The samples at each crossing, '0.7:12800 0.5:25600 0.1:'; nothing where a threshold was not crossed."""
    parts = []
    # As for the end of a lane, the loss is of all test prompts, and the training loss is finite.
    is_judged_C = (curves.test_se_C == 0) & np.isfinite(curves.train_C)
    for threshold in (*learner.thresholds, learner.threshold):
        is_below_C = is_judged_C & is_below(curves.test_C, np.float32(threshold))
        samples = (int(np.argmax(is_below_C)) + 1) * learner.samples_per_check if is_below_C.any() else ''
        parts.append(f'{threshold!r}:{samples}')
    return ' '.join(parts)
