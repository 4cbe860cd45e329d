"""RG-LRU of Griffin (De et al., arXiv:2402.19427): a gated recurrence of numbers."""

import jax
import jax.numpy as jnp
from flax import linen as nn

from qstr_jax.models import carry
from qstr_jax.models.mixers import diagonal
from qstr_jax.models.mixers.registered import register

# c of the decay a^{c r}.
SHARPNESS = 8.0
# Griffin's code bounds the derivative of √x at x = 1 − a² by this; where the gate r is shut, a = 1, it is infinite.
STEEPEST = 1000.0


@register('rg_lru')
class RGLRU(nn.Module):
    """h ← a h + √(1 − a²) (i ∘ u), with a = exp(−8 r softplus(Λ)), gates r and i of the token, and a GELU branch.

    The gates are block-diagonal maps of u, one block for each head. The first token is added whole.

    Attributes:
        heads: blocks of the gates' maps, which have 2 state_dim²/heads weights.
        state_dim: numbers of the state, a multiple of heads.
        form: 'parallel', an associative scan, or 'recurrent'; the results agree.
    """

    heads: int = 8
    state_dim: int = 64
    form: diagonal.Form = 'parallel'

    @nn.compact
    def __call__(self, x_NxW: jax.Array) -> jax.Array:
        if self.state_dim % self.heads:
            raise ValueError(f'rg_lru.state_dim={self.state_dim}: must be a multiple of heads={self.heads}')
        u_NxF = nn.Dense(self.state_dim, name='value')(x_NxW)
        input_gate_NxF, recurrent_gate_NxF = (jax.nn.sigmoid(self._blocks(f'{name}_gate', u_NxF)) for name in
                                              ('input', 'recurrent'))  # fmt: skip
        log_a_NxF = (
            -SHARPNESS * recurrent_gate_NxF * jax.nn.softplus(self.param('decay', _decay, u_NxF.shape[1:]))[None]
        )
        scale_NxF = _root(-jnp.expm1(2 * log_a_NxF))
        if carry.start(self, 'state', None) is None:
            scale_NxF = scale_NxF.at[0].set(1.0)
        h_NxF = diagonal.run(self, jnp.exp(log_a_NxF), scale_NxF * input_gate_NxF * u_NxF, self.form)
        gate_NxF = jax.nn.gelu(nn.Dense(self.state_dim, name='gate')(x_NxW))
        return nn.Dense(x_NxW.shape[-1], name='out')(h_NxF * gate_NxF)

    def _blocks(self, name: str, u_NxF: jax.Array) -> jax.Array:
        """A block-diagonal map with bias."""
        size = self.state_dim // self.heads
        init = nn.initializers.lecun_normal(in_axis=1, out_axis=2, batch_axis=(0,))
        kernel_HxAxA = self.param(f'{name}_kernel', init, (self.heads, size, size))
        bias_F = self.param(f'{name}_bias', nn.initializers.zeros, (self.state_dim,))
        heads_NxHxA = u_NxF.reshape(len(u_NxF), self.heads, size)
        return jnp.einsum('nha,hab->nhb', heads_NxHxA, kernel_HxAxA).reshape(u_NxF.shape) + bias_F[None]

    def state_size(self, width: int, seq_len: int) -> int:
        return self.state_dim


@jax.custom_jvp
def _root(x: jax.Array) -> jax.Array:
    """√x with a bounded derivative."""
    return jnp.sqrt(x)


@_root.defjvp
def _root_jvp(primals: tuple[jax.Array], tangents: tuple[jax.Array]) -> tuple[jax.Array, jax.Array]:
    root = jnp.sqrt(*primals)
    return root, tangents[0] * jnp.minimum(0.5 / root, STEEPEST)


def _decay(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """Λ with exp(−8 softplus(Λ)) = √U, U from U(0.9², 0.999²): |a| lies between 0.9 and 0.999 at open gates.

    As in the paper; RecurrentGemma leaves out the 8, so that its memories are eight times shorter.
    """
    squared = jax.random.uniform(key, shape, minval=0.9**2, maxval=0.999**2)
    return jnp.log(jnp.expm1(-0.5 * jnp.log(squared) / SHARPNESS))
