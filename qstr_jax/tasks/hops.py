"""k-hop retrieval: the indices are followed k times, t of t. The definition is ours."""

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from qstr_jax.settings import checks
from qstr_jax.tasks.task import register
from qstr_jax.tasks.variant import Variant


@register('hops')
@dataclasses.dataclass(frozen=True)
class Hops(Variant):
    """y_i = g(x_{s_i1}, …, x_{s_iq}) with s_il = t_l(t_l(… t_l(i))), k times; t_l: [N] → [N] is column l of t.

    Attributes:
        hops: k; 1 is qSTR.
    """

    hops: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.integer('hops', self.hops)

    def labels(self, x_NxD: jax.Array, t_NxQ: jax.Array, link_params: Any) -> jax.Array:
        """Labels (N,); arguments as in `QSTR.labels`."""
        reached_NxQ = t_NxQ
        for _ in range(self.hops - 1):
            reached_NxQ = jnp.take_along_axis(t_NxQ, reached_NxQ, axis=0)
        return super().labels(x_NxD, reached_NxQ, link_params)

    def asked_NxN(self) -> np.ndarray:
        """A walk of k hops ends where it began if i lies on a cycle of a length c that divides k.

        P(c) = (N − 1)(N − 2) … (N − c + 1)/N^c. All other ends are equally likely.
        """
        size = self.seq_len
        lengths = [c for c in range(1, min(self.hops, size) + 1) if self.hops % c == 0]
        back = sum(math.prod(range(size - c + 1, size)) / size**c for c in lengths)
        return np.full((size, size), (1 - back) / (size - 1)) + (back - (1 - back) / (size - 1)) * np.eye(size)
