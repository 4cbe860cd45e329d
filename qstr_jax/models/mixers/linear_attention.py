"""Linear attention (Katharopoulos et al., arXiv:2006.16236): attention without softmax, so that a state suffices."""

import jax
import jax.numpy as jnp
from flax import linen as nn

from qstr_jax.models.mixers import matrix_state
from qstr_jax.models.mixers.registered import register


@register('linear_attention')
class LinearAttention(matrix_state.MatrixMemory):
    """Attention with weights φ(q)^T φ(k), φ = elu + 1, divided by their sum: a state (S, z) per head.

    S ← S + φ(k) v^T,    z ← z + φ(k),    o = S^T φ(q) / (z^T φ(q))
    """

    @nn.compact
    def __call__(self, x_NxW: jax.Array) -> jax.Array:
        q, k, v = (self.heads_of(name, x_NxW) for name in ('query', 'key', 'value'))
        ones_NxHx1 = jnp.ones((*v.shape[:2], 1))
        with_ones_NxHxV = jnp.concatenate([v, ones_NxHx1], axis=-1)  # the last column sums the weights
        inputs = matrix_state.Inputs(jax.nn.elu(q) + 1, jax.nn.elu(k) + 1, with_ones_NxHxV, jnp.zeros_like(ones_NxHx1))
        o_NxHxV = matrix_state.run(self, inputs, self.form)
        return matrix_state.merged(o_NxHxV[..., :-1] / (o_NxHxV[..., -1:] + 1e-10), x_NxW.shape[-1])

    def state_size(self, width: int, seq_len: int) -> int:
        return self.heads * self.head_dim * (self.head_dim + 1)
