r"""Recurrences whose state is a matrix S (K × V) per head: a memory that maps keys to values.

    S_i = diag(e^{g_i}) S_{i−1} + k_i v_i^T                               (decay; g_i is one number per head, or K)
    S_i = (I − β_i k_i k_i^T) diag(e^{g_i}) S_{i−1} + β_i k_i v_i^T       (delta rule; Yang et al., arXiv:2406.06484)
    o_i = S_i^T q_i

The 'recurrent' form runs over tokens, the 'parallel' form over chunks of tokens: within a chunk it takes products of
all pairs. With G the cumulated g, these are weighted by e^{G_i − G_j} for i ≥ j, and the delta rule replaces V by the
solution U of (I + strict lower part of diag(β) K K^T) U = diag(β) (V − K S), where the products are weighted as well.
"""

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from qstr_jax.models import carry

Form = Literal['parallel', 'recurrent']
# Tokens of a chunk, the fastest on two cores. With a decay per key the products of all pairs have an axis of keys.
CHUNK, CHUNK_PER_KEY = 16, 4


class Inputs(NamedTuple):
    """What the recurrence reads: queries and keys (N, H, K), values (N, H, V), log decays g ≤ 0 and β (N, H) or None.

    g is (N, H, 1) or (N, H, K).
    """

    q_NxHxK: jax.Array
    k_NxHxK: jax.Array
    v_NxHxV: jax.Array
    g_NxHxG: jax.Array
    beta_NxH: jax.Array | None = None


class MatrixMemory(nn.Module):
    """What mixers with a square matrix per head share: their settings, the size of their state, and a gated output."""

    heads: int = 2
    head_dim: int = 16
    form: Form = 'parallel'

    def heads_of(self, name: str, x_NxW: jax.Array) -> jax.Array:
        """A projection of each token to the heads, (N, H, K)."""
        return heads_of(name, x_NxW, self.heads, self.head_dim)

    def gated_output(self, inputs: Inputs, x_NxW: jax.Array) -> jax.Array:
        """Outputs (N, W) of the recurrence, normalised in each head and gated by SiLU."""
        o_NxHxV = nn.RMSNorm(name='head_norm')(run(self, inputs, self.form))
        return merged(o_NxHxV * jax.nn.silu(self.heads_of('gate', x_NxW)), x_NxW.shape[-1])

    def state_size(self, width: int, seq_len: int) -> int:
        """Numbers of all matrices."""
        return self.heads * self.head_dim**2


def run(module: nn.Module, inputs: Inputs, form: Form) -> jax.Array:
    """Outputs (N, H, V) of the recurrence, in one of its forms."""
    num_tokens, num_heads, key_dim = inputs.k_NxHxK.shape
    start_HxKxV = jnp.zeros((num_heads, key_dim, inputs.v_NxHxV.shape[-1]))
    if form == 'recurrent':
        return carry.scan(module, _step, start_HxKxV, inputs)
    size = min(num_tokens, CHUNK if inputs.g_NxHxG.shape[-1] == 1 else CHUNK_PER_KEY)
    padding = -num_tokens % size
    # Keys, values and decays of zero leave the state as it is.
    chunks = jax.tree.map(
        lambda leaf: jnp.pad(leaf, ((0, padding),) + ((0, 0),) * (leaf.ndim - 1)).reshape(-1, size, *leaf.shape[1:]),
        inputs,
    )
    o_CxSxHxV = carry.scan(module, _chunk, start_HxKxV, chunks)
    return o_CxSxHxV.reshape(num_tokens + padding, *o_CxSxHxV.shape[2:])[:num_tokens]


def _step(state_HxKxV: jax.Array, one: Inputs) -> tuple[jax.Array, jax.Array]:
    """One token."""
    q_HxK, k_HxK, v_HxV, g_HxG, beta_H = one
    state_HxKxV = state_HxKxV * jnp.exp(g_HxG)[:, :, None]
    if beta_H is not None:
        v_HxV = beta_H[:, None] * (v_HxV - jnp.einsum('hk,hkv->hv', k_HxK, state_HxKxV))
    state_HxKxV = state_HxKxV + k_HxK[:, :, None] * v_HxV[:, None, :]
    return state_HxKxV, jnp.einsum('hk,hkv->hv', q_HxK, state_HxKxV)


def _chunk(state_HxKxV: jax.Array, chunk: Inputs) -> tuple[jax.Array, jax.Array]:
    """The tokens of a chunk together."""
    q, k, v_NxHxV, g, beta_NxH = chunk
    total = jnp.cumsum(g, axis=0)
    if beta_NxH is not None:
        known_NxHxV = jnp.einsum('nhk,hkv->nhv', k * jnp.exp(total), state_HxKxV)
        overlap_HxNxN = beta_NxH.T[:, :, None] * _products(k, k, total)
        target_NxHxV = beta_NxH[:, :, None] * (v_NxHxV - known_NxHxV)
        v_NxHxV = jnp.einsum('hij,jhv->ihv', _inverse(overlap_HxNxN), target_NxHxV)
    o_NxHxV = jnp.einsum('nhk,hkv->nhv', q * jnp.exp(total), state_HxKxV)
    o_NxHxV = o_NxHxV + jnp.einsum('hij,jhv->ihv', _products(q, k, total), v_NxHxV)
    left = k * jnp.exp(total[-1:] - total)
    state_HxKxV = state_HxKxV * jnp.exp(total[-1])[:, :, None] + jnp.einsum('nhk,nhv->hkv', left, v_NxHxV)
    return state_HxKxV, o_NxHxV


def _inverse(lower_HxNxN: jax.Array) -> jax.Array:
    """(I + strict lower part)^{-1}, by blocks of 1, 2, 4, … rows: a pair's inverse is made of those of its two blocks.

    LAPACK's batched solvers are not used: on a CPU two of them at once, as in two directions, can wait for each
    other's threads for ever (jaxlib 0.10).
    """
    size = lower_HxNxN.shape[-1]
    block, row_N = 1, np.arange(size)
    inverse_HxNxN = jnp.broadcast_to(jnp.eye(size), lower_HxNxN.shape)
    while block < size:
        place_N = row_N // block
        is_corner_NxN = (place_N[:, None] == place_N[None, :] + 1) & (place_N[:, None] % 2 == 1)
        corner_HxNxN = jnp.where(is_corner_NxN, lower_HxNxN, 0)
        inverse_HxNxN = inverse_HxNxN - inverse_HxNxN @ corner_HxNxN @ inverse_HxNxN
        block *= 2
    return inverse_HxNxN


def _products(q_NxHxK: jax.Array, k_NxHxK: jax.Array, total_NxHxG: jax.Array) -> jax.Array:
    """Σ_k q_ik k_jk e^{G_ik − G_jk} for i ≥ j, zero otherwise, (H, N, N)."""
    is_past_NxN = jnp.tril(jnp.ones((len(q_NxHxK),) * 2, bool))
    # Masked before the exponential: for later tokens it could overflow, and its gradient with it.
    exponent = jnp.where(is_past_NxN[:, :, None, None], total_NxHxG[:, None] - total_NxHxG[None], -jnp.inf)
    decay_NxNxHxG = jnp.exp(exponent)
    if total_NxHxG.shape[-1] == 1:
        return jnp.einsum('ihk,jhk->hij', q_NxHxK, k_NxHxK) * jnp.moveaxis(decay_NxNxHxG[..., 0], 2, 0)
    return jnp.einsum('ihk,jhk,ijhk->hij', q_NxHxK, k_NxHxK, decay_NxNxHxG)


def unit(x: jax.Array, eps: float = 1e-6) -> jax.Array:
    """x / ‖x‖ along the last axis."""
    return x * jax.lax.rsqrt(jnp.sum(jnp.square(x), axis=-1, keepdims=True) + eps)


def heads_of(name: str, x_NxW: jax.Array, heads: int, dim: int) -> jax.Array:
    """A projection of each token to heads, (N, H, dim); called inside a compact module."""
    return nn.DenseGeneral((heads, dim), use_bias=False, name=name)(x_NxW)


def merged(o_NxHxV: jax.Array, width: int) -> jax.Array:
    """Heads side by side, projected to the width of the sequence; called inside a compact module."""
    return nn.DenseGeneral(width, axis=(-2, -1), use_bias=False, name='out')(o_NxHxV)


def log_rate(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """a with e^a from U(1, 16), as Mamba-2 starts its decays."""
    return jnp.log(jax.random.uniform(key, shape, minval=1.0, maxval=16.0))


def step_bias(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """b with softplus(b) log-uniform in 0.001 … 0.1, as Mamba-2 starts its steps."""
    step = jnp.exp(jax.random.uniform(key, shape, minval=jnp.log(1e-3), maxval=jnp.log(1e-1)))
    return step + jnp.log(-jnp.expm1(-step))  # the inverse of softplus


def step_decay(module: nn.Module, x_NxW: jax.Array, heads: int) -> tuple[jax.Array, jax.Array]:
    """Δ = softplus(w^T x + b) and g = −e^a Δ, (N, H) each; called inside a compact module."""
    rate_H = jnp.exp(module.param('log_rate', log_rate, (heads,)))
    bias_H = module.param('step_bias', step_bias, (heads,))
    step_NxH = jax.nn.softplus(nn.Dense(heads, use_bias=False, name='step')(x_NxW) + bias_H[None])
    return step_NxH, -rate_H[None] * step_NxH
