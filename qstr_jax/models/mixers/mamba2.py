"""Mamba-2 (Dao and Gu, arXiv:2405.21060): a state space model with one decay per head."""

import jax
import jax.numpy as jnp
from flax import linen as nn

from qstr_jax.models.mixers import matrix_state
from qstr_jax.models.mixers.registered import register


@register('mamba2')
class Mamba2(nn.Module):
    """S ← e^{−aΔ} S + B (Δ x)^T, y = S^T C + D x, with B and C shared by the heads, and a gated norm at the end.

    Mamba-2's short convolution is the backbone's `short_conv`, which is the same for all mixers.

    Attributes:
        heads: H.
        head_dim: V, width of each head's values.
        state_dim: K, width of B and C.
        form: 'parallel' over chunks of tokens, or 'recurrent'; the results agree.
        output: 'gated' (gated, then normalised over all heads), 'normed' (no gate), 'unnormed' (no norm) or 'plain'.
    """

    heads: int = 2
    head_dim: int = 16
    state_dim: int = 16
    form: matrix_state.Form = 'parallel'
    output: matrix_state.Output = 'gated'

    @nn.compact
    def __call__(self, x_NxW: jax.Array) -> jax.Array:
        v_NxHxV = jax.nn.silu(matrix_state.heads_of('value', x_NxW, self.heads, self.head_dim))
        b_NxK, c_NxK = (jax.nn.silu(nn.Dense(self.state_dim, use_bias=False, name=name)(x_NxW)) for name in 'bc')
        step_NxH, g_NxH = matrix_state.step_decay(self, x_NxW, self.heads)
        k_NxHxK, q_NxHxK = (jnp.repeat(part[:, None], self.heads, axis=1) for part in (b_NxK, c_NxK))
        inputs = matrix_state.Inputs(q_NxHxK, k_NxHxK, step_NxH[:, :, None] * v_NxHxV, g_NxH[:, :, None])
        skip_H = self.param('skip', nn.initializers.ones, (self.heads,))
        o_NxHxV = matrix_state.run(self, inputs, self.form) + skip_H[None, :, None] * v_NxHxV
        if self.output in matrix_state.GATED:
            o_NxHxV = o_NxHxV * jax.nn.silu(matrix_state.heads_of('gate', x_NxW, self.heads, self.head_dim))
        if self.output in matrix_state.NORMED:
            both = (-2, -1)
            o_NxHxV = nn.RMSNorm(reduction_axes=both, feature_axes=both, name='gated_norm')(o_NxHxV)
        return matrix_state.merged(o_NxHxV, x_NxW.shape[-1])

    def state_size(self, width: int, seq_len: int) -> int:
        return self.heads * self.state_dim * self.head_dim
