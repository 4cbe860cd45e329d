"""RWKV-7 "Goose" (Peng et al., arXiv:2503.14456): a generalised delta rule with decays and rates for each key."""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from flax import linen as nn

from qstr_jax.models import carry
from qstr_jax.models.mixers import matrix_state
from qstr_jax.models.mixers.registered import register


@register('rwkv7')
class RWKV7(nn.Module):
    """S ← (diag(w) − κ̂ (a ∘ κ̂)^T)^T S + k̃ v^T, o = S^T r, where each input mixes a token with the one before it.

    w = exp(−e^{−1/2} σ(b + tanh(x A) B)), a = σ(b + x A B), κ̂ = κ / ‖κ‖ with κ = k ∘ ξ, k̃ = k ∘ (1 + (a − 1) ∘ α).
    (r · ρ k̃) v is added to the normalised o, and a gate σ(x A) B multiplies the sum. Values are not mixed over layers,
    and initial values differ from those of RWKV-LM.

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
        r, k, v = (matrix_state.heads_of(name, mixed[name], self.heads, self.head_dim) for name in 'rkv')
        log_w = -jnp.exp(-0.5) * jax.nn.sigmoid(self._low_rank('decay', mixed['w'], jnp.tanh, bias=_slow_to_fast))
        a = jax.nn.sigmoid(self._low_rank('rate', mixed['a'], lambda x: x, bias=nn.initializers.zeros))
        removal = matrix_state.unit(k * self._per_key('removal_scale', 1.0), eps=1e-12)
        k = k * (1 + (a - 1) * self._per_key('key_rate', 1.0))
        start_HxKxV = jnp.zeros((self.heads, self.head_dim, self.head_dim))
        o_NxHxV = carry.scan(self, _step, start_HxKxV, (r, log_w, k, v, -removal, removal * a))
        if self.output in matrix_state.NORMED:
            o_NxHxV = nn.LayerNorm(epsilon=64e-5, feature_axes=(-2, -1), name='head_norm')(o_NxHxV)
        bonus_NxHx1 = jnp.sum(r * k * self._per_key('bonus', 0.0), axis=-1, keepdims=True)
        gate = self._low_rank('gate', mixed['g'], jax.nn.sigmoid) if self.output in matrix_state.GATED else None
        o_NxHxV = o_NxHxV + bonus_NxHx1 * v
        o_NxHxV = o_NxHxV if gate is None else o_NxHxV * gate
        return matrix_state.merged(o_NxHxV, x_NxW.shape[-1])

    def _mixes(self, x_NxW: jax.Array) -> list[jax.Array]:
        """Six mixes of each token with the one before it."""
        before_NxW = carry.before(self, 'token', x_NxW)
        share_6xW = self.param('token_shift', nn.initializers.constant(0.5), (6, x_NxW.shape[-1]))
        return [x_NxW + (before_NxW - x_NxW) * share_W[None] for share_W in share_6xW]

    def _low_rank(
        self,
        name: str,
        x_NxW: jax.Array,
        inner: Callable[[jax.Array], jax.Array],
        bias: nn.initializers.Initializer | None = None,
    ) -> jax.Array:
        small = inner(nn.Dense(self.rank, use_bias=False, name=f'{name}_in')(x_NxW))
        out = matrix_state.heads_of(f'{name}_out', small, self.heads, self.head_dim)
        return out if bias is None else out + self.param(f'{name}_bias', bias, out.shape[1:])[None]

    def _per_key(self, name: str, value: float) -> jax.Array:
        return self.param(name, nn.initializers.constant(value), (self.heads, self.head_dim))[None]

    def state_size(self, width: int, seq_len: int) -> int:
        """The matrices, and the token before."""
        return self.heads * self.head_dim**2 + width


def _slow_to_fast(key: jax.Array, shape: tuple[int, ...], dtype: object = None) -> jax.Array:
    """Biases of the decays: from memories that last for a thousand tokens to ones that last for ten."""
    share = jnp.arange(math.prod(shape)) / max(math.prod(shape) - 1, 1)
    return (-6.5 + 5 * share**0.85).reshape(shape)


def _step(state_HxKxV: jax.Array, one: tuple[jax.Array, ...]) -> tuple[jax.Array, jax.Array]:
    r_HxK, log_w_HxK, k_HxK, v_HxV, a_HxK, b_HxK = one
    removed_HxV = jnp.einsum('hk,hkv->hv', a_HxK, state_HxKxV)
    state_HxKxV = (
        jnp.exp(log_w_HxK)[:, :, None] * state_HxKxV
        + b_HxK[:, :, None] * removed_HxV[:, None, :]
        + k_HxK[:, :, None] * v_HxV[:, None, :]
    )
    return state_HxKxV, jnp.einsum('hk,hkv->hv', r_HxK, state_HxKxV)
