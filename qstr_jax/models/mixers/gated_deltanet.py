"""Gated DeltaNet (Yang et al., arXiv:2412.06464): the delta rule with a memory that decays."""

import jax
from flax import linen as nn

from qstr_jax.models.mixers import matrix_state
from qstr_jax.models.mixers.deltanet import delta_inputs
from qstr_jax.models.mixers.registered import register


@register('gated_deltanet')
class GatedDeltaNet(nn.Module):
    """DeltaNet whose memory also decays, with a gate on its outputs.

        S ← e^g (I − β k k^T) S + β k v^T,    o = S^T q / √K,    g = −e^a softplus(w^T x + b)

    Attributes:
        heads: H.
        head_dim: K = V, width of keys and values.
        form: 'parallel' over chunks of tokens, or 'recurrent'; the results agree.
    """

    heads: int = 2
    head_dim: int = 16
    form: matrix_state.Form = 'parallel'

    @nn.compact
    def __call__(self, x_NxW: jax.Array) -> jax.Array:
        _, g_NxH = matrix_state.step_decay(self, x_NxW, self.heads)
        inputs = delta_inputs(x_NxW, self.heads, self.head_dim)._replace(g_NxHxG=g_NxH[:, :, None])
        o_NxHxV = nn.RMSNorm(name='head_norm')(matrix_state.run(self, inputs, self.form))
        gate_NxHxV = matrix_state.heads_of('gate', x_NxW, self.heads, self.head_dim)
        return matrix_state.merged(o_NxHxV * jax.nn.silu(gate_NxHxV), x_NxW.shape[-1])

    def state_size(self, width: int, seq_len: int) -> int:
        return self.heads * self.head_dim**2
