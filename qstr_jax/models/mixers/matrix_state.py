r"""Recurrences whose state is a matrix S (K × V) per head: a memory that maps keys to values.

    S_i = diag(e^{g_i}) S_{i−1} + k_i v_i^T                               (decay; g_i of one number per head, or K)
    S_i = (I − β_i k_i k_i^T) diag(e^{g_i}) S_{i−1} + β_i k_i v_i^T       (delta rule; Yang et al., arXiv:2406.06484)
    o_i = S_i^T q_i

`recurrent` runs over tokens. The parallel forms take O(N²) products and no loop. With L_ij = e^{g_{j+1} + … + g_i} for
i ≥ j, decay is O = (Q K^T ∘ L) V, and the delta rule replaces V by the solution U of
(I + strict lower part of (diag(β) K K^T ∘ L)) U = diag(β) V.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import linen as nn

from qstr_jax.models.mixers.mixer import scan


class Inputs(NamedTuple):
    """What the recurrence reads: queries and keys (N, H, K), values (N, H, V), log decays g (N, H) or (N, H, K), β."""

    q_NxHxK: jax.Array
    k_NxHxK: jax.Array
    v_NxHxV: jax.Array
    g: jax.Array | None = None
    beta_NxH: jax.Array | None = None


def recurrent(module: nn.Module, inputs: Inputs) -> jax.Array:
    """Outputs (N, H, V), token after token."""
    _, num_heads, key_dim = inputs.k_NxHxK.shape
    start_HxKxV = jnp.zeros((num_heads, key_dim, inputs.v_NxHxV.shape[-1]))

    def step(state_HxKxV: jax.Array, one: Inputs) -> tuple[jax.Array, jax.Array]:
        q_HxK, k_HxK, v_HxV, g, beta_H = one
        if g is not None:
            state_HxKxV = state_HxKxV * jnp.exp(g)[(...,) + (None,) * (3 - g.ndim)]
        if beta_H is not None:
            known_HxV = jnp.einsum('hk,hkv->hv', k_HxK, state_HxKxV)
            v_HxV = beta_H[:, None] * (v_HxV - known_HxV)
        state_HxKxV = state_HxKxV + k_HxK[:, :, None] * v_HxV[:, None, :]
        return state_HxKxV, jnp.einsum('hk,hkv->hv', q_HxK, state_HxKxV)

    return scan(module, step, start_HxKxV, inputs)


def parallel(inputs: Inputs) -> jax.Array:
    """The same without a loop; g has one number per head here."""
    q_HxNxK, k_HxNxK, v_HxNxV = (jnp.swapaxes(part, 0, 1) for part in inputs[:3])
    decay_HxNxN = _decay(inputs)
    if inputs.beta_NxH is not None:
        beta_HxN = inputs.beta_NxH.T
        overlap_HxNxN = jnp.einsum('hik,hjk->hij', k_HxNxK, k_HxNxK) * decay_HxNxN * beta_HxN[:, :, None]
        identity_NxN = jnp.eye(k_HxNxK.shape[1])
        lower_HxNxN = jnp.tril(overlap_HxNxN, -1) + identity_NxN[None]
        v_HxNxV = jax.scipy.linalg.solve_triangular(
            lower_HxNxN, beta_HxN[:, :, None] * v_HxNxV, lower=True, unit_diagonal=True
        )
    weights_HxNxN = jnp.einsum('hik,hjk->hij', q_HxNxK, k_HxNxK) * decay_HxNxN
    return jnp.einsum('hij,hjv->ihv', weights_HxNxN, v_HxNxV)


def _decay(inputs: Inputs) -> jax.Array:
    """L (H, N, N), zero above the diagonal."""
    num_tokens, num_heads = inputs.k_NxHxK.shape[:2]
    if inputs.g is None:
        return jnp.broadcast_to(jnp.tril(jnp.ones((num_tokens, num_tokens)))[None], (num_heads, num_tokens, num_tokens))
    total_HxN = jnp.cumsum(inputs.g, axis=0).T
    is_past_NxN = jnp.tril(jnp.ones((num_tokens, num_tokens), bool))
    # Masked before the exponential: above the diagonal it could overflow, and its gradient with it.
    exponent_HxNxN = jnp.where(is_past_NxN[None], total_HxN[:, :, None] - total_HxN[:, None, :], -jnp.inf)
    return jnp.exp(exponent_HxNxN)


def run(module: nn.Module, inputs: Inputs, form: str) -> jax.Array:
    """Outputs (N, H, V) in the 'parallel' or the 'recurrent' form; a decay per key has the recurrent form alone."""
    if form == 'parallel' and (inputs.g is None or inputs.g.ndim == 2) and not module.has_variable('carry', 'start'):
        return parallel(inputs)
    return recurrent(module, inputs)


def state_size(num_heads: int, key_dim: int, value_dim: int) -> int:
    """Numbers that are carried from one token to the next."""
    return num_heads * key_dim * value_dim


def unit(x: Any, eps: float = 1e-6) -> jax.Array:
    """x / ‖x‖ along the last axis."""
    return x * jax.lax.rsqrt(jnp.sum(jnp.square(x), axis=-1, keepdims=True) + eps)
