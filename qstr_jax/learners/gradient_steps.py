"""What the learners share whose optimiser is a setting: Adam, or gradient descent with momentum."""

import dataclasses
from typing import Any

import optax

from qstr_jax.learners import optimizers
from qstr_jax.learners.fixed_sample import FixedSample


@dataclasses.dataclass(frozen=True)
class GradientSteps(FixedSample):
    """Fits by 'adam' or 'sgd', whichever a learner's setting `optimizer` names."""

    optimizer: str = 'adam'

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_started_span(is_adam=self.optimizer == 'adam')

    def optimizer_at(self, lane: Any, step: Any) -> optax.GradientTransformation:
        """The optimiser with the step's learning rate."""
        return optimizers.build(self.optimizer, self.rate_at(lane, step))
