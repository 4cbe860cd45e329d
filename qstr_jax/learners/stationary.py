"""Stationary points of the regularised risk (Definition 5)."""

import dataclasses
from typing import Any, Literal

import optax

from qstr_jax.learners.fixed_sample import GradientSteps
from qstr_jax.learners.learner import register
from qstr_jax.settings import traced


@register('stationary')
@dataclasses.dataclass(frozen=True)
class Stationary(GradientSteps):
    """A point with ∇[R̂(Θ) + (λ/2)‖vec Θ‖²] = 0, up to the gradient norm that its row reports.

    Attributes:
        weight_decay: λ.
        optimizer: 'adam', 'sgd' with momentum 0.9, or 'lbfgs', which uses all examples at every step.
    """

    weight_decay: float = traced(0.01)
    optimizer: Literal['adam', 'sgd', 'lbfgs'] = 'adam'

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.optimizer == 'lbfgs' and self.batch_size:
            raise ValueError(f"batch_size={self.batch_size}: optimizer='lbfgs' uses all examples; set batch_size=0")

    def own_lane_settings(self) -> tuple[str, ...]:
        """Learning rate and λ; L-BFGS chooses its own learning rate."""
        return ('weight_decay',) if self.optimizer == 'lbfgs' else ('learning_rate', 'weight_decay')

    def ignored(self) -> tuple[str, ...]:
        """With L-BFGS also the learning rate and its schedule."""
        return (*super().ignored(), *(('schedule', 'learning_rate') if self.optimizer == 'lbfgs' else ()))

    def optimizer_at(self, lane: Any, step: Any) -> optax.GradientTransformation:
        """The optimiser with the step's learning rate."""
        return optax.lbfgs() if self.optimizer == 'lbfgs' else super().optimizer_at(lane, step)

    def penalty(self, params: Any, lane: Any) -> Any:
        """(λ/2)‖vec Θ‖²."""
        return 0.5 * lane.weight_decay * optax.tree.norm(params, squared=True)
