"""The min-norm ε-ERM (2.4): argmin ‖vec Θ‖₂ subject to R̂(Θ) − min R̂ ≤ ε, by bisection on the radius.

Stage 0 is unconstrained: its risk is used as min R̂, and its norm as the first radius that meets the goal. Every later
stage tries the geometric mean of the largest radius that failed and the smallest that met the goal, and starts from the
best parameters so far, scaled down. The result meets the goal; its norm and the largest radius that failed bracket the
least norm, as far as the optimiser finds it.

The goal is R̂ ≤ ε if stage 0 gets below ε (risks are not negative), and R̂ ≤ min R̂ + ε otherwise.
"""

import dataclasses
from typing import Any, Literal

import jax
import jax.numpy as jnp
import optax
from flax import linen as nn

from qstr_jax import tasks
from qstr_jax.learners import fitting, projections
from qstr_jax.learners.certificate import Certificate
from qstr_jax.learners.fitting import Stage
from qstr_jax.learners.fixed_sample import Data, GradientSteps
from qstr_jax.learners.learner import register
from qstr_jax.learners.problem import Problem
from qstr_jax.settings import checks

# Lower end of the first bracket, as a share of the unconstrained norm.
LEAST_SHARE = 0.05


@register('min_norm')
@dataclasses.dataclass(frozen=True)
class MinNorm(GradientSteps):
    """Least ‖vec Θ‖ with R̂ within ε of its minimum, by bisection on the radius.

    The bisection's first lower end is a twentieth of the unconstrained norm. Where every radius that was tried met the
    goal, the column infeasible_radius still has that lower end.

    Attributes:
        epsilon: ε, the training risk that is allowed above the minimum.
        bisections: number of radii that are tried.
        optimizer: 'adam', or 'sgd' with momentum 0.9.
    """

    is_projected = True

    epsilon: float = 1e-3
    bisections: int = 8
    optimizer: Literal['adam', 'sgd'] = 'adam'

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.integer('bisections', self.bisections)
        checks.positive('epsilon', self.epsilon)

    def bind(self, module: nn.Module, task: tasks.Task, sample_sizes: tuple[int, ...]) -> 'MinNorm':
        """The learner of a cell, with a single start: its radii are searched one after the other."""
        return dataclasses.replace(super().bind(module, task, sample_sizes), starts=('init',))

    def ignored(self) -> tuple[str, ...]:
        """As for other learners, and the starts."""
        return (*super().ignored(), 'starts')

    @property
    def is_measured_at_checks(self) -> bool:
        """True: a stage ends when its risk meets the goal."""
        return True

    @property
    def stages_per_fit(self) -> int:
        """The unconstrained stage, and one stage per radius."""
        return 1 + self.bisections

    def project(self, params: Any, radius: Any) -> Any:
        """The parameters' projection onto {‖vec Θ‖₂ ≤ R}."""
        return projections.l2(params, radius)

    def first_stage(self, params: Any, lane: Any) -> Stage:
        """The unconstrained stage."""
        return fitting.first_stage(jnp.float32(jnp.inf), kept=params)

    def result(self, stage: Stage, params: Any) -> Any:
        """The best parameters of all stages."""
        return stage.kept

    def goal(self, stage: Stage) -> jax.Array:
        """The training risk that a radius must reach, in any stage but the unconstrained one."""
        return jnp.where(stage.min_risk <= self.epsilon, self.epsilon, stage.min_risk + self.epsilon)

    def is_converged(self, stage: Stage, found: Certificate, train_loss: jax.Array) -> jax.Array:
        """Whether the risk is at most ε, and so within ε of the minimum even if stage 0 missed the minimum."""
        return found.train_risk <= jnp.minimum(self.goal(stage), self.epsilon)

    def report_radii(self, stage: Stage) -> tuple[Any, Any]:
        """The radius of the result, and the largest that failed."""
        return stage.radius, stage.low

    def step_stage(
        self, stage: Stage, fit: fitting.Fit, found: Certificate | None, *, train_loss: Any, data: Data, lane: Any,
        problem: Problem,
    ) -> tuple[Any, fitting.Fit, Stage]:  # fmt: skip
        """Whether the fit is over, and the fit and stage to continue with; see `FixedSample`."""
        assert found is not None
        is_first = stage.number == 0
        # Stage 0 stops well below ε, later ones at their goal.
        limit = jnp.where(is_first, 0.1 * self.epsilon, self.goal(stage))
        is_met = found.train_risk <= limit
        is_end = (fit.step >= self.max_steps) | is_met
        following = self._following(stage, fit, found, is_end & (is_met | is_first))
        is_over = is_end & (stage.number >= self.bisections)
        # At the end the radius is the norm of the result.
        following = following._replace(radius=jnp.where(is_over, following.high, following.radius))
        radius = jnp.sqrt(following.low * following.high)
        scaled = optax.tree.scale(radius / jnp.maximum(following.high, 1e-30), following.kept)
        next_fit = fitting.restart(fit, scaled, lane, self)
        next_fit = jax.tree.map(lambda new, old: jnp.where(is_over, old, new), next_fit, fit)
        next_fit = next_fit._replace(step=jnp.int32(0))  # already counted in `steps`

        def choose(new: Any, old: Any) -> Any:
            return jax.tree.map(lambda a, b: jnp.where(is_end, a, b), new, old)

        return is_over, choose(next_fit, fit), choose(following, stage)

    @staticmethod
    def _following(stage: Stage, fit: fitting.Fit, found: Certificate, is_better: jax.Array) -> Stage:
        """The stage after this one, at the geometric mean of its bracket."""
        is_first = stage.number == 0
        kept = jax.tree.map(lambda new, old: jnp.where(is_better, new, old), fit.params, stage.kept)
        high = jnp.where(is_better, found.norm, stage.high)
        low = jnp.where(is_better, stage.low, stage.radius)
        low = jnp.where(is_first, LEAST_SHARE * found.norm, low)
        return Stage(
            number=stage.number + 1,
            radius=jnp.sqrt(low * high),
            low=low,
            high=high,
            min_risk=jnp.where(is_first, found.train_risk, stage.min_risk),
            steps=stage.steps + fit.step,
            kept=kept,
        )
