"""Positional encodings: the vectors ω_1..ω_N and enc(i, t_i) (PAPER.md, sections 1 and 3)."""

import math
from typing import NamedTuple

import einops
import jax
import jax.numpy as jnp

SCALES = ('unscaled', 'scaled')

# Draws of one vector before `draw` gives up. At 16 ln N, c = 1/2 a handful is enough.
MAX_TRIES = 1000


class Encodings(NamedTuple):
    """Drawn vectors. `redraws` counts rejected candidates; `complete` is False when `MAX_TRIES` ran out."""

    omega_NxE: jax.Array
    redraws: jax.Array
    complete: jax.Array


def default_encoding_dim(seq_len):
    """⌊5 ln N⌋, the published experiments' d_e."""
    return math.floor(5 * math.log(seq_len))


def draw(key, seq_len, encoding_dim, max_coherence=1.0, distinct=True):
    """Rademacher vectors ω_i in {±1/√d_e}^{d_e}, rejected vector by vector.

    Candidate i is redrawn while it equals an earlier vector (if `distinct`) or while
    |⟨ω_i, ω_j⟩| > `max_coherence` for some j < i (Assumption 3 asks for 1/2).

    Args:
        key: typed key.
        seq_len: number of vectors, N.
        encoding_dim: their dimension, d_e.
        max_coherence: largest |⟨ω_i, ω_j⟩| allowed, in (0, 1]; 1 allows everything.
        distinct: whether equal vectors are redrawn.

    Returns:
        `Encodings` with omega (N, d_e). Pure, under jit and vmap; look at `complete` on the host.
    """
    # Signs as integers-in-floats: their products are exact, so the comparison has no rounding.
    largest_dot = max_coherence * encoding_dim + 1e-3

    def allowed(candidate_E, signs_NxE, i):
        dots_N = signs_NxE @ candidate_E
        earlier_N = jnp.arange(seq_len) < i
        too_close_N = jnp.abs(dots_N) > largest_dot
        if distinct:
            too_close_N |= dots_N == encoding_dim
        return ~jnp.any(too_close_N & earlier_N)

    def draw_one(carry, i):
        signs_NxE, redraws, complete = carry
        key_i = jax.random.fold_in(key, i)

        def candidate(attempt):
            return jax.random.rademacher(jax.random.fold_in(key_i, attempt), (encoding_dim,), jnp.float32)

        def rejected(attempt):
            return ~allowed(candidate(attempt), signs_NxE, i) & (attempt < MAX_TRIES)

        attempt = jax.lax.while_loop(rejected, lambda a: a + 1, jnp.int32(0))
        signs_NxE = signs_NxE.at[i].set(candidate(attempt))
        return (signs_NxE, redraws + attempt, complete & (attempt < MAX_TRIES)), None

    start = (jnp.zeros((seq_len, encoding_dim)), jnp.int32(0), jnp.bool_(True))
    (signs_NxE, redraws, complete), _ = jax.lax.scan(draw_one, start, jnp.arange(seq_len))
    return Encodings(signs_NxE / math.sqrt(encoding_dim), redraws, complete)


def coherence(omega_NxE):
    """max_{i≠j} |⟨ω_i, ω_j⟩|, the left side of Assumption 3."""
    gram_NxN = omega_NxE @ omega_NxE.T
    return jnp.max(jnp.abs(gram_NxN - jnp.diag(jnp.diag(gram_NxN))))


def signed_coherence(omega_NxE):
    """max_{i≠j} ⟨ω_i, ω_j⟩, all that the attention construction needs to be below 1."""
    gram_NxN = omega_NxE @ omega_NxE.T
    return jnp.max(gram_NxN - 3.0 * jnp.eye(gram_NxN.shape[0], dtype=gram_NxN.dtype))


def equal_pairs(omega_NxE):
    """Number of pairs i < j with ω_i = ω_j: positions that no model can tell apart."""
    equal_NxN = jnp.all(omega_NxE[:, None, :] == omega_NxE[None, :, :], axis=-1)
    return (jnp.sum(equal_NxN) - omega_NxE.shape[0]) // 2


def scale_factor(scale, token_dim, sparsity):
    """√(d/q) for 'scaled' (the theory's attention), 1 for 'unscaled' (experiments and RNN section)."""
    if scale not in SCALES:
        raise ValueError(f'encoding_scale={scale!r}: one of {", ".join(SCALES)}')
    return math.sqrt(token_dim / sparsity) if scale == 'scaled' else 1.0


def encode(x_NxD, t_NxQ, omega_NxE, scale=1.0):
    """Embedded tokens z_i = (x_i, enc(i, t_i)), enc(i, t_i) = scale · (ω_i, ω_{t_i1}, …, ω_{t_iq}).

    Args:
        x_NxD: tokens, (N, d).
        t_NxQ: indices, (N, q), in 0..N-1.
        omega_NxE: encodings, (N, d_e).
        scale: see `scale_factor`.

    Returns:
        z, (N, d + (q+1) d_e).
    """
    retrieved = einops.rearrange(omega_NxE[t_NxQ], 'n q e -> n (q e)')
    return jnp.concatenate([x_NxD, scale * omega_NxE, scale * retrieved], axis=-1)
