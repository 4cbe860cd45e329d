"""How many random labels a norm ball fits: a plugin with the task `random_labels`, and the capacity from its fits.

A set of networks that fits n random labels says nothing about n true ones, so an ERM over it may generalise only for n
beyond its capacity, unless the optimiser prefers networks that do.
"""

import dataclasses
import math
from typing import Any, NamedTuple

import jax
import numpy as np

from qstr_jax import tasks
from qstr_jax.tasks import Prompt

# The number that is folded into a prompt's key for its labels; tokens and indices have 0 and 1.
_LABELS = 2


@tasks.register('random_labels')
@dataclasses.dataclass(frozen=True)
class RandomLabels(tasks.QSTR):
    """The prompts and encodings of qSTR with labels N(0, 1) that depend on nothing, drawn once per position."""

    @property
    def stream_name(self) -> str:
        """The stream name of qSTR, so that the prompts are the same."""
        return f'{tasks.QSTR.name} N={self.seq_len} q={self.sparsity} d={self.token_dim}'

    def sample(self, key: jax.Array, link_params: Any) -> Prompt:
        """One prompt of qSTR with random labels."""
        return super().sample(key, link_params)._replace(y_N=self._labels(key))

    def samples(self, keys_B: jax.Array, link_params: Any) -> Prompt:
        """A prompt for each key."""
        return super().samples(keys_B, link_params)._replace(y_N=jax.vmap(self._labels)(keys_B))

    def _labels(self, key: jax.Array) -> jax.Array:
        return jax.random.normal(jax.random.fold_in(key, _LABELS), (self.seq_len,))


class Capacity(NamedTuple):
    """What the fits of one lane say about the capacity."""

    fitted: float  # the largest n such that it and all smaller n were fitted; 0 if the smallest was not
    missed: float  # the smallest n that was not fitted; infinite if all were

    @property
    def value(self) -> float:
        """The geometric mean of both; a bound where one of them is not known."""
        if not self.fitted or math.isinf(self.missed):
            return self.fitted or self.missed
        return math.sqrt(self.fitted * self.missed)


def capacity(num_samples: Any, train_risk: Any, level: float = 0.05) -> Capacity:
    """The capacity from fits of random labels at several n."""
    sizes, risks = np.asarray(num_samples, float), np.asarray(train_risk, float)
    if not len(sizes) or sizes.shape != risks.shape:
        raise ValueError(f'capacity: {sizes.size} sample sizes and {risks.size} training risks; give one risk for each')
    is_missed = ~(risks <= level)  # A fit that diverged has missed.
    missed = float(sizes[is_missed].min()) if is_missed.any() else math.inf
    below = sizes[sizes < missed]
    return Capacity(fitted=float(below.max()) if below.size else 0.0, missed=missed)
