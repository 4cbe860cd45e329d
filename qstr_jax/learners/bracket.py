"""The search for n*, the smallest n with a test loss below a threshold: doubling, then bisection.

Training sets are nested in n, so a larger n only adds prompts. The search assumes that the test loss falls with n; it
then knows n* up to the factor 1 + resolution.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from qstr_jax.learners.lanes import CENSORED, CENSORED_BELOW, OUTRACED, REACHED, RUNNING


class Bracket(NamedTuple):
    """Where a search stands.

    Attributes:
        n: the sample size to try now.
        low: the largest n that missed the threshold, 0 while there is none.
        high: the smallest n that met the threshold, 0 while there is none.
    """

    n: jax.Array
    low: jax.Array
    high: jax.Array


def start(n: Any) -> Bracket:
    """The bracket before the first fit."""
    return Bracket(n=jnp.int32(n), low=jnp.int32(0), high=jnp.int32(0))


def max_fits(least: int, most: int, resolution: float) -> int:
    """Upper bound on the fits of one search: doublings, then halvings of log 2 down to log(1 + resolution)."""
    doublings = math.ceil(math.log2(most / least)) + 1
    return doublings + max(0, math.ceil(math.log2(math.log(2) / math.log1p(resolution)))) + 2


def update(
    bracket: Bracket, is_below: jax.Array, least: int, most: int, resolution: float, *, stop_after: Any = 0
) -> tuple[Bracket, jax.Array]:
    """The bracket after a fit at `bracket.n`, and the outcome of the search."""
    n = bracket.n
    low, high = jnp.where(is_below, bracket.low, n), jnp.where(is_below, n, bracket.high)
    is_tight = (high - low <= 1) | (high <= low * (1 + resolution))
    outcome = jnp.where((high > 0) & is_tight, REACHED, RUNNING)
    outcome = jnp.where(is_below & (n <= least), CENSORED_BELOW, outcome)
    outcome = jnp.where(~is_below & (stop_after > 0) & (n >= stop_after), OUTRACED, outcome)
    outcome = jnp.where(~is_below & (n >= most), CENSORED, outcome)
    middle = jnp.sqrt(low.astype(jnp.float32)) * jnp.sqrt(high.astype(jnp.float32))
    middle = jnp.clip(jnp.round(middle).astype(jnp.int32), low + 1, jnp.maximum(high - 1, low + 1))
    # n doubles until some n has met the threshold. It is compared before it is doubled, so that it cannot overflow.
    doubled = jnp.where(n > most // 2, most, 2 * n)
    doubled = jnp.where(n < stop_after, jnp.minimum(doubled, stop_after), doubled)
    following = jnp.where(high > 0, middle, doubled)
    following = jnp.where(outcome == RUNNING, following, n)
    return Bracket(n=following, low=low, high=high), outcome.astype(jnp.int32)
