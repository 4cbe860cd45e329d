"""Kimi Delta Attention (Kimi Team, arXiv:2510.26692): the delta rule with a decay for each key."""

import jax
import jax.numpy as jnp
from flax import linen as nn

from qstr_jax.models.mixers import matrix_state
from qstr_jax.models.mixers.deltanet import delta_inputs
from qstr_jax.models.mixers.registered import register


@register('kda')
class KimiDeltaAttention(matrix_state.NormedMemory):
    """Gated DeltaNet with a decay of its own for each coordinate of the key, from a low-rank map.

        S ← (I − β k k^T) diag(e^g) S + β k v^T,    o = S^T q / √K,    g = −e^a softplus(W₂ W₁ x + b)

    Attributes:
        head_dim: K = V, width of keys and values, and the rank of the maps to decays and gates.
    """

    @nn.compact
    def __call__(self, x_NxW: jax.Array) -> jax.Array:
        inputs = delta_inputs(x_NxW, self.heads, self.head_dim)._replace(g_NxHxG=self._log_decay(x_NxW))
        return self.read(inputs, x_NxW)

    def gate(self, x_NxW: jax.Array) -> jax.Array:
        return jax.nn.sigmoid(self._low_rank('gate', x_NxW))

    def _low_rank(self, name: str, x_NxW: jax.Array) -> jax.Array:
        small = nn.Dense(self.head_dim, use_bias=False, name=f'{name}_in')(x_NxW)
        return self.heads_of(f'{name}_out', small)

    def _log_decay(self, x_NxW: jax.Array) -> jax.Array:
        rate_H = self.param('log_rate', matrix_state.log_rate, (self.heads,))
        bias_HxK = self.param('step_bias', matrix_state.step_bias, (self.heads, self.head_dim))
        step_NxHxK = jax.nn.softplus(self._low_rank('step', x_NxW) + bias_HxK[None])
        return -jnp.exp(rate_H)[None, :, None] * step_NxHxK
