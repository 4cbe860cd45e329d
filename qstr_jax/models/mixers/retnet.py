"""RetNet (Sun et al., arXiv:2307.08621): linear attention whose memory decays at a fixed rate per head."""

import jax
import jax.numpy as jnp
from flax import linen as nn

from qstr_jax.models import carry
from qstr_jax.models.mixers import matrix_state
from qstr_jax.models.mixers.attention import rotated
from qstr_jax.models.mixers.registered import register


@register('retnet')
class Retention(matrix_state.NormedMemory):
    """Retention: S ← γ_h S + k v^T, o = S^T q / √K, with γ_h = 1 − 2^{−5−h} and RoPE on queries and keys.

    The outputs of each head are normalised and gated by SiLU.
    """

    @nn.compact
    def __call__(self, x_NxW: jax.Array) -> jax.Array:
        q, k, v = (self.heads_of(name, x_NxW) for name in ('query', 'key', 'value'))
        log_decay_H = jnp.log1p(-(2.0 ** (-5.0 - jnp.arange(self.heads))))
        g_NxHx1 = jnp.broadcast_to(log_decay_H[None, :, None], (len(x_NxW), self.heads, 1))
        first = carry.start(self, 'position', jnp.zeros((), int))
        carry.keep(self, 'position', first + len(x_NxW))
        inputs = matrix_state.Inputs(self.head_dim**-0.5 * rotated(q, first), rotated(k, first), v, g_NxHx1)
        return self.read(inputs, x_NxW)
