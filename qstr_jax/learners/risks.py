"""Risks (2.1)-(2.3) of arXiv:2503.11272 as (weighted) means over prompts of squared errors or cross-entropies."""

from typing import Any

import jax
import jax.numpy as jnp
import optax
from flax import linen as nn

from qstr_jax import models, tasks


def errors(prediction: jax.Array, y: jax.Array, task: tasks.Task) -> jax.Array:
    """The error at each position: (y − ŷ)², or −log softmax(ŷ)_y."""
    if task.loss == 'cross_entropy':
        if prediction.dtype.itemsize < 4:  # bfloat16 would round the loss to two digits
            prediction = prediction.astype(jnp.float32)
        return optax.softmax_cross_entropy_with_integer_labels(prediction, y)
    return (y - prediction) ** 2


def weighted_mean(errors: jax.Array, counts_N: jax.Array | None) -> jax.Array:
    """Σ_i w_i e_i / Σ_i w_i of one prompt."""
    if counts_N is None:
        return jnp.mean(errors)
    errors_N = errors.reshape(counts_N.shape[0], -1).mean(axis=1)
    return jnp.sum(jnp.where(counts_N > 0, counts_N * errors_N, 0.0)) / jnp.sum(counts_N)


def prompt_error(
    module: nn.Module, params: Any, prompt: tasks.Prompt, task: tasks.Task, task_draw: tasks.Draw
) -> jax.Array:
    """(1/N) ‖y − ŷ(p)‖² of one prompt, or Σ_i w_i ℓ(y_i, ŷ(p)_i) / Σ_i w_i; its mean estimates the risk (2.1)."""
    prediction = models.predict(module, params, tasks.encode(prompt, task, task_draw), length=prompt.length)
    return weighted_mean(errors(prediction, prompt.y_N, task), prompt.counts_N)


def prompt_accuracy(
    module: nn.Module, params: Any, prompt: tasks.Prompt, task: tasks.Task, task_draw: tasks.Draw
) -> jax.Array:
    """Σ_i w_i 1[y_i = argmax ŷ(p)_i] / Σ_i w_i of one prompt of classes."""
    prediction_NxC = models.predict(module, params, tasks.encode(prompt, task, task_draw), length=prompt.length)
    is_right_N = jnp.argmax(prediction_NxC, axis=-1) == prompt.y_N
    return weighted_mean(is_right_N.astype(jnp.float32), prompt.counts_N)


def position_error(
    module: nn.Module, params: Any, prompt: tasks.Prompt, position: Any, *, task: tasks.Task, task_draw: tasks.Draw
) -> jax.Array:
    """ℓ(y_j, ŷ(p)_j) of one prompt at position j, say (y_j − ŷ(p)_j)²."""
    z_NxE = tasks.encode(prompt, task, task_draw)
    prediction = models.predict(module, params, z_NxE, position, prompt.length)
    error = errors(prediction, prompt.y_N[position], task)
    return jnp.mean(error) if error.ndim else error


def averaged(
    module: nn.Module, params: Any, prompts: tasks.Prompt, task: tasks.Task, task_draw: tasks.Draw
) -> jax.Array:
    """The averaged risk (2.2): R̂_{n,N} = (1/(nN)) Σ_i ‖y^(i) − ŷ(p^(i))‖², or the mean of weighted means."""
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
    """The point-wise risk (2.3): R̂_n = (1/n) Σ_i ℓ(y^(i)_{j(i)}, ŷ(p^(i))_{j(i)})."""

    def error(prompt: tasks.Prompt, position: jax.Array) -> jax.Array:
        return position_error(module, params, prompt, position, task=task, task_draw=task_draw)

    return jnp.mean(jax.vmap(error)(prompts, positions_B))
