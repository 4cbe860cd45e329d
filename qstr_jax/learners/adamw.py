"""AdamW on shuffled minibatches of n prompts, as in Figure 2."""

import dataclasses
from typing import Any

import jax
import optax

from qstr_jax.learners.certificate import Certificate
from qstr_jax.learners.fitting import Fit, Stage
from qstr_jax.learners.fixed_sample import FixedSample
from qstr_jax.learners.learner import register
from qstr_jax.settings import checks, traced


@register('adamw')
@dataclasses.dataclass(frozen=True)
class AdamW(FixedSample):
    """AdamW on shuffled minibatches of n prompts.

    Attributes:
        weight_decay: the weight decay of AdamW.
        train_threshold: a fit ends when the mean training loss of `check_every` steps is below this; 0 turns it off.
    """

    weight_decay: float = traced(0.01)
    train_threshold: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.number('train_threshold', self.train_threshold, 0)
        self.check_started_span(is_adam=True)

    def own_lane_settings(self) -> tuple[str, ...]:
        """Learning rate and weight decay."""
        return ('learning_rate', 'weight_decay')

    def optimizer_at(self, lane: Any, step: Any) -> optax.GradientTransformation:
        """AdamW with the step's learning rate."""
        return optax.adamw(self.rate_at(lane, step), weight_decay=lane.weight_decay)

    def is_converged(self, stage: Stage, found: Certificate, train_loss: jax.Array) -> jax.Array:
        """Whether the training loss is below its threshold; without a threshold, the gradient below the tolerance."""
        if self.train_threshold > 0:
            return train_loss < self.train_threshold
        return super().is_converged(stage, found, train_loss)

    def is_at_end(self, fit: Fit, found: Certificate | None, train_loss: jax.Array) -> jax.Array:
        """Whether the steps are used up, or the training loss is below its threshold."""
        return super().is_at_end(fit, found, train_loss) | (train_loss < self.train_threshold)
