"""What a learner on a fixed sample decides about one fit: its optimiser, penalty, projection, stages and end."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import optax

from qstr_jax.learners import fitting
from qstr_jax.learners.certificate import Certificate
from qstr_jax.learners.crossings import is_below
from qstr_jax.learners.fits import Data, Record
from qstr_jax.learners.problem import Problem


class OneFit:
    """The methods that a learner on a fixed sample may override. All are for one lane."""

    # Whether there is a constraint set.
    is_projected: ClassVar[bool] = False
    # The name of the optimiser, if the way a step is made depends on it.
    optimizer: str = ''

    # Settings of `FixedSample`.
    schedule: str
    max_steps: int
    threshold: float
    tolerance: float
    reference: str
    erm_tolerance: float

    def rate_at(self, lane: Any, step: Any) -> Any:
        """The learning rate at a step, by the schedule."""
        if self.schedule == 'constant':
            return lane.learning_rate
        return lane.learning_rate * (1 + jnp.cos(jnp.pi * step / self.max_steps)) / 2

    def optimizer_at(self, lane: Any, step: Any) -> optax.GradientTransformation:
        """The optimiser at a step; its state may not depend on the learning rate."""
        raise NotImplementedError

    def penalty(self, params: Any, lane: Any) -> Any:
        """The term that the objective adds to the risk."""
        return 0.0

    def added(self, params: Any, fit: fitting.Fit, data: Data, lane: Any, problem: Problem) -> Any:
        """All that the objective of a step adds to the risk: the penalty, and what depends on the step or on data."""
        return self.penalty(params, lane)

    def project(self, params: Any, radius: Any) -> Any:
        """The parameters' projection onto the constraint set."""
        return params

    def placed(self, starts_S: Any, lane: Any) -> Any:
        """The starts, moved into the constraint set."""
        return starts_S

    def first_radius(self, lane: Any) -> Any:
        """The norm bound of the constraint set."""
        return jnp.float32(jnp.inf)

    def first_stage(self, params: Any, lane: Any) -> fitting.Stage:
        """The stage that a fit starts with."""
        return fitting.first_stage(self.first_radius(lane))

    def result(self, stage: fitting.Stage, params: Any) -> Any:
        """The parameters that a fit ends with."""
        return params

    def steps(self, fit: fitting.Fit, radius: Any, data: Data, lane: Any, problem: Problem) -> Any:
        """`check_every` steps: the fit after them, and the mean of the objective over them."""
        return fitting.steps(fit, radius, data, lane, problem)

    def is_converged(self, stage: fitting.Stage, found: Certificate, train_loss: jax.Array) -> jax.Array:
        """Whether a fit that is over reached the learner's goal."""
        return found.grad_norm <= self.tolerance

    def is_erm(self, record: Record) -> Any:
        """Whether the training risk is at most the reference's plus the tolerance; None without a reference."""
        if not self.reference:
            return None
        return record.certificate.train_risk <= record.reference_train_risk + self.erm_tolerance

    def is_enough(self, record: Record) -> Any:
        """Whether a search may stop at this fit's n."""
        return is_below(record.test_loss, self.threshold)

    def is_at_end(self, fit: fitting.Fit, found: Certificate | None, train_loss: jax.Array) -> jax.Array:
        """Whether the steps are used up, or the gradient was measured and is within the tolerance."""
        is_end = fit.step >= self.max_steps
        return is_end if found is None else is_end | (found.grad_norm <= self.tolerance)

    def step_stage(
        self, stage: fitting.Stage, fit: fitting.Fit, found: Certificate | None, *, train_loss: Any, data: Data,
        lane: Any, problem: Problem,
    ) -> tuple[Any, fitting.Fit, fitting.Stage]:  # fmt: skip
        """Whether the fit is over, and the fit and stage to continue with."""
        return self.is_at_end(fit, found, train_loss), fit, stage

    def report_radii(self, stage: fitting.Stage) -> tuple[Any, Any]:
        """The radius of the result, and the largest radius that failed; NaN if there is none."""
        nan = jnp.float32(jnp.nan)
        return (stage.radius if self.is_projected else nan), nan
