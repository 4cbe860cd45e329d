"""minGRU (Feng et al., arXiv:2410.01201): a GRU whose gates do not see the state, so it can be an associative scan."""

import jax
from flax import linen as nn

from qstr_jax.models.mixers import diagonal
from qstr_jax.models.mixers.registered import register


@register('min_gru')
class MinGRU(nn.Module):
    """h ← (1 − z) h + z g(u), with z = σ(W x) and g(u) = u + 1/2 where u ≥ 0, σ(u) elsewhere.

    Attributes:
        state_dim: numbers of the state.
        form: 'parallel', an associative scan, or 'recurrent'; the results agree.
    """

    state_dim: int = 64
    form: diagonal.Form = 'parallel'

    @nn.compact
    def __call__(self, x_NxW: jax.Array) -> jax.Array:
        z_NxF = jax.nn.sigmoid(nn.Dense(self.state_dim, name='update')(x_NxW))
        u_NxF = nn.Dense(self.state_dim, name='value')(x_NxW)
        new_NxF = jax.numpy.where(u_NxF >= 0, u_NxF + 0.5, jax.nn.sigmoid(u_NxF))
        h_NxF = diagonal.run(self, 1 - z_NxF, z_NxF * new_NxF, self.form)
        return nn.Dense(x_NxW.shape[-1], name='out')(h_NxF)

    def state_size(self, width: int, seq_len: int) -> int:
        return self.state_dim
