"""Recurrences of numbers: h_i = a_i h_{i−1} + b_i for each feature, by an associative scan or token after token."""

from typing import Literal

import jax
import jax.numpy as jnp
from flax import linen as nn

from qstr_jax.models import carry

Form = Literal['parallel', 'recurrent']


def run(module: nn.Module, a_NxF: jax.Array, b_NxF: jax.Array, form: Form) -> jax.Array:
    """States (N, F) from h_0 = 0, in either form."""
    if form == 'recurrent':
        return carry.scan(module, _step, jnp.zeros_like(b_NxF[0]), (a_NxF, b_NxF))

    def then(first: tuple[jax.Array, jax.Array], second: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        return second[0] * first[0], second[0] * first[1] + second[1]

    decay_NxF, states_NxF = jax.lax.associative_scan(then, (a_NxF, b_NxF))
    start_F = carry.start(module, 'state', None)
    if start_F is not None:
        states_NxF = states_NxF + decay_NxF * start_F[None]
    carry.keep(module, 'state', states_NxF[-1])
    return states_NxF


def _step(state_F: jax.Array, one: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
    state_F = one[0] * state_F + one[1]
    return state_F, state_F
