"""Causal qSTR, asked for by a reviewer of arXiv:2503.11272: no position asks for a later token."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from qstr_jax.tasks.task import register
from qstr_jax.tasks.variant import Variant


@register('causal_qstr')
@dataclasses.dataclass(frozen=True)
class CausalQSTR(Variant):
    """qSTR with t_i uniform on {1, …, i}^q at every position i. The architectures still see all tokens."""

    def draw_indices(self, key: jax.Array, unit_RxQ: jax.Array) -> jax.Array:
        """Indices (N, q), those of row i in 0..i."""
        rows_N = jnp.arange(self.seq_len)
        return jnp.minimum((unit_RxQ * (rows_N + 1)[:, None]).astype(jnp.int32), rows_N[:, None])

    def asked_NxN(self) -> np.ndarray:
        """1/i for each of the tokens 1, …, i."""
        return np.tri(self.seq_len) / np.arange(1, self.seq_len + 1)[:, None]
