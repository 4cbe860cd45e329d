"""The search for n*: the smallest n with test loss below a threshold, by doubling and then bisection.

Training sets are nested in n, so a larger n adds prompts and changes none. The search takes the test loss to fall
with n; n* is then known up to the factor 1 + resolution.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp

from qstr_jax.learners.outcomes import CENSORED, CENSORED_BELOW, REACHED, RUNNING


class Bracket(NamedTuple):
    """n to try now, the largest n that missed the threshold and the smallest that met it; 0 where there is none."""

    n: jax.Array
    low: jax.Array
    high: jax.Array


def start(n):
    """`Bracket` before the first fit."""
    return Bracket(jnp.int32(n), jnp.int32(0), jnp.int32(0))


def max_fits(least, most, resolution):
    """Upper bound of the fits of one search: doublings, then halvings of log 2 down to log(1 + resolution)."""
    doublings = math.ceil(math.log2(most / least)) + 1
    return doublings + max(0, math.ceil(math.log2(math.log(2) / math.log1p(resolution)))) + 2


def update(bracket, is_below, least, most, resolution):
    """`Bracket` after a fit at `bracket.n`, and the outcome.

    Args:
        bracket: `Bracket`.
        is_below: whether the test loss was below the threshold.
        least, most: where the search begins and ends.
        resolution: the search is over at high ≤ low (1 + resolution), or at neighbours.

    Returns:
        (bracket, outcome): REACHED (n* is `bracket.high`), CENSORED (`most` is not enough), CENSORED_BELOW (`least`
        is enough already) or RUNNING.
    """
    n = bracket.n
    low, high = jnp.where(is_below, bracket.low, n), jnp.where(is_below, n, bracket.high)
    is_tight = (high - low <= 1) | (high <= low * (1 + resolution))
    outcome = jnp.where((high > 0) & is_tight, REACHED, RUNNING)
    outcome = jnp.where(is_below & (n <= least), CENSORED_BELOW, outcome)
    outcome = jnp.where(~is_below & (n >= most), CENSORED, outcome)
    middle = jnp.sqrt(low.astype(jnp.float32)) * jnp.sqrt(high.astype(jnp.float32))
    middle = jnp.clip(jnp.round(middle).astype(jnp.int32), low + 1, jnp.maximum(high - 1, low + 1))
    # Without `high`, doubled; the comparison comes first, so that it cannot overflow.
    doubled = jnp.where(n > most // 2, most, 2 * n)
    following = jnp.where(high > 0, middle, doubled)
    return Bracket(jnp.where(outcome == RUNNING, following, n), low, high), outcome.astype(jnp.int32)
