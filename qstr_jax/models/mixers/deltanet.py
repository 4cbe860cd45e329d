"""DeltaNet (Yang et al., arXiv:2406.06484): a key's new value replaces its old one."""

import jax
import jax.numpy as jnp
from flax import linen as nn

from qstr_jax.models.mixers import matrix_state
from qstr_jax.models.mixers.registered import register


@register('deltanet')
class DeltaNet(matrix_state.NormedMemory):
    """A matrix memory in which a key's new value replaces its old one by a share β = σ(w^T x).

        S ← (I − β k k^T) S + β k v^T,    o = S^T q / √K

    Queries and keys are SiLU(W x) of length one; the outputs of each head are normalised.
    """

    output: matrix_state.Output = 'normed'

    @nn.compact
    def __call__(self, x_NxW: jax.Array) -> jax.Array:
        inputs = delta_inputs(x_NxW, self.heads, self.head_dim)
        return self.read(inputs, x_NxW)


def delta_inputs(x_NxW: jax.Array, heads: int, head_dim: int) -> matrix_state.Inputs:
    """Queries, keys, values and β without decay; called inside a compact module."""
    q, k, v = (jax.nn.silu(matrix_state.heads_of(name, x_NxW, heads, head_dim)) for name in ('query', 'key', 'value'))
    beta_NxH = jax.nn.sigmoid(nn.Dense(heads, use_bias=False, name='beta')(x_NxW))
    q = head_dim**-0.5 * matrix_state.unit(q)
    return matrix_state.Inputs(q, matrix_state.unit(k), v, jnp.zeros((*q.shape[:2], 1)), beta_NxH)
