r"""Recurrences whose state is a matrix S (K × V) per head: a memory that maps keys to values.

    S_i = diag(e^{g_i}) S_{i−1} + k_i v_i^T                               (decay; g_i is one number per head, or K)
    S_i = (I − β_i k_i k_i^T) diag(e^{g_i}) S_{i−1} + β_i k_i v_i^T       (delta rule; Yang et al., arXiv:2406.06484)
    o_i = S_i^T q_i

The 'recurrent' form runs over tokens, the 'parallel' form over chunks of tokens: whatever does not need the state S at
a chunk's start is made for all chunks at once, by products of all pairs, and a scan hands S on. With G the cumulated g
of a chunk, the products are weighted by e^{G_i − G_j} for i ≥ j, and the delta rule replaces V by T (V − K e^G S) with
T = (I + strict lower part of diag(β) K K^T)^{−1} diag(β), where the products are weighted as well.
"""

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn
from flax.linen.initializers import Initializer

from qstr_jax.models import carry

Form = Literal['parallel', 'recurrent']
# What is done to the outputs of each head: both norm and gate, only one of them, or neither.
Output = Literal['gated', 'normed', 'unnormed', 'plain']
NORMED, GATED = ('gated', 'normed'), ('gated', 'unnormed')
LECUN = nn.initializers.lecun_normal()  # as Flax's layers start
# The most tokens of a chunk, a power of two; this one is the fastest on two cores.
CHUNK = 16


class Inputs(NamedTuple):
    """What the recurrence reads: queries and keys (N, H, K), values (N, H, V), log decays g ≤ 0 and β (N, H) or None.

    g is (N, H, 1) or (N, H, K).
    """

    q_NxHxK: jax.Array
    k_NxHxK: jax.Array
    v_NxHxV: jax.Array
    g_NxHxG: jax.Array
    beta_NxH: jax.Array | None = None


class Chunk(NamedTuple):
    """How S tokens change the state M: it becomes diag(e^g) M + K^T U with U = V − W M; without a delta rule W is None.

    K has each key as it stands at the end of the chunk, after the decay.
    """

    k_HxSxK: jax.Array
    v_HxSxV: jax.Array
    w_HxSxK: jax.Array | None
    g_HxG: jax.Array


class MatrixMemory(nn.Module):
    """What mixers with a square matrix per head share: their settings and the size of their state.

    Attributes:
        heads: H.
        head_dim: K = V, width of keys and values.
        form: 'parallel' over chunks of tokens, or 'recurrent'; the results agree.
    """

    heads: int = 2
    head_dim: int = 16
    form: Form = 'parallel'

    def heads_of(self, name: str, x_NxW: jax.Array) -> jax.Array:
        """A projection of each token to the heads, (N, H, K)."""
        return heads_of(name, x_NxW, self.heads, self.head_dim)

    def state_size(self, width: int, seq_len: int) -> int:
        """Numbers of all matrices."""
        return self.heads * self.head_dim**2


class NormedMemory(MatrixMemory):
    """A matrix memory whose outputs are normalised in each head and gated by SiLU, or not, as `output` says.

    Attributes:
        output: 'gated' (normalised in each head, then gated), 'normed' (no gate), 'unnormed' (no norm) or 'plain'.
    """

    output: Output = 'gated'

    def read(self, inputs: Inputs, x_NxW: jax.Array) -> jax.Array:
        """Outputs (N, W) of the recurrence."""
        o_NxHxV = run(self, inputs, self.form)
        if self.output in NORMED:
            o_NxHxV = nn.RMSNorm(name='head_norm')(o_NxHxV)
        if self.output in GATED:
            o_NxHxV = o_NxHxV * self.gate(x_NxW)
        return merged(o_NxHxV, x_NxW.shape[-1])

    def gate(self, x_NxW: jax.Array) -> jax.Array:
        """What outputs (N, H, V) are multiplied by."""
        return jax.nn.silu(self.heads_of('gate', x_NxW))


def run(module: nn.Module, inputs: Inputs, form: Form) -> jax.Array:
    """Outputs (N, H, V) of the recurrence, in one of its forms."""
    num_tokens, num_heads, key_dim = inputs.k_NxHxK.shape
    start_HxKxV = jnp.zeros((num_heads, key_dim, inputs.v_NxHxV.shape[-1]))
    if form == 'recurrent':
        return carry.scan(module, _step, start_HxKxV, inputs)
    size = min(CHUNK, 1 << (num_tokens - 1).bit_length())
    padding = -num_tokens % size

    def cut(leaf_Nx: jax.Array) -> jax.Array:
        """Chunks of heads, (C, H, S, …); keys, values and decays of zero leave the state as it is."""
        padded_Nx = jnp.pad(leaf_Nx, ((0, padding),) + ((0, 0),) * (leaf_Nx.ndim - 1))
        return jnp.moveaxis(padded_Nx.reshape(-1, size, *leaf_Nx.shape[1:]), 2, 1)

    chunks, q_CxHxSxK, pairs_CxHxSxS = jax.vmap(_chunk)(jax.tree.map(cut, inputs))
    states_CxHxKxV, u_CxHxSxV = carry.scan(module, _advance, start_HxKxV, chunks)
    o_CxHxSxV = q_CxHxSxK @ states_CxHxKxV + pairs_CxHxSxS @ u_CxHxSxV
    return jnp.moveaxis(o_CxHxSxV, 1, 2).reshape(num_tokens + padding, num_heads, -1)[:num_tokens]


def _step(state_HxKxV: jax.Array, one: Inputs) -> tuple[jax.Array, jax.Array]:
    """One token."""
    q_HxK, k_HxK, v_HxV, g_HxG, beta_H = one
    state_HxKxV = state_HxKxV * jnp.exp(g_HxG)[:, :, None]
    if beta_H is not None:
        v_HxV = beta_H[:, None] * (v_HxV - jnp.einsum('hk,hkv->hv', k_HxK, state_HxKxV))
    state_HxKxV = state_HxKxV + k_HxK[:, :, None] * v_HxV[:, None, :]
    return state_HxKxV, jnp.einsum('hk,hkv->hv', q_HxK, state_HxKxV)


def _chunk(inputs: Inputs) -> tuple[Chunk, jax.Array, jax.Array]:
    """The change of state, decayed queries that read the first state, and weights of all pairs; heads come first."""
    q_HxSxK, k_HxSxK, v_HxSxV, g_HxSxG, beta_HxS = inputs
    total_HxSxG = jnp.cumsum(g_HxSxG, axis=1)
    decay_HxSxG, last_HxG = jnp.exp(total_HxSxG), total_HxSxG[:, -1]
    w_HxSxK = None
    if beta_HxS is not None:
        overlap_HxSxS = beta_HxS[:, :, None] * _products(k_HxSxK, k_HxSxK, total_HxSxG)
        solve_HxSxS = _inverse(overlap_HxSxS) * beta_HxS[:, None, :]
        w_HxSxK, v_HxSxV = solve_HxSxS @ (k_HxSxK * decay_HxSxG), solve_HxSxS @ v_HxSxV
    chunk = Chunk(k_HxSxK * jnp.exp(last_HxG[:, None] - total_HxSxG), v_HxSxV, w_HxSxK, last_HxG)
    return chunk, q_HxSxK * decay_HxSxG, _products(q_HxSxK, k_HxSxK, total_HxSxG)


def _advance(state_HxKxV: jax.Array, chunk: Chunk) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    """The state after a chunk; the state before it, and U."""
    u_HxSxV = chunk.v_HxSxV if chunk.w_HxSxK is None else chunk.v_HxSxV - chunk.w_HxSxK @ state_HxKxV
    after_HxKxV = state_HxKxV * jnp.exp(chunk.g_HxG)[:, :, None] + jnp.einsum('hsk,hsv->hkv', chunk.k_HxSxK, u_HxSxV)
    return after_HxKxV, (state_HxKxV, u_HxSxV)


@jax.custom_jvp
def _inverse(lower_HxSxS: jax.Array) -> jax.Array:
    """(I + strict lower part)^{-1}, by blocks of 1, 2, 4, … rows: a pair's inverse is made of those of its two blocks.

    LAPACK's batched solvers are not used: on a CPU two that run at once, as for two directions, can wait for each
    other's threads for ever (jaxlib 0.10).
    """
    size = lower_HxSxS.shape[-1]
    block, row_S = 1, np.arange(size)
    inverse_HxSxS = jnp.broadcast_to(jnp.eye(size), lower_HxSxS.shape)
    while block < size:
        place_S = row_S // block
        is_corner_SxS = (place_S[:, None] == place_S[None, :] + 1) & (place_S[:, None] % 2 == 1)
        corner_HxSxS = jnp.where(is_corner_SxS, lower_HxSxS, 0)
        inverse_HxSxS = inverse_HxSxS - inverse_HxSxS @ corner_HxSxS @ inverse_HxSxS
        block *= 2
    return inverse_HxSxS


@_inverse.defjvp
def _inverse_jvp(primals: tuple[jax.Array], tangents: tuple[jax.Array]) -> tuple[jax.Array, jax.Array]:
    """d A^{-1} = −A^{-1} dA A^{-1}."""
    inverse_HxSxS = _inverse(*primals)
    return inverse_HxSxS, -inverse_HxSxS @ jnp.tril(tangents[0], -1) @ inverse_HxSxS


def _products(q_HxSxK: jax.Array, k_HxSxK: jax.Array, total_HxSxG: jax.Array) -> jax.Array:
    """Σ_k q_ik k_jk e^{G_ik − G_jk} for i ≥ j, zero otherwise, (H, S, S)."""
    if total_HxSxG.shape[-1] > 1:
        return _products_per_key(q_HxSxK, k_HxSxK, total_HxSxG)
    total_HxS = total_HxSxG[..., 0]
    is_past_SxS = jnp.tril(jnp.ones((total_HxS.shape[1],) * 2, bool))
    # Masked before the exponential: for later tokens it could overflow, and its gradient with it.
    exponent_HxSxS = jnp.where(is_past_SxS[None], total_HxS[:, :, None] - total_HxS[:, None], -jnp.inf)
    return jnp.einsum('hik,hjk->hij', q_HxSxK, k_HxSxK) * jnp.exp(exponent_HxSxS)


def _products_per_key(q_HxSxK: jax.Array, k_HxSxK: jax.Array, total_HxSxK: jax.Array) -> jax.Array:
    """The same with a decay for each key, by pairs of blocks of 1, 2, 4, … tokens.

    A later token i and an earlier one j meet at the end e of the earlier block, as e^{G_i − G_e} and e^{G_e − G_j}:
    neither overflows, and matrix products do the rest. S is a power of two.
    """
    num_heads, size, _ = q_HxSxK.shape
    found_HxPxBxB = jnp.sum(q_HxSxK * k_HxSxK, axis=-1)[:, :, None, None]
    block = 1
    while block < size:
        pair = (num_heads, -1, 2, block)
        q, k, total = (x_HxSxK.reshape(*pair, x_HxSxK.shape[-1]) for x_HxSxK in (q_HxSxK, k_HxSxK, total_HxSxK))
        end = total[:, :, 0, -1:]
        late, early = q[:, :, 1] * jnp.exp(total[:, :, 1] - end), k[:, :, 0] * jnp.exp(end - total[:, :, 0])
        corner_HxPxBxB = jnp.einsum('hpik,hpjk->hpij', late, early)
        first, second = jnp.moveaxis(found_HxPxBxB.reshape(*pair, block), 2, 0)
        above = jnp.concatenate([first, jnp.zeros_like(first)], axis=-1)
        found_HxPxBxB = jnp.concatenate([above, jnp.concatenate([corner_HxPxBxB, second], axis=-1)], axis=-2)
        block *= 2
    return found_HxPxBxB[:, 0]


def unit(x: jax.Array, eps: float = 1e-6) -> jax.Array:
    """x / ‖x‖ along the last axis."""
    return x * jax.lax.rsqrt(jnp.sum(jnp.square(x), axis=-1, keepdims=True) + eps)


def heads_of(name: str, x_NxW: jax.Array, heads: int, dim: int, kernel_init: Initializer = LECUN) -> jax.Array:
    """A projection of each token to heads, (N, H, dim); called inside a compact module."""
    return nn.DenseGeneral((heads, dim), use_bias=False, kernel_init=kernel_init, name=name)(x_NxW)


def merged(o_NxHxV: jax.Array, width: int, kernel_init: Initializer = LECUN) -> jax.Array:
    """Heads side by side, projected to the width of the sequence; called inside a compact module."""
    return nn.DenseGeneral(width, axis=(-2, -1), use_bias=False, kernel_init=kernel_init, name='out')(o_NxHxV)


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
