"""Whether a task makes prompts of the right shapes; nothing is computed."""

import functools
from typing import Any

import jax
import jax.numpy as jnp

from qstr_jax import failures
from qstr_jax.tasks import streams
from qstr_jax.tasks.task import Task


@functools.lru_cache(maxsize=256)
def check(task: Any) -> None:
    """Raises ValueError unless a task draws N float labels and encodes N tokens as D_e floats.

    Links, encodings and tasks are users' functions: the labels of a link that returns (1,) would broadcast silently.

    Args:
        task: the `tasks.Task`.
    """
    parts = [f'task={task.name!r}']
    parts += [f'{name}={part!r}' for name in ('link', 'encoding') if (part := _name(getattr(task, name, None)))]
    label = ', '.join(parts)
    try:
        labels, encoded = jax.eval_shape(functools.partial(_one_prompt, task), streams.abstract_key())
    except (Exception, SystemExit) as error:  # whatever a user's function does
        raise ValueError(f'{label}: {failures.reason(error)}') from error
    wanted = {'labels': (labels, (task.seq_len,)), 'encoded tokens': (encoded, (task.seq_len, task.embedding_dim))}
    for what, (made, shape) in wanted.items():
        if made.shape != shape or not jnp.issubdtype(made.dtype, jnp.floating):
            raise ValueError(f'{label}: {what} must be floats of shape {shape}, not {made.dtype} of shape {made.shape}')


def _one_prompt(task: Task, key: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Labels and encoded tokens of one prompt."""
    drawn = task.draw(key)
    prompt = task.sample(key, drawn.link)
    return jnp.asarray(prompt.y_N), jnp.asarray(task.encode(prompt, drawn))


def _name(part: Any) -> Any:
    return getattr(part, 'name', part)
