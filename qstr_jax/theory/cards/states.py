"""Measurements on the states of RNNs, trained and constructed, for the card of Proposition 8."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from qstr_jax import tasks
from qstr_jax.theory import recurrences, sensitivity
from qstr_jax.theory.cards import draws
from qstr_jax.theory.sparse_task import SparseTask

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


def gaussian_levels(bits: int) -> np.ndarray:
    """The 2^bits levels of the best scalar quantiser of N(0, 1) (Lloyd, Max): each is the mean of what it stands for.

    Args:
        bits: b.
    """
    from scipy import stats  # slow to import, and few cards need it

    levels = stats.norm.ppf((np.arange(2**bits) + 0.5) / 2**bits)
    for _ in range(2000):
        edges = np.concatenate([[-np.inf], (levels[1:] + levels[:-1]) / 2, [np.inf]])
        levels = -np.diff(stats.norm.pdf(edges)) / np.diff(stats.norm.cdf(edges))
    return levels


def storing_errors(task: SparseTask, bits: int, num_prompts: int) -> np.ndarray:
    """Errors of the RNN that stores every token when each stored number is rounded to one of 2^bits levels.

    At a position N − 1 numbers are stored in the two states together, so these hold B = bits · (N − 1) bits.

    Args:
        task: with d = 1.
        bits: per stored number; 0 rounds nothing.
        num_prompts: test prompts.

    Returns:
        The mean error of each prompt.
    """
    with jax.enable_x64(True):
        task_draw, prompts = draws.draw(task, num_prompts, seed=3)
        bound = max(10.0, float(jnp.max(jnp.abs(prompts.x_NxD))))
        built = recurrences.storing(task, task_draw, bound)
        levels = jnp.asarray(gaussian_levels(bits)) if bits else None

        def error(prompt: tasks.Prompt) -> jax.Array:
            z_NxE = tasks.encode(prompt, task, task_draw)
            states_NxF = sensitivity.recurrent_states(built.module, built.params, z_NxE)
            if levels is not None:
                nearest_NxF = levels[jnp.argmin(jnp.abs(states_NxF[..., None] - levels[None, None]), axis=-1)]
                # A coordinate is zero where its token has not been seen, which the position tells.
                states_NxF = jnp.where(jnp.abs(states_NxF) > 0, nearest_NxF, 0.0)
            prediction_N = jax.vmap(lambda h, z: sensitivity.read_out(built.params, h, z))(states_NxF, z_NxE)
            return jnp.mean((prompt.y_N - prediction_N) ** 2)

        return np.asarray(jax.jit(lambda p: jax.lax.map(error, p, batch_size=min(LOOK, num_prompts)))(prompts))
