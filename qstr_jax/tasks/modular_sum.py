"""Addition modulo m, parity at m = 2: see `word_problem`."""

import dataclasses

import numpy as np

from qstr_jax.settings import checks
from qstr_jax.tasks.task import register
from qstr_jax.tasks.word_problem import WordProblem


@register('modular_sum')
@dataclasses.dataclass(frozen=True)
class ModularSum(WordProblem):
    """Tokens are uniform on {0, …, m − 1}; y_i is the sum of the first i modulo m.

    Attributes:
        modulus: m; 2 is parity.
    """

    modulus: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.integer('modulus', self.modulus, 2)

    def table(self) -> np.ndarray:
        """a + b modulo m."""
        return np.add.outer(np.arange(self.modulus), np.arange(self.modulus)) % self.modulus
