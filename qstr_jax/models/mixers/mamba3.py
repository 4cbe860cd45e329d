"""Mamba-3 (Lahoti et al., arXiv:2603.15569): a state space model with a trapezoidal rule and rotating keys."""

import jax
import jax.numpy as jnp
from flax import linen as nn

from qstr_jax.models import carry
from qstr_jax.models.mixers import matrix_state
from qstr_jax.models.mixers.registered import register

# Least decay rate.
RATE_FLOOR = 1e-4


@register('mamba3')
class Mamba3(nn.Module):
    """S ← e^g (S + (1 − λ) Δ k' v'^T) + λ Δ k v^T, y = S^T q + D v, where k' and v' belong to the token before.

    g = −ρ(w^T x) Δ with ρ(u) = 1 + u for u ≥ 0 and 1/(1 − u) below, Δ = softplus(w^T x + b), λ = σ(w^T x). Keys and
    queries are normed, get a bias per head, and turn by the cumulated angle π Δ tanh(W x). The output is gated by SiLU.

    Attributes:
        heads: H.
        head_dim: V, width of each head's values.
        state_dim: K, width of keys and queries, which the heads share; half of it is rotated, so a multiple of 4.
        form: 'parallel' over chunks of tokens, or 'recurrent'; the results agree.
    """

    heads: int = 2
    head_dim: int = 16
    state_dim: int = 16
    form: matrix_state.Form = 'parallel'

    @nn.compact
    def __call__(self, x_NxW: jax.Array) -> jax.Array:
        if self.state_dim % 4:
            raise ValueError(f'mamba3.state_dim={self.state_dim}: must be a multiple of 4')
        v_NxHxV = matrix_state.heads_of('value', x_NxW, self.heads, self.head_dim)
        step_bias_H = self.param('step_bias', matrix_state.step_bias, (self.heads,))
        step_NxH = jax.nn.softplus(self._per_head('step', x_NxW) + step_bias_H[None])
        share_NxH = jax.nn.sigmoid(self._per_head('share', x_NxW))
        g_NxH = -jnp.maximum(_rate(self._per_head('rate', x_NxW)), RATE_FLOOR) * step_NxH
        angle_NxHxA = self._angle(x_NxW, step_NxH)
        q_NxHxK, k_NxHxK = (_turned(self._key(name, x_NxW), angle_NxHxA) for name in ('query', 'key'))
        late_NxH = share_NxH * step_NxH
        # A token's key enters the state with the next token, both terms in one update; its own output is added apart.
        weight_NxH = jnp.exp(g_NxH) * (carry.before(self, 'late_before', late_NxH) + (1 - share_NxH) * step_NxH)
        inputs = matrix_state.Inputs(
            q_NxHxK,
            weight_NxH[:, :, None] * carry.before(self, 'key_before', k_NxHxK),
            carry.before(self, 'value_before', v_NxHxV),
            g_NxH[:, :, None],
        )
        own_NxH = late_NxH * jnp.sum(q_NxHxK * k_NxHxK, axis=-1)
        o_NxHxV = matrix_state.run(self, inputs, self.form) + own_NxH[:, :, None] * v_NxHxV
        skip_H = self.param('skip', nn.initializers.ones, (self.heads,))
        gate_NxHxV = matrix_state.heads_of('gate', x_NxW, self.heads, self.head_dim)
        o_NxHxV = (o_NxHxV + skip_H[None, :, None] * v_NxHxV) * jax.nn.silu(gate_NxHxV)
        return matrix_state.merged(o_NxHxV, x_NxW.shape[-1])

    def _per_head(self, name: str, x_NxW: jax.Array) -> jax.Array:
        return nn.Dense(self.heads, use_bias=False, name=name)(x_NxW)

    def _key(self, name: str, x_NxW: jax.Array) -> jax.Array:
        """Keys or queries (N, H, K) before they turn."""
        k_NxK = nn.Dense(self.state_dim, use_bias=False, name=name)(x_NxW)
        k_NxK = nn.RMSNorm(epsilon=1e-5, name=f'{name}_norm')(k_NxK)
        return k_NxK[:, None] + self.param(f'{name}_bias', nn.initializers.ones, (self.heads, self.state_dim))[None]

    def _angle(self, x_NxW: jax.Array, step_NxH: jax.Array) -> jax.Array:
        turn_NxA = jnp.pi * jnp.tanh(nn.Dense(self.state_dim // 4, use_bias=False, name='angle')(x_NxW))
        return carry.cumulated(self, 'angle_before', step_NxH[:, :, None] * turn_NxA[:, None, :])

    def state_size(self, width: int, seq_len: int) -> int:
        """Matrices, angles, and key, value and weight of the token before."""
        return self.heads * (self.state_dim * self.head_dim + self.state_dim // 4 + self.state_dim + self.head_dim + 1)


def _rate(u: jax.Array) -> jax.Array:
    """1 + u for u ≥ 0, 1/(1 − u) below."""
    return jnp.maximum(u, 0.0) + 1 / (1 - jnp.minimum(u, 0.0))


def _turned(x_NxHxK: jax.Array, angle_NxHxA: jax.Array) -> jax.Array:
    """Turns the first A of the pairs of neighbouring coordinates."""
    pairs = x_NxHxK.reshape(*x_NxHxK.shape[:-1], -1, 2)
    turns = angle_NxHxA.shape[-1]
    first, second = pairs[..., :turns, 0], pairs[..., :turns, 1]
    cos, sin = jnp.cos(angle_NxHxA), jnp.sin(angle_NxHxA)
    turned = jnp.stack([first * cos - second * sin, first * sin + second * cos], axis=-1)
    return jnp.concatenate([turned, pairs[..., turns:, :]], axis=-2).reshape(x_NxHxK.shape)
