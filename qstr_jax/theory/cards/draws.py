"""Tasks and prompts for checks in float64: the streams' numbers, labels computed anew."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from qstr_jax import models, tasks


def _cast(tree, precision):
    def cast(leaf):
        return jnp.asarray(np.asarray(leaf, precision)) if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf

    return jax.tree.map(cast, tree)


def draw(task, num_prompts, precision='float64', seed=1):
    """A task's draw and prompts in a precision; call it where that precision is enabled.

    Bits are drawn in float32, so both precisions see the same prompts; labels are computed from the cast tokens and
    link, since a label that was rounded would be an error of the construction.

    Args:
        task: `tasks.Task`.
        num_prompts: B.
        precision: 'float32' or 'float64'.
        seed: of the prompts.

    Returns:
        (`tasks.Draw`, `tasks.Prompt` with a leading axis).

    Raises:
        tasks.DrawError: the encodings cannot be drawn.
    """
    with jax.enable_x64(False):
        task_draw = _draw(tasks.task_key(0, task), task)
        tasks.check_draw(task_draw.encodings.complete, task)
        raw = _examples(jax.random.key(seed), jnp.arange(num_prompts), task, task_draw.link)
    task_draw = task_draw._replace(link=_cast(task_draw.link, precision))
    x_BxNxD = _cast(raw.x_NxD, precision)
    return task_draw, tasks.Prompt(x_BxNxD, raw.t_NxQ, _labels(x_BxNxD, raw.t_NxQ, task, task_draw.link))


_draw = jax.jit(tasks.draw, static_argnames='task')
_examples = jax.jit(tasks.examples, static_argnames='task')


@functools.partial(jax.jit, static_argnames='task')
def _labels(x_BxNxD, t_BxNxQ, task, link):
    return jax.vmap(lambda x_NxD, t_NxQ: task.labels(x_NxD, t_NxQ, link))(x_BxNxD, t_BxNxQ)


@functools.partial(jax.jit, static_argnames=('module', 'task'))
def _square_errors(params, prompts, task_draw, module, task):
    def error(prompt):
        prediction_N = models.predict(module, params, tasks.encode(prompt, task, task_draw))
        return (prompt.y_N - prediction_N) ** 2

    return jax.lax.map(error, prompts, batch_size=min(100, len(prompts.y_N)))


def square_errors(module, params, prompts, task, task_draw):
    """(y_i − ŷ_i)² of one network, (B, N)."""
    return np.asarray(_square_errors(params, prompts, task_draw, module, task))


def largest_error(module, params, prompts, task, task_draw):
    """max |ŷ − y| over prompts and positions, a prompt at a time."""
    errors = [
        square_errors(module, params, jax.tree.map(lambda leaf, b=b: leaf[b : b + 1], prompts), task, task_draw)
        for b in range(len(prompts.y_N))
    ]
    return float(np.sqrt(np.max(errors)))
