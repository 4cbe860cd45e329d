"""Positional encodings: the vectors ω_1..ω_N and enc(i, t_i) (Assumption 3 and Section 3 of arXiv:2503.11272)."""

import math
from typing import Any, NamedTuple

import einops
import jax
import jax.numpy as jnp

from qstr_jax.settings import checks

SCALES = ('unscaled', 'scaled')

# The most tries of `draw` per vector. At d_e = 16 ln N and coherence 1/2 a handful of tries is enough.
MAX_TRIES = 1000


class Encodings(NamedTuple):
    """Drawn vectors.

    Attributes:
        omega_NxE: unit vectors ω_i, (N, d_e).
        redraws: number of rejected candidates.
        complete: False if some vector was still rejected after `MAX_TRIES` tries.
    """

    omega_NxE: jax.Array
    redraws: jax.Array
    complete: jax.Array


def default_encoding_dim(seq_len: int, factor: float = 5.0) -> int:
    """d_e = ⌊c ln N⌋, with c = 5 as in the published experiments."""
    return math.floor(factor * math.log(seq_len))


def checked_dim(seq_len: int, encoding_dim: int | None, factor: float | None) -> int:
    """d_e as given, or ⌊c ln N⌋."""
    if factor is not None:
        checks.positive('encoding_factor', factor)
    by_rule = default_encoding_dim(seq_len, *([] if factor is None else [factor]))
    dim = by_rule if encoding_dim is None else encoding_dim
    checks.integer('encoding_dim', dim)
    if factor is not None and dim != by_rule:
        raise ValueError(
            f'encoding_factor={factor:g}: means d_e = {by_rule} at N = {seq_len}, not encoding_dim={dim}; '
            'give one of the two'
        )
    return dim


def check_sizes(seq_len: int, encoding_dim: int, max_coherence: float, distinct: bool) -> None:
    """Checks that N vectors in {±1/√d_e}^{d_e} may exist, so that a sweep is refused before it draws any.

    Any N unit vectors have a coherence of at least √((N − d_e)/(d_e (N − 1))), Welch's bound.
    """
    if not isinstance(max_coherence, (int, float)) or not 0 < max_coherence <= 1:
        raise ValueError(f'max_coherence={max_coherence!r}: must lie in (0, 1]')
    least = (seq_len - 1).bit_length()
    if distinct and encoding_dim < least:
        raise ValueError(
            f'encoding_dim={encoding_dim}: there are only {2**encoding_dim} distinct '
            f'encodings for seq_len={seq_len}; use encoding_dim ≥ {least}'
        )
    welch = math.sqrt(max(0, seq_len - encoding_dim) / (encoding_dim * (seq_len - 1)))
    if max_coherence < welch:
        raise ValueError(
            f'max_coherence={max_coherence:g}: impossible at seq_len={seq_len} with encoding_dim={encoding_dim}, where '
            f'any unit vectors have a coherence of at least {welch:.3f}'
        )


def draw(
    key: jax.Array, seq_len: int, encoding_dim: int, max_coherence: float = 1.0, distinct: bool = True
) -> Encodings:
    """Draws Rademacher vectors ω_i in {±1/√d_e}^{d_e}, one after the other, with rejection.

    Vector i is drawn again while it equals an earlier vector (if `distinct`) or while |⟨ω_i, ω_j⟩| > `max_coherence`
    for some j < i (Assumption 3 asks for 1/2; 1 allows everything). Compiled code cannot raise an error, so the caller
    checks `complete` afterwards.
    """
    # Signs are kept as ±1 in floats: their inner products are exact integers, so the comparison has no rounding.
    largest_dot = max_coherence * encoding_dim + 1e-3

    def draw_one(carry: tuple[jax.Array, jax.Array, jax.Array], i: jax.Array) -> Any:
        signs_NxE, redraws, complete = carry
        key_i = jax.random.fold_in(key, i)

        def is_rejected(tried: tuple[jax.Array, jax.Array]) -> jax.Array:
            attempt, candidate_E = tried
            is_allowed = _is_allowed(candidate_E, signs_NxE, i, largest_dot, distinct=distinct)
            return (attempt < 0) | (~is_allowed & (attempt < MAX_TRIES))

        def again(tried: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            attempt = tried[0] + 1
            return attempt, jax.random.rademacher(jax.random.fold_in(key_i, attempt), (encoding_dim,), jnp.float32)

        # The loop makes the first attempt too, so that its program has one draw.
        attempt, candidate_E = jax.lax.while_loop(
            is_rejected, again, (jnp.int32(-1), jnp.zeros(encoding_dim, jnp.float32))
        )
        signs_NxE = signs_NxE.at[i].set(candidate_E)
        return (signs_NxE, redraws + attempt, complete & (attempt < MAX_TRIES)), None

    start = (jnp.zeros((seq_len, encoding_dim)), jnp.int32(0), jnp.bool_(True))
    (signs_NxE, redraws, complete), _ = jax.lax.scan(draw_one, start, jnp.arange(seq_len))
    return Encodings(omega_NxE=signs_NxE / math.sqrt(encoding_dim), redraws=redraws, complete=complete)


def _is_allowed(
    candidate_E: jax.Array, signs_NxE: jax.Array, i: jax.Array, largest_dot: float, *, distinct: bool
) -> jax.Array:
    """Whether vector i (all are ±1) is far enough from the earlier ones, and (if `distinct`) equal to none."""
    dots_N = signs_NxE @ candidate_E
    is_earlier_N = jnp.arange(len(signs_NxE)) < i
    is_close_N = jnp.abs(dots_N) > largest_dot
    if distinct:
        is_close_N |= dots_N == len(candidate_E)
    return ~jnp.any(is_close_N & is_earlier_N)


def coherence(omega_NxE: jax.Array) -> jax.Array:
    """The coherence max_{i≠j} |⟨ω_i, ω_j⟩|, which Assumption 3 bounds by 1/2."""
    gram_NxN = omega_NxE @ omega_NxE.T
    return jnp.max(jnp.abs(gram_NxN - jnp.diag(jnp.diag(gram_NxN))))


def equal_pairs(omega_NxE: jax.Array) -> jax.Array:
    """Number of pairs i < j with ω_i = ω_j: positions that no model can tell apart."""
    equal_NxN = jnp.all(omega_NxE[:, None, :] == omega_NxE[None, :, :], axis=-1)
    return (jnp.sum(equal_NxN) - omega_NxE.shape[0]) // 2


def scale_factor(scale: str, token_dim: int, sparsity: int) -> float:
    """The factor of the encodings: √(d/q) if 'scaled' (Section 3), 1 if 'unscaled' (Section 5 and the experiments)."""
    if scale not in SCALES:
        raise ValueError(f'encoding_scale={scale!r}: one of {", ".join(SCALES)}')
    return math.sqrt(token_dim / sparsity) if scale == 'scaled' else 1.0


def encode(x_NxD: jax.Array, t_NxQ: jax.Array, omega_NxE: jax.Array, scale: float = 1.0) -> jax.Array:
    """Encodes a prompt: z_i = (x_i, enc(i, t_i)), enc(i, t_i) = scale · (ω_i, ω_{t_i1}, …, ω_{t_iq}).

    z is (N, d + (q+1) d_e); the scale is that of `scale_factor`.
    """
    retrieved = einops.rearrange(omega_NxE[t_NxQ], 'n q e -> n (q e)')
    return jnp.concatenate([x_NxD, scale * omega_NxE, scale * retrieved], axis=-1)
