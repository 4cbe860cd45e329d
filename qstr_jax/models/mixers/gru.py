"""The GRU (Cho et al., arXiv:1406.1078), the paper's recurrent network, in one direction."""

import jax
import jax.numpy as jnp
from flax import linen as nn

from qstr_jax.models import carry, gated_cell, initializers
from qstr_jax.models.mixers.registered import register


@register('gru')
class GRU(nn.Module):
    """h ← (1 − z) ∘ n + z ∘ h, with z, r = σ(W x + U h + b) and n = tanh(W x + b + r ∘ (U h + b')).

    U starts orthogonal, gate by gate.

    Attributes:
        state_dim: numbers of the state.
    """

    state_dim: int = 64

    @nn.compact
    def __call__(self, x_NxW: jax.Array) -> jax.Array:
        gates = gated_cell.GATES['gru']
        shape = (1, self.state_dim, gates.num_gates * self.state_dim)
        kernel = self.param('hidden_kernel', initializers.recurrent('flax', self.state_dim, gates.num_gates), shape)[0]
        bias = self.param('hidden_bias', nn.initializers.zeros, shape[2:])

        def step(state: gated_cell.Carry, input_G: jax.Array) -> tuple[gated_cell.Carry, jax.Array]:
            state = gates.update(state, input_G, state[0] @ kernel + bias)
            return state, state[0]

        inputs_NxG = nn.Dense(shape[2], name='input')(x_NxW)
        h_NxF = carry.scan(self, step, (jnp.zeros(self.state_dim),), inputs_NxG)
        return nn.Dense(x_NxW.shape[-1], name='out')(h_NxF)

    def state_size(self, width: int, seq_len: int) -> int:
        return self.state_dim
