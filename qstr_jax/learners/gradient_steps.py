"""The base of the learners on a fixed sample that have the setting `optimizer`."""

import dataclasses
from typing import Any

import optax

from qstr_jax.learners import optimizers
from qstr_jax.learners.fixed_sample import FixedSample


@dataclasses.dataclass(frozen=True)
class GradientSteps(FixedSample):
    """Fits with the optimiser that the setting `optimizer` names."""

    optimizer: str = 'adam'

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_started_span(is_adam=self.optimizer == 'adam')

    def optimizer_at(self, lane: Any, step: Any) -> optax.GradientTransformation:
        """The optimiser with the step's learning rate."""
        return optimizers.build(self.optimizer, self.rate_at(lane, step))
