"""The worst ERM of a ball: an ERM that errs, looked for until the search finds none (Theorem 4 is about every ERM)."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from qstr_jax import tasks
from qstr_jax.learners import fitting, risks, span_of_inputs
from qstr_jax.learners.constrained import ROUNDING, Constrained
from qstr_jax.learners.fits import Record, State
from qstr_jax.learners.learner import register
from qstr_jax.learners.problem import Problem
from qstr_jax.settings import checks, traced

# The test loss must exceed the threshold by this many standard errors.
ERRORS = 2.0
# Folded into the key of the order of minibatches. Epochs are folded into it too, but are never as large.
_FRESH = 0xF2E54


@register('worst_erm')
@dataclasses.dataclass(frozen=True)
class WorstERM(Constrained):
    """An ERM of the ball {‖vec Θ‖₂ ≤ R} that errs: argmin R̂(Θ) + λ max(0, level − mean error on fresh prompts).

    A fit is an ERM if ‖vec Θ‖₂ ≤ R and R̂ ≤ `erm_tolerance`, which is within `erm_tolerance` of the least risk, since
    risks are not negative. It is evidence that n prompts are too few if its test loss is above `threshold`, too, by two
    standard errors. A search looks for the largest n with such a fit. That n is a lower bound: from some larger n on no
    ERM of the ball errs, but a search that finds none says nothing. The fresh prompts are neither of the training set
    nor of the test.

    Attributes:
        hinge: λ.
        fresh: fresh prompts of a step.
        level: the error on fresh prompts below which the hinge pulls.
    """

    hinge: float = traced(0.1)
    fresh: int = 64
    level: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.number('hinge', self.hinge, 0)
        checks.integer('fresh', self.fresh)
        checks.positive('level', self.level)
        if self.constraint != 'l2':
            raise ValueError(f'constraint={self.constraint}: the worst ERM is one of the l2 ball; use l2')
        if len(self.starts) > 1:
            raise ValueError(f'starts={self.starts}: give one; of several, only the start of least risk would count')

    def own_lane_settings(self) -> tuple[str, ...]:
        """Learning rate, radius and λ."""
        return (*super().own_lane_settings(), 'hinge')

    def ignored(self) -> tuple[str, ...]:
        """As for all fits, except the tolerance, which has an effect here."""
        return tuple(name for name in super().ignored() if name != 'erm_tolerance')

    def added(self, params: Any, fit: fitting.Fit, data: Any, lane: Any, problem: Problem) -> Any:
        """λ max(0, level − mean error on fresh prompts at one position each)."""
        task = problem.task
        key = jax.random.fold_in(jax.random.fold_in(data.order_key, _FRESH), fit.step)
        indices_B = jnp.arange(self.fresh)
        prompts = tasks.examples(key, indices_B, task, data.task_draw.link)
        counts_BxN = jax.vmap(lambda prompt: prompt.counts_N)(prompts)
        position_B = tasks.positions(jax.random.fold_in(key, 1), indices_B, task.seq_len, counts_BxN)
        expanded = span_of_inputs.expand(params, fit.basis_RxV, self.span)
        error = risks.pointwise(
            problem.module, expanded, prompts, position_B, task=task, task_draw=data.task_draw
        )  # fmt: skip
        return lane.hinge * jnp.maximum(0.0, self.level - error)

    def is_at_end(self, fit: fitting.Fit, found: Any, train_loss: jax.Array) -> jax.Array:
        """Whether the steps are used up; where the risk alone is stationary, the hinge still pulls."""
        return fit.step >= self.max_steps

    def is_erm(self, record: Record) -> Any:
        """Whether a fit is in the ball and within the tolerance of the least risk."""
        found = record.certificate
        return (found.norm <= record.fitted_radius * (1 + ROUNDING)) & (found.train_risk <= self.erm_tolerance)

    def is_evidence(self, record: Record) -> Any:
        """Whether a fit shows that n prompts are too few."""
        return self.is_erm(record) & (record.test_loss - ERRORS * record.test_loss_se >= self.threshold)

    def is_enough(self, record: Record) -> Any:
        """Whether no ERM that errs was found."""
        return ~self.is_evidence(record)

    def report(self, state_K: State, problem: Problem) -> dict[str, Any]:
        """Columns of the rows, with `erring_samples`, the largest n with an ERM that errs, 0 if there is none."""
        num_fits_K, records_K = jax.device_get((state_K.num_fits, state_K.records))
        is_done = np.arange(records_K.n.shape[1]) < num_fits_K[:, None]
        erring_K = np.where(is_done & self.is_evidence(records_K), records_K.n, 0).max(axis=1)
        return {**super().report(state_K, problem), 'erring_samples': erring_K}
