"""Squared-loss risks (2.1)-(2.3) of arXiv:2503.11272, written as means over prompts."""

from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn

from qstr_jax import models, tasks


def prompt_error(
    module: nn.Module, params: Any, prompt: tasks.Prompt, task: tasks.Task, task_draw: tasks.Draw
) -> jax.Array:
    """(1/N) ‖y − ŷ(p)‖² of one prompt; its mean over fresh prompts estimates the risk (2.1).

    Args:
        module: the model.
        params: its parameters, {'params': …}.
        prompt: one prompt p.
        task: the task of the prompt.
        task_draw: the encodings that the prompt is encoded with.
    """
    prediction_N = models.predict(module, params, tasks.encode(prompt, task, task_draw))
    return jnp.mean((prompt.y_N - prediction_N) ** 2)


def position_error(
    module: nn.Module, params: Any, prompt: tasks.Prompt, position: Any, *, task: tasks.Task, task_draw: tasks.Draw
) -> jax.Array:
    """(y_j − ŷ(p)_j)² of one prompt at position j.

    Args:
        module: the model.
        params: its parameters, {'params': …}.
        prompt: one prompt p.
        position: j, from 0; may be traced.
        task: the task of the prompt.
        task_draw: the encodings that the prompt is encoded with.
    """
    z_NxE = tasks.encode(prompt, task, task_draw)
    prediction = models.predict(module, params, z_NxE, position)
    return (prompt.y_N[position] - prediction) ** 2


def averaged(
    module: nn.Module, params: Any, prompts: tasks.Prompt, task: tasks.Task, task_draw: tasks.Draw
) -> jax.Array:
    """The averaged risk (2.2): R̂_{n,N} = (1/(nN)) Σ_i ‖y^(i) − ŷ(p^(i))‖².

    Args:
        module: the model.
        params: its parameters, {'params': …}.
        prompts: n prompts, with a leading axis.
        task: the task of the prompts.
        task_draw: the encodings that the prompts are encoded with.
    """
    errors_B = jax.vmap(lambda p: prompt_error(module, params, p, task, task_draw))(prompts)
    return jnp.mean(errors_B)


def pointwise(
    module: nn.Module,
    params: Any,
    prompts: tasks.Prompt,
    positions_B: jax.Array,
    *,
    task: tasks.Task,
    task_draw: tasks.Draw,
) -> jax.Array:
    """The point-wise risk (2.3): R̂_n = (1/n) Σ_i (y^(i)_{j(i)} − ŷ(p^(i))_{j(i)})².

    Args:
        module: the model.
        params: its parameters, {'params': …}.
        prompts: n prompts, with a leading axis.
        positions_B: the positions j(i), (n,), drawn once with the sample.
        task: the task of the prompts.
        task_draw: the encodings that the prompts are encoded with.
    """

    def error(prompt: tasks.Prompt, position: jax.Array) -> jax.Array:
        return position_error(module, params, prompt, position, task=task, task_draw=task_draw)

    return jnp.mean(jax.vmap(error)(prompts, positions_B))
