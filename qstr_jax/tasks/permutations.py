"""Words over the symmetric groups S_3 and S_5: see `word_problem`; S_5 is not solvable."""

import dataclasses
import functools
import itertools
from typing import Literal

import numpy as np

from qstr_jax.tasks.task import register
from qstr_jax.tasks.word_problem import WordProblem


@register('permutations')
@dataclasses.dataclass(frozen=True)
class Permutations(WordProblem):
    """Tokens are uniform permutations; y_i is the composition of the first i, applied one after the other.

    Attributes:
        group: 'S_3' of 6 or 'S_5' of 120 permutations.
    """

    group: Literal['S_3', 'S_5'] = 'S_3'

    def table(self) -> np.ndarray:
        """a ∘ b: b is applied first."""
        return _table(int(self.group[2:]))


@functools.cache
def _table(size: int) -> np.ndarray:
    elements = np.array(list(itertools.permutations(range(size))))
    code = size ** np.arange(size)
    composed = elements[np.arange(len(elements))[:, None, None], elements[None]]  # (a ∘ b)(i) = a(b(i))
    order = np.argsort(elements @ code)
    return order[np.searchsorted((elements @ code)[order], composed @ code)]
