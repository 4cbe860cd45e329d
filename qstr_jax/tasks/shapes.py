"""Checks of a task's prompts: right shapes, all randomness from the key, and only values that prompts may hold."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Literal

from qstr_jax import failures, fingerprints
from qstr_jax.settings import function_names, registry
from qstr_jax.tasks import streams
from qstr_jax.tasks.task import Prompt, Task, sample

# How many rows of indices of a user's task are drawn, as a multiple of N, so that a rare wrong one is not missed.
ROWS = 64


@functools.lru_cache(maxsize=256)
def check(task: Any) -> None:
    """Raises ValueError unless a task draws N labels and encodes N tokens as D_e floats, all from the key.

    Labels are floats (N,), or (N, C) of C numbers; or with 'cross_entropy' integers (N,).

    Links, encodings and tasks are users' functions: the labels of a link that returns (1,) would broadcast silently,
    and numbers drawn by NumPy would be the same in every prompt, until the code is traced again.
    """
    label = _label(task)
    keys = (streams.abstract_key(), streams.abstract_key())
    try:
        traced, ((labels, encoded), _) = jax.make_jaxpr(functools.partial(one_prompt, task), return_shape=True)(*keys)
        again = traced if _is_ours(task) else jax.make_jaxpr(functools.partial(one_prompt, task))(*keys)
    except (Exception, SystemExit) as error:  # a user's function may raise anything
        raise ValueError(f'{label}: {failures.reason(error)}') from error
    if again is not traced and fingerprints.of(traced) != fingerprints.of(again):
        raise ValueError(f'{label}: {failures.FROZEN}')
    if not any(_follow_key(traced)[2:]):
        raise ValueError(f'{label}: every prompt is the same, since nothing in it depends on its key')
    is_number = task.loss != 'cross_entropy'
    numbers = (task.num_outputs,) if is_number and task.num_outputs > 1 else ()
    wanted = {
        'labels': (labels, (task.seq_len, *numbers), is_number),
        'encoded tokens': (encoded, (task.seq_len, task.embedding_dim), True),
    }
    for what, (made, shape, is_float) in wanted.items():
        if made.shape != shape or not jnp.issubdtype(made.dtype, jnp.floating if is_float else jnp.integer):
            kind = 'floats' if is_float else 'integers'
            raise ValueError(f'{label}: {what} must be {kind} of shape {shape}, not {made.dtype} of shape {made.shape}')


@functools.lru_cache(maxsize=256)
def check_prompts(task: Any) -> None:
    """Draws some prompts of a user's task; raises ValueError if one holds a value that no prompt may hold.

    JAX would clamp indices, a class outside 0..C−1 would be another one, and weights below 0 leave no mean.
    """
    indices = getattr(task, 'indices', None)
    if all(map(function_names.is_ours, [type(task), *([indices] if callable(indices) else [])])):
        return
    # A prompt has N rows of indices, or one that all positions share.
    num_prompts = ROWS * (task.seq_len if getattr(task, 'shares_indices', False) else 1)
    may_be = {
        'indices': (0, task.seq_len - 1),
        'lengths': (1, task.seq_len),
        'weights': (0, np.inf),
        'classes': (0, task.num_outputs - 1),
    }

    def held(prompt: Prompt) -> dict[str, Any]:
        found = {'indices': prompt.t_NxQ, 'lengths': prompt.length, 'weights': prompt.weights_N}
        if task.loss == 'cross_entropy':
            counts_N = prompt.counts_N
            found['classes'] = prompt.y_N if counts_N is None else jnp.where(counts_N > 0, prompt.y_N, 0)
        return {name: value for name, value in found.items() if value is not None and jnp.size(value)}

    @jax.jit  # compiled, so that tokens are not computed where no bound depends on them
    def bounds(keys_B: jax.Array) -> dict[str, tuple[jax.Array, jax.Array]]:
        drawn = task.draw(keys_B[0])

        def of_one(key: jax.Array) -> dict[str, tuple[jax.Array, jax.Array]]:
            prompt = held(sample(key, task, drawn.link))
            return {name: (jnp.min(value), jnp.max(value)) for name, value in prompt.items()}

        ends = jax.lax.map(of_one, keys_B, batch_size=ROWS)
        return {name: (jnp.min(least_B), jnp.max(most_B)) for name, (least_B, most_B) in ends.items()}

    for name, ends in bounds(jax.random.split(jax.random.key(0), num_prompts)).items():
        (least, most), (low, high) = map(np.asarray, ends), may_be[name]
        if least < low or most > high:
            which = {'indices': ' (0..N−1)', 'lengths': ' (1..N)', 'classes': ' (0..C−1)'}.get(name, '')
            hint = '; a position that does not count has weight 0' if name == 'classes' else ''
            raise ValueError(f'{_label(task)}: {name} must lie in {low}..{high}{which}, not in {least}..{most}{hint}')


def _label(task: Task) -> str:
    parts = {name: getattr(task, name, None) for name in ('link', 'encoding')}
    named = {'task': task.name} | {name: getattr(part, 'name', part) for name, part in parts.items()}
    return ', '.join(f'{name}={one!r}' for name, one in named.items() if one)


def _is_ours(task: Task) -> bool:
    """Whether a task runs only code of this package."""
    things: list[Any] = [type(task)]
    for value in vars(task).values():
        name = getattr(value, 'name', None)
        if callable(value) or name is not None:
            entry = registry.entries().get(str(name))
            things.append(value if entry is None else entry.builder)
    return all(map(function_names.is_ours, things))


def one_prompt(task: Task, task_key: jax.Array, key: jax.Array) -> tuple[tuple[jax.Array, jax.Array], Prompt]:
    """Labels and encoded tokens of one prompt, and the prompt."""
    drawn = task.draw(task_key)
    prompt = sample(key, task, drawn.link)
    return (jnp.asarray(prompt.y_N), jnp.asarray(task.encode(prompt, drawn))), prompt


def _follow_key(traced: ClosedJaxpr) -> list[bool]:
    """Whether each result can follow from the last argument; parts of a program are not looked into."""
    following = {traced.jaxpr.invars[-1]}

    def follows(atom: Any) -> bool:
        return not isinstance(atom, Literal) and atom in following

    for eqn in traced.jaxpr.eqns:
        if any(map(follows, eqn.invars)):
            following |= set(eqn.outvars)
    return list(map(follows, traced.jaxpr.outvars))
