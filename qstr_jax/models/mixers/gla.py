"""Gated linear attention (Yang et al., arXiv:2312.06635): each key coordinate decays at a rate that the token sets."""

import jax
from flax import linen as nn

from qstr_jax.models.mixers import matrix_state
from qstr_jax.models.mixers.registered import register

# Decays are σ(·)^{1/16}, so that a memory lasts long at the start.
TEMPERATURE = 16


@register('gla')
class GatedLinearAttention(matrix_state.NormedMemory):
    """S ← diag(e^g) S + k v^T, o = S^T q / √K, with g = log σ(W₂ W₁ x + b) / 16; outputs normalised and gated by SiLU.

    Attributes:
        rank: of the map W₂ W₁ to the decays.
    """

    rank: int = 16

    @nn.compact
    def __call__(self, x_NxW: jax.Array) -> jax.Array:
        q, k, v = (self.heads_of(name, x_NxW) for name in ('query', 'key', 'value'))
        small_NxR = nn.Dense(self.rank, use_bias=False, name='decay_in')(x_NxW)
        decay_NxHxK = nn.DenseGeneral((self.heads, self.head_dim), name='decay_out')(small_NxR)
        g_NxHxK = jax.nn.log_sigmoid(decay_NxHxK) / TEMPERATURE
        inputs = matrix_state.Inputs(self.head_dim**-0.5 * q, k, v, g_NxHxK)
        return self.read(inputs, x_NxW)
