"""Static settings of the learners on a fixed sample; what they mean is told in `fixed`."""

import dataclasses

from qstr_jax.learners import bracket, fitting, risks, span_of_inputs

METHODS = ('adamw', 'constrained', 'min_norm', 'stationary', 'closed_form')


@dataclasses.dataclass(frozen=True)
class Fixed:
    """Static settings of a learner on a fixed sample.

    Attributes:
        method: one of `METHODS`.
        optimizer: 'adam', 'sgd' (momentum 0.9) or 'lbfgs' (all examples at every step).
        batch_size: examples per step; 0 takes all n.
        schedule: 'constant', or 'cosine' from the learning rate to 0 at `max_steps`.
        max_steps: steps of one fit (of `min_norm`: of one radius).
        check_every: steps between two looks at whether a fit is over.
        risk: 'averaged' (2.2) or 'pointwise' (2.3), with j(i) drawn once.
        max_samples: largest n; so many prompts are drawn and kept.
        min_samples: smallest n that a search tries.
        is_search: search for n*; otherwise n is the lane's `sample_size`.
        resolution: a search knows n* up to the factor 1 + resolution.
        threshold: of the test loss, for the search.
        test_samples, validation_samples: held-out prompts.
        constraint: 'l2' or named sets, see `projections.parse`.
        budget_unit: the radius is the lane's budget times this.
        tolerance: a fit has converged when its gradient norm is at most this.
        epsilon: ε of `min_norm`.
        bisections: radii that `min_norm` tries.
        train_threshold: `adamw` stops when the mean training loss of `check_every` steps is below.
        span: 'free', 'started' or 'coordinates', see `span`.

    Raises:
        ValueError: a size is impossible, a name unknown, or two settings exclude each other.
    """

    method: str = 'stationary'
    optimizer: str = 'adam'
    batch_size: int = 64
    schedule: str = 'constant'
    max_steps: int = 5000
    check_every: int = 100
    risk: str = 'averaged'
    max_samples: int = 1000
    min_samples: int = 1
    is_search: bool = False
    resolution: float = 0.1
    threshold: float = 0.7
    test_samples: int = 5000
    validation_samples: int = 1000
    constraint: str = 'l2'
    budget_unit: float = 1.0
    tolerance: float = 1e-4
    epsilon: float = 1e-3
    bisections: int = 8
    train_threshold: float = 0.0
    span: str = 'free'

    def __post_init__(self):
        for name in (
            'max_steps', 'check_every', 'max_samples', 'min_samples', 'test_samples', 'validation_samples',
            'bisections',
        ):  # fmt: skip
            _check_integer(name, getattr(self, name), 1)
        _check_integer('batch_size', self.batch_size, 0)
        for name, known in {
            'method': METHODS, 'optimizer': fitting.OPTIMIZERS, 'schedule': fitting.SCHEDULES, 'risk': risks.NAMES,
            'span': span_of_inputs.FORMS,
        }.items():  # fmt: skip
            if getattr(self, name) not in known:
                raise ValueError(f'{name}={getattr(self, name)!r}: unknown, one of {", ".join(known)}')
        for name in 'threshold', 'resolution', 'tolerance', 'epsilon', 'budget_unit':
            if not getattr(self, name) > 0:
                raise ValueError(f'{name}={getattr(self, name)!r}: must be positive')
        self._check_together()

    def _check_together(self):
        if self.is_search and self.min_samples > self.max_samples:
            raise ValueError(f'min_samples={self.min_samples}: must be at most max_samples={self.max_samples}')
        if self.optimizer == 'lbfgs' and self.batch_size:
            raise ValueError(f"batch_size={self.batch_size}: optimizer='lbfgs' takes all examples, batch_size=0")
        if self.optimizer == 'lbfgs' and self.method not in ('stationary', 'closed_form'):
            raise ValueError(f"optimizer='lbfgs': only learner 'stationary' takes it, not {self.method!r}")
        if self.method == 'min_norm' and self.constraint != 'l2':
            raise ValueError(f"constraint={self.constraint!r}: learner 'min_norm' takes 'l2'")
        if self.span == 'started' and self.optimizer == 'adam':
            raise ValueError(
                "span='started': Adam's iterates leave the span; take optimizer=lbfgs or sgd, or span=coordinates"
            )

    @property
    def is_measured_at_checks(self):
        """Whether the certificate is needed at every check, not only at the end of a fit."""
        return self.batch_size == 0 or self.method == 'min_norm'

    @property
    def max_checks(self):
        """Upper bound of the checks of a lane."""
        stages_per_fit = 1 + (self.bisections if self.method == 'min_norm' else 0)
        return self.max_fits * stages_per_fit * -(-self.max_steps // self.check_every)

    @property
    def max_fits(self):
        """Fits that a lane can make."""
        return bracket.max_fits(self.min_samples, self.max_samples, self.resolution) if self.is_search else 1


def _check_integer(name, value, least):
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f'{name}={value!r}: must be an integer, at least {least}')
