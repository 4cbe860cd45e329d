"""Gated DeltaNet (Yang et al., arXiv:2412.06464): the delta rule with a memory that decays."""

import jax
from flax import linen as nn

from qstr_jax.models.mixers import matrix_state
from qstr_jax.models.mixers.deltanet import delta_inputs
from qstr_jax.models.mixers.registered import register


@register('gated_deltanet')
class GatedDeltaNet(matrix_state.NormedMemory):
    """DeltaNet whose memory also decays, with a gate on its outputs.

    S ← e^g (I − β k k^T) S + β k v^T,    o = S^T q / √K,    g = −e^a softplus(w^T x + b)
    """

    @nn.compact
    def __call__(self, x_NxW: jax.Array) -> jax.Array:
        _, g_NxH = matrix_state.step_decay(self, x_NxW, self.heads)
        inputs = delta_inputs(x_NxW, self.heads, self.head_dim)._replace(g_NxHxG=g_NxH[:, :, None])
        return self.read(inputs, x_NxW)
