"""The stages of a fit. Most fits have a single stage; those of `min_norm` have one for each radius."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp


class Stage(NamedTuple):
    """One stage of a fit, and the results of earlier stages.

    Attributes:
        number: of the stage, from 0.
        radius: of the constraint, infinite without one.
        low: largest radius that failed.
        high: norm of the best parameters so far.
        min_risk: training risk of the unconstrained fit.
        steps: made in earlier stages.
        kept: best parameters so far; () for a fit with a single stage.
    """

    number: jax.Array
    radius: jax.Array
    low: jax.Array
    high: jax.Array
    min_risk: jax.Array
    steps: jax.Array
    kept: Any


def first(radius: Any, kept: Any = ()) -> Stage:
    """The stage that a fit starts with."""
    nan = jnp.float32(jnp.nan)
    return Stage(number=jnp.int32(0), radius=radius, low=nan, high=nan, min_risk=nan, steps=jnp.int32(0), kept=kept)
