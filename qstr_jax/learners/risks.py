"""Squared-loss risks (2.1)-(2.3) of a predictor, written as means over prompts."""

import jax
import jax.numpy as jnp

from qstr_jax import models, tasks

NAMES = ('averaged', 'pointwise')


def prompt_error(module, params, prompt, task, task_draw):
    """(1/N) ‖y − ŷ(p)‖² of one prompt; its mean over fresh prompts estimates the risk (2.1)."""
    prediction_N = models.predict(module, params, tasks.encode(prompt, task, task_draw))
    return jnp.mean((prompt.y_N - prediction_N) ** 2)


def position_error(module, params, prompt, position, task, task_draw):
    """(y_j − ŷ(p)_j)² of one prompt at position j."""
    z_NxE = tasks.encode(prompt, task, task_draw)
    prediction = models.predict(module, params, z_NxE, position)
    return (prompt.y_N[position] - prediction) ** 2


def averaged(module, params, prompts, task, task_draw):
    """R̂_{n,N} = (1/(nN)) Σ_i ‖y^(i) − ŷ(p^(i))‖² (2.2) over prompts with a leading axis."""
    errors = jax.vmap(lambda p: prompt_error(module, params, p, task, task_draw))(prompts)
    return jnp.mean(errors)


def pointwise(module, params, prompts, positions_B, task, task_draw):
    """R̂_n = (1/n) Σ_i (y^(i)_{j(i)} − ŷ(p^(i))_{j(i)})² (2.3); `positions_B` are drawn with the sample."""
    errors = jax.vmap(lambda p, position: position_error(module, params, p, position, task, task_draw))(
        prompts, positions_B
    )
    return jnp.mean(errors)
