"""Static settings of online training; what they mean is told in `online`."""

import dataclasses

from qstr_jax.learners import risks


@dataclasses.dataclass(frozen=True)
class Online:
    """Static settings of the learner.

    Attributes:
        batch_size: fresh prompts per step.
        check_every: steps between two looks at the test loss.
        threshold: a lane is done at the first check with test loss strictly below.
        max_samples: budget of training prompts; a lane that spends it is censored.
        test_samples: size of the held-out test set.
        risk: 'averaged' (2.2) or 'pointwise' (2.3).
        screen: whether hopeless test evaluations are skipped, see `screening`.

    Raises:
        ValueError: a size is impossible or the risk unknown.
    """

    batch_size: int = 64
    check_every: int = 10
    threshold: float = 0.7
    max_samples: int = 1_000_000
    test_samples: int = 5000
    risk: str = 'averaged'
    screen: bool = True

    def __post_init__(self):
        for name in 'batch_size', 'check_every', 'max_samples', 'test_samples':
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f'{name}={value!r}: must be an integer, at least 1')
        if not self.threshold > 0:
            raise ValueError(f'threshold={self.threshold!r}: must be positive')
        if self.risk not in risks.NAMES:
            raise ValueError(f'risk={self.risk!r}: unknown, one of {", ".join(risks.NAMES)}')
        if self.max_checks < 1:
            raise ValueError(
                f'max_samples={self.max_samples}: fewer than one check, '
                f'check_every={self.check_every} × batch_size={self.batch_size}'
            )

    @property
    def samples_per_check(self):
        """Prompts between two checks."""
        return self.batch_size * self.check_every

    @property
    def max_checks(self):
        """Checks that the budget pays for."""
        return self.max_samples // self.samples_per_check
