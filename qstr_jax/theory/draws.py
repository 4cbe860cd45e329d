"""Tasks and prompts for checks in float64: the numbers of the usual streams, with labels computed in float64."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from qstr_jax import models, tasks
from qstr_jax.theory.sparse_task import SparseTask


def _cast(tree: Any, precision: str) -> Any:
    """Casts the floating-point leaves of a tree."""

    def cast(leaf: jax.Array) -> np.ndarray:
        return np.asarray(leaf, precision if jnp.issubdtype(leaf.dtype, jnp.floating) else None)

    return jax.tree.map(cast, tree)


def draw(
    task: SparseTask, num_prompts: int, precision: str = 'float64', seed: int = 1, task_seed: int = 0
) -> tuple[tasks.Draw, tasks.Prompt]:
    """Draws a task and prompts in a precision; call it where that precision is enabled.

    All numbers are drawn in float32, so that both precisions see the same prompts. Labels are computed from the cast
    tokens and link: a rounded label would look like an error of the construction.
    """
    with jax.enable_x64(False):
        task_draw = _draw(tasks.task_key(task_seed, task), task)
        task.check_draw(task_draw.encodings.complete)
        raw = _examples(jax.random.key(seed), jnp.arange(num_prompts), task, task_draw.link)
    task_draw = task_draw._replace(link=_cast(task_draw.link, precision))
    x_BxNxD = _cast(raw.x_NxD, precision)
    y_BxN = _labels(x_BxNxD, raw.t_NxQ, task, task_draw.link)
    return task_draw, tasks.Prompt(x_NxD=x_BxNxD, t_NxQ=raw.t_NxQ, y_N=y_BxN)


_draw = jax.jit(tasks.draw, static_argnames='task')
_examples = jax.jit(tasks.examples, static_argnames='task')


@functools.partial(jax.jit, static_argnames='task')
def _labels(x_BxNxD: jax.Array, t_BxNxQ: jax.Array, task: SparseTask, link: Any) -> jax.Array:
    return jax.vmap(lambda x_NxD, t_NxQ: task.labels(x_NxD, t_NxQ, link))(x_BxNxD, t_BxNxQ)


@functools.partial(jax.jit, static_argnames=('module', 'task'))
def _square_errors(
    params: dict, prompts: tasks.Prompt, task_draw: tasks.Draw, module: Any, task: SparseTask
) -> jax.Array:
    def error(prompt: tasks.Prompt) -> jax.Array:
        prediction_N = models.predict(module, params, tasks.encode(prompt, task, task_draw))
        return (prompt.y_N - prediction_N) ** 2

    return jax.lax.map(error, prompts, batch_size=min(100, len(prompts.y_N)))


def square_errors(
    module: Any, params: dict, prompts: tasks.Prompt, task: SparseTask, task_draw: tasks.Draw
) -> np.ndarray:
    """(y_i − ŷ_i)² of one network."""
    return np.asarray(_square_errors(params, prompts, task_draw, module, task))


def largest_error(module: Any, params: dict, prompts: tasks.Prompt, task: SparseTask, task_draw: tasks.Draw) -> float:
    """max |ŷ − y| over prompts and positions, computed a prompt at a time."""
    errors = [
        square_errors(module, params, jax.tree.map(lambda leaf, b=b: leaf[b : b + 1], prompts), task, task_draw)
        for b in range(len(prompts.y_N))
    ]
    return float(np.sqrt(np.max(errors)))


def mean_and_error(values_B: Any) -> tuple[float, float]:
    """The mean and its standard error."""
    values_B = np.asarray(values_B, np.float64)
    return float(values_B.mean()), float(values_B.std() / np.sqrt(len(values_B)))
