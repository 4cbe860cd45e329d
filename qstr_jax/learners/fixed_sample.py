"""The base of all learners on a fixed sample of n prompts (Section 2 of arXiv:2503.11272).

n is traced, so one program serves every n. A fit ends after `max_steps`, or earlier when it reaches its goal; then its
certificate and its test loss are measured. A lane whose sample size is 0 makes one fit after another, on nested
training sets, until it knows n* (`bracket`). Each learner of this kind is a subclass in a file of its own, with its
optimiser, its penalty or projection, and its goal.
"""

import dataclasses
import functools
from typing import Any, ClassVar, Literal

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn

from qstr_jax import models, tasks
from qstr_jax.learners import bracket, fit_report, fits, held_out, lanes, optimizers, restarts, starts
from qstr_jax.learners.fits import Data, State
from qstr_jax.learners.lanes import DIVERGED, RUNNING, over_lanes, over_lanes_in_parts, select
from qstr_jax.learners.one_fit import OneFit
from qstr_jax.learners.problem import Problem
from qstr_jax.settings import checks, derived, later, static, traced, validate_fields


@dataclasses.dataclass(frozen=True)
class FixedSample(OneFit):
    """A learner on n prompts that are drawn once.

    Attributes:
        learning_rate: the learning rate of the optimiser.
        sample_size: n; 0 searches for n*, the smallest n with a test loss below `threshold`.
        stop_after: a search ends, outraced, once this n was not enough; 0 means never.
        risk: 'averaged' over positions (2.2), or 'pointwise', at one position of each prompt (2.3).
        batch_size: examples per step; 0 takes all n.
        schedule: of the learning rate, 'constant' or 'cosine', which falls to 0 at `max_steps`.
        max_steps: the most steps of one fit, or with min_norm of each radius.
        check_every: steps between two checks of whether a fit is over.
        max_samples: largest n of a search.
        min_samples: smallest n that a search tries.
        resolution: a search knows n* up to the factor 1 + resolution.
        threshold: the test loss that a search looks for.
        test_samples: number of held-out test prompts.
        validation_samples: number of held-out prompts that settings are chosen on.
        tolerance: a fit has converged when the norm of its gradient is at most this.
        span: where the first layer of ffn.form=theorem6 may lie: 'free' anywhere; 'started' starts in the span of the
            training prompts; 'coordinates' keeps it there with any optimiser.
        starts: where a fit starts, see `starts`; with several, the result of least training risk is kept.
        reference: a start, such as 'construction', whose training risk and test loss every fit is compared with; a fit
            is an ERM if its training risk is at most the reference's plus `erm_tolerance`.
        erm_tolerance: see `reference`.
        precision: of matrix products on an accelerator, 'highest' (None), 'high' or 'default'; see `lanes.run_checks`.
        threshold_on: what the threshold is on: the test loss, or with classes the error rate, 1 − accuracy.

    Raises:
        ValueError: a size is impossible, a name is unknown, or two settings exclude each other.
    """

    name: ClassVar[str]
    start_settings: ClassVar[tuple[str, ...]] = ('starts', 'reference')
    learning_rate: float = traced(1e-3)
    sample_size: int = traced(0)
    stop_after: int = traced(0)
    risk: Literal['averaged', 'pointwise'] = 'averaged'
    batch_size: int = 64
    schedule: Literal['constant', 'cosine'] = 'constant'
    max_steps: int = 5000
    check_every: int = 100
    max_samples: int = 10_000
    min_samples: int = 10
    resolution: float = 0.1
    threshold: float = 0.7
    test_samples: int = 5000
    validation_samples: int = 1000
    tolerance: float = 1e-4
    span: Literal['free', 'started', 'coordinates'] = 'free'
    starts: tuple[str, ...] = ('init',)
    reference: str = ''
    erm_tolerance: float = 1e-3
    precision: lanes.Precision = None
    threshold_on: Literal['loss', 'error_rate'] = later('loss')
    is_search: bool = derived(False)

    def __post_init__(self) -> None:
        validate_fields(self)
        lanes.validate_precision(self)
        counts = ('max_steps', 'check_every', 'max_samples', 'min_samples', 'test_samples', 'validation_samples')
        for name in counts:
            checks.integer(name, getattr(self, name))
        checks.integer('batch_size', self.batch_size, 0)
        checks.integer('sample_size', self.sample_size, 0)
        checks.integer('stop_after', self.stop_after, 0)
        checks.number('learning_rate', self.learning_rate, 0)
        for name in 'threshold', 'resolution', 'tolerance':
            checks.positive(name, getattr(self, name))
        starts.check(self)
        checks.number('erm_tolerance', self.erm_tolerance, 0)
        if self.is_search and self.min_samples > self.max_samples:
            raise ValueError(f'min_samples={self.min_samples}: must be at most max_samples={self.max_samples}')
        if self.max_steps % self.check_every:
            raise ValueError(
                f'max_steps={self.max_steps}: must be a multiple of check_every={self.check_every}, since a fit ends '
                'at a check'
            )

    def check_started_span(self, is_adam: bool) -> None:
        """Raises ValueError where Adam's steps would leave the span."""
        if self.span == 'started' and is_adam:
            raise ValueError(
                "span='started': Adam's iterates leave the span; use optimizer=lbfgs or sgd, or span=coordinates"
            )

    # What follows from the settings, the model and the task.

    def bind(self, module: nn.Module, task: tasks.Task, sample_sizes: tuple[int, ...]) -> Any:
        """The learner of a cell. The prompts that are stored are the largest n, rounded up to a power of two.

        Adding values of n therefore seldom makes another program. Only an FFN of the form 'theorem6' has a span.

        Raises:
            ValueError: a span that the model does not have, or a search from n above the largest n.
        """
        held_out.check_threshold(self.threshold_on, task)
        is_search = not any(sample_sizes)
        if not is_search and not all(sample_sizes):
            raise ValueError(f'sample_size={sample_sizes}: 0 searches for n* and cannot be combined with other values')
        capacity = self.max_samples if is_search else 1 << (max(sample_sizes) - 1).bit_length()
        span = self.span if isinstance(module, models.Feedforward) else 'free'
        if span != 'free' and module.form != 'theorem6':
            raise ValueError(f"span={span!r}: needs ffn.form='theorem6', not {module.form!r}")
        return dataclasses.replace(static(self), max_samples=capacity, is_search=is_search, span=span)

    def lane_settings(self) -> tuple[str, ...]:
        """Names of the traced settings that have an effect: the learner's own, n, and where a search is outraced."""
        return (*self.own_lane_settings(), 'sample_size', *(('stop_after',) if self.is_search else ()))

    def own_lane_settings(self) -> tuple[str, ...]:
        """Names of the traced settings besides n and `stop_after` that have an effect."""
        return ('learning_rate',)

    def ignored(self) -> tuple[str, ...]:
        """Names of settings without effect: those of a search if n is given, the tolerance without a reference."""
        unused = () if self.is_search else ('max_samples', 'min_samples', 'resolution', 'stop_after')
        return unused if self.reference else (*unused, 'erm_tolerance')

    @property
    def is_measured_at_checks(self) -> bool:
        """Whether the certificate is needed at every check, not only at the end of a fit."""
        return self.batch_size == 0

    @property
    def stages_per_fit(self) -> int:
        """Upper bound on the stages of a fit."""
        return 1

    @property
    def max_fits(self) -> int:
        """Upper bound on the fits of a lane."""
        return bracket.max_fits(self.min_samples, self.max_samples, self.resolution) if self.is_search else 1

    @property
    def max_checks(self) -> int:
        """Upper bound on the checks of a lane."""
        return self.max_fits * len(self.starts) * self.stages_per_fit * -(-self.max_steps // self.check_every)

    def most_examples(self) -> int:
        """Upper bound on the examples that a lane trains on, with repetition."""
        return self.max_checks * self.check_every * (self.batch_size or self.max_samples)

    # The programs of a lane batch.

    def init(self, lanes_K: Any, problem: Problem) -> tuple[Data, State]:
        """Constants and the first state of a lane batch."""
        return over_lanes_in_parts(lambda lane: fits.init_lane(lane, problem))(lanes_K)

    def check(self, state_K: State, data_K: Data, lanes_K: Any, problem: Problem) -> State:
        """`check_every` steps of all lanes; fits that are over are recorded, and a search starts the next ones."""
        is_active_K = state_K.outcome == RUNNING

        def train(state: State, data: Data, lane: Any) -> State:
            fit, train_loss = self.steps(state.fit, state.stage.radius, data, lane, problem)
            return state._replace(fit=fit, train_loss=train_loss, checks=state.checks + 1)

        new_K = over_lanes(train)(state_K, data_K, lanes_K)
        found_K = None
        if self.is_measured_at_checks:
            found_K = over_lanes_in_parts(functools.partial(fits.measure_now, problem=problem))(new_K, data_K, lanes_K)
        step_stage = functools.partial(fits.step_stage, problem=problem)
        is_over_K, new_K = jax.vmap(step_stage)(new_K, found_K, data_K, lanes_K)
        is_finite_K = jnp.isfinite(new_K.train_loss)
        if len(self.starts) > 1:
            is_done_K = is_active_K & (is_over_K | ~is_finite_K)
            is_over_K, is_finite_K, new_K = restarts.advance(is_done_K, new_K, data_K, lanes_K, problem)
        is_over_K &= is_active_K & is_finite_K

        def close(new_K: State) -> State:
            records_K = over_lanes_in_parts(functools.partial(fits.assess, problem=problem))(new_K, data_K, lanes_K)
            closed_K = over_lanes(functools.partial(fits.close, problem=problem))(new_K, records_K, data_K, lanes_K)
            is_finite_K = jnp.isfinite(records_K.test_loss)
            closed_K = closed_K._replace(outcome=jnp.where(is_finite_K, closed_K.outcome, DIVERGED))
            return select(is_over_K, closed_K, new_K)

        new_K = jax.lax.cond(jnp.any(is_over_K), close, lambda new_K: new_K, new_K)
        new_K = new_K._replace(outcome=jnp.where(is_finite_K, new_K.outcome, DIVERGED))
        return select(is_active_K, new_K, state_K)

    def report(self, state_K: State, problem: Problem) -> dict[str, Any]:
        """Columns of the rows of a lane batch: arrays (k,), on the host."""
        return fit_report.report(state_K, problem)

    def report_curves(self, state_K: State, problem: Problem) -> list[dict[str, Any]]:
        """The fits of a lane batch, by n: a dict of columns for each lane."""
        return fit_report.report_curves(state_K, self)

    def progress(self, state_K: State, problem: Problem) -> dict[str, Any]:
        """n and training loss of the lane with the most checks; on the host."""
        lane = int(np.argmax(np.asarray(state_K.checks)))
        return {'samples': int(state_K.bracket.n[lane]), 'train_loss': float(state_K.train_loss[lane])}


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
