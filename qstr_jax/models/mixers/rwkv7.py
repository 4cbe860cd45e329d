"""RWKV-7 "Goose" (Peng et al., arXiv:2503.14456): a generalised delta rule with decays and rates for each key."""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from qstr_jax.models import carry
from qstr_jax.models.mixers import matrix_state
from qstr_jax.models.mixers.registered import register

# Of the initial maps to r, k and v.
_SCALES = {'r': 0.5, 'k': 0.05, 'v': 0.5}


@register('rwkv7')
class RWKV7(nn.Module):
    """S ← (diag(w) − κ̂ (a ∘ κ̂)^T)^T S + k̃ v^T, o = S^T r, where each input mixes a token with the one before it.

    w = exp(−e^{−1/2} σ(b + tanh(x A) B)), a = σ(b + x A B), κ̂ = κ / ‖κ‖ with κ = k ∘ ξ, k̃ = k ∘ (1 + (a − 1) ∘ α).
    (r · ρ k̃) v is added to the normalised o, and a gate σ(x A) B multiplies the sum. Values are not mixed over layers.
    Initial values are those of the first layer in RWKV-LM (its RWKV-v7/train_temp/src/model.py), at any depth.

    Attributes:
        heads: H.
        head_dim: K = V, width of keys and values.
        rank: of the maps to w, a and the gate.
        output: 'gated' (normalised in each head, then gated), 'normed' (no gate), 'unnormed' (no norm) or 'plain'.
    """

    heads: int = 2
    head_dim: int = 16
    rank: int = 16
    output: matrix_state.Output = 'gated'

    @nn.compact
    def __call__(self, x_NxW: jax.Array) -> jax.Array:
        mixed = dict(zip('rwkvag', self._mixes(x_NxW), strict=True))
        r, k, v = (self._heads_of(name, mixed[name], _uniform(scale)) for name, scale in _SCALES.items())
        place, in_head = self._places()
        decay_bias, rate_bias = -5.5 + 6 * place + 2.5 * in_head, -0.19 + 0.3 * in_head + 0.4 * (place - 0.5)
        log_w = -jnp.exp(-0.5) * jax.nn.sigmoid(self._low_rank('decay', mixed['w'], jnp.tanh, decay_bias))
        a = jax.nn.sigmoid(self._low_rank('rate', mixed['a'], lambda x: x, rate_bias))
        removal = matrix_state.unit(k * self._per_key('removal_scale', 0.76 - 0.1 * place), eps=1e-12)
        k = k * (1 + (a - 1) * self._per_key('key_rate', 1.02))
        start_HxKxV = jnp.zeros((self.heads, self.head_dim, self.head_dim))
        o_NxHxV = carry.scan(self, _step, start_HxKxV, (r, log_w, k, v, -removal, removal * a))
        if self.output in matrix_state.NORMED:
            o_NxHxV = nn.LayerNorm(epsilon=64e-5, feature_axes=(-2, -1), name='head_norm')(o_NxHxV)
        bonus_NxHx1 = jnp.sum(r * k * self._per_key('bonus', -0.04), axis=-1, keepdims=True)
        gate = self._low_rank('gate', mixed['g'], jax.nn.sigmoid) if self.output in matrix_state.GATED else None
        o_NxHxV = o_NxHxV + bonus_NxHx1 * v
        o_NxHxV = o_NxHxV if gate is None else o_NxHxV * gate
        return matrix_state.merged(o_NxHxV, x_NxW.shape[-1], nn.initializers.zeros)

    def _mixes(self, x_NxW: jax.Array) -> list[jax.Array]:
        """Six mixes of each token with the one before it."""
        before_NxW = carry.before(self, 'token', x_NxW)
        width = x_NxW.shape[-1]
        start_6xW = 1 - (np.arange(width) / width) ** np.array([0.2, 0.9, 0.7, 0.7, 0.9, 0.2])[:, None]
        share_6xW = self.param('token_shift', lambda key: jnp.float32(start_6xW))
        return [x_NxW + (before_NxW - x_NxW) * share_W[None] for share_W in share_6xW]

    def _heads_of(self, name: str, x_NxW: jax.Array, kernel_init: nn.initializers.Initializer) -> jax.Array:
        return matrix_state.heads_of(name, x_NxW, self.heads, self.head_dim, kernel_init)

    def _low_rank(
        self, name: str, x_NxW: jax.Array, inner: Callable[[jax.Array], jax.Array], bias_HxK: np.ndarray | None = None
    ) -> jax.Array:
        small = inner(nn.Dense(self.rank, use_bias=False, kernel_init=nn.initializers.zeros, name=f'{name}_in')(x_NxW))
        gain = 0.1 * math.sqrt(max(self.rank / (self.heads * self.head_dim), 1))
        out = self._heads_of(f'{name}_out', small, nn.initializers.orthogonal(gain))
        return out if bias_HxK is None else out + self._per_key(f'{name}_bias', bias_HxK)

    def _per_key(self, name: str, start: np.ndarray | float) -> jax.Array:
        return self.param(name, lambda key: jnp.broadcast_to(jnp.float32(start), (self.heads, self.head_dim)))[None]

    def _places(self) -> tuple[np.ndarray, np.ndarray]:
        """Where each key stands among all, from 0 to 1, and in its head, from −1 to 1 and squared with its sign."""
        count = self.heads * self.head_dim
        place = np.arange(count) / max(count - 1, 1)
        in_head = np.linspace(-1.0, 1.0, self.head_dim) if self.head_dim > 1 else np.zeros(1)
        return place.reshape(self.heads, self.head_dim), in_head * np.abs(in_head)

    def state_size(self, width: int, seq_len: int) -> int:
        """The matrices, and the token before."""
        return self.heads * self.head_dim**2 + width


def _uniform(scale: float) -> nn.initializers.Initializer:
    """U(−s/√W, s/√W) for inputs of width W."""

    def init(key: jax.Array, shape: tuple[int, ...], dtype: object = None) -> jax.Array:
        limit = scale / math.sqrt(shape[0])
        return jax.random.uniform(key, shape, minval=-limit, maxval=limit)

    return init


def _step(state_HxKxV: jax.Array, one: tuple[jax.Array, ...]) -> tuple[jax.Array, jax.Array]:
    r_HxK, log_w_HxK, k_HxK, v_HxV, a_HxK, b_HxK = one
    removed_HxV = jnp.einsum('hk,hkv->hv', a_HxK, state_HxKxV)
    state_HxKxV = (
        jnp.exp(log_w_HxK)[:, :, None] * state_HxKxV
        + b_HxK[:, :, None] * removed_HxV[:, None, :]
        + k_HxK[:, :, None] * v_HxV[:, None, :]
    )
    return state_HxKxV, jnp.einsum('hk,hkv->hv', r_HxK, state_HxKxV)
