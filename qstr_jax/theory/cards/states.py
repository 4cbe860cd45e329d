"""Measurements on the states of a trained RNN, for the card of Proposition 8."""

import functools
from typing import Any

import jax
import jax.numpy as jnp

from qstr_jax import tasks
from qstr_jax.theory import sensitivity

# Number of prompts whose states are measured, or quantised together.
LOOK = 200


@functools.partial(jax.jit, static_argnames='problem')
def quantised_errors(params: dict, data: Any, problem: Any, bits: int) -> jax.Array:
    """Errors on the test prompts when each coordinate of the states, in (−1, 1), is rounded to one of 2^bits levels.

    Args:
        params: of one lane.
        data: the lane's data.
        problem: the static side of its cell.
        bits: bits per coordinate.

    Returns:
        The mean error of each test prompt.
    """

    def error(prompt: tasks.Prompt) -> jax.Array:
        z_NxE = tasks.encode(prompt, problem.task, data.task_draw)
        states_NxF = sensitivity.recurrent_states(problem.module, params, z_NxE)
        levels = 2.0**bits
        cell_NxF = jnp.clip(jnp.floor((states_NxF + 1) / 2 * levels), 0, levels - 1)
        rounded_NxF = (2 * cell_NxF + 1) / levels - 1
        prediction_N = jax.vmap(lambda h, z: sensitivity.read_out(params, h, z))(rounded_NxF, z_NxE)
        return jnp.mean((prompt.y_N - prediction_N) ** 2)

    return jax.lax.map(error, data.test_prompts, batch_size=min(LOOK, problem.learner.test_samples))


def bounds_of(params: dict, data: Any, problem: Any, width: int) -> tuple[float, ...]:
    """L²‖U‖² from above (layer products) and from below (sampled gradients); r_h is the largest norm seen.

    Args:
        params: of one lane.
        data: the lane's data.
        problem: the static side of its cell.
        width: d_h.
    """
    prompts = jax.tree.map(lambda leaf: leaf[:LOOK], data.test_prompts)

    @jax.jit
    def bounds(params: dict, prompts: tasks.Prompt) -> tuple[jax.Array, jax.Array]:
        z_BxNxE = jax.vmap(lambda p: tasks.encode(p, problem.task, data.task_draw))(prompts)
        states_BxNxF = jax.vmap(lambda z: sensitivity.recurrent_states(problem.module, params, z))(z_BxNxE)
        states, z = (leaf.reshape(-1, leaf.shape[-1]) for leaf in (states_BxNxF, z_BxNxE))
        norm = jnp.max(jnp.linalg.norm(states, axis=-1))
        return (
            sensitivity.state_sensitivity(params, width, norm),
            sensitivity.state_sensitivity_sampled(params, states, z, norm),
        )

    return tuple(float(value) for value in bounds(params, prompts))
