"""A plugin that lets fits start at Lemma 11's network or between it and the first parameters, as a control.

`starts='construction'` and `starts='mixed:0.3'` show whether an optimiser stays at, or comes back to, the network of
the proof. They know the encodings and the link, so they are never an answer; `reference='construction'` puts the
network's training risk and test loss beside every fit's.
"""

from typing import Any

import jax
import jax.numpy as jnp

from qstr_jax import models
from qstr_jax.learners import starts
from qstr_jax.tasks import links
from qstr_jax.theory import construction_norm


@starts.register('construction')
def construction(context: starts.StartContext, number: float | None) -> Any:
    """Lemma 11's network for the lane's own link, with the α of `construction_norm.transformer`.

    Args:
        context: the lane's.
        number: the factor on W_QK; None is 1. Where attention is saturated its gradient is zero; below it is not.

    Raises:
        ValueError: the model is no Transformer with merged attention, or too narrow for the link's two-layer form.
    """
    task: Any = context.problem.task
    module: Any = context.problem.module
    if not isinstance(module, models.Transformer) or module.attention != 'merged':
        raise ValueError('starts=construction: needs a Transformer with transformer.attention=merged')
    radius = construction_norm.token_radius(task)
    form = links.two_layer_form(
        task.link, context.task_draw.link, task.sparsity, task.token_dim, radius=radius, error=construction_norm.ERROR
    )
    num_units = form.a_M.shape[0]
    if module.num_heads < task.sparsity or module.mlp_width < num_units:
        raise ValueError(
            f'starts=construction: needs num_heads ≥ {task.sparsity} and mlp_width ≥ {num_units}, '
            f'not {module.num_heads} and {module.mlp_width}'
        )
    zeros = jax.tree.map(jnp.zeros_like, starts.params('init', context))['params']
    d, d_e = task.token_dim, task.encoding_dim
    qk_HxExE, kernel = zeros['attention']['qk_HxExE'], zeros['hidden']['kernel']
    with jax.ensure_compile_time_eval():  # α is a number of the task, and this runs within a program.
        alpha = construction_norm.transformer(task).bounds['alpha']
    block_ExE = alpha * (1.0 if number is None else number) * jnp.eye(d_e)
    for index in range(task.sparsity):
        row = d + (index + 1) * d_e
        qk_HxExE = qk_HxExE.at[index, row : row + d_e, d : d + d_e].set(block_ExE)
        column = index * task.embedding_dim
        weights_DxM = form.W_MxV[:, index * d : (index + 1) * d].T
        kernel = kernel.at[column : column + d, :num_units].set(weights_DxM)
    built = {
        'attention': {'qk_HxExE': qk_HxExE},
        'hidden': {'kernel': kernel, 'bias': zeros['hidden']['bias'].at[:num_units].set(form.b_M)},
        'out': {**zeros['out'], 'kernel': zeros['out']['kernel'].at[:num_units, 0].set(form.a_M)},
    }
    return {'params': built}


@starts.register('mixed')
def mixed(context: starts.StartContext, number: float | None) -> Any:
    """(1 − s) times the first parameters plus s times the construction.

    Args:
        context: the lane's.
        number: s in [0, 1]; None is 0.5.

    Raises:
        ValueError: s outside [0, 1], or as `construction`.
    """
    share = 0.5 if number is None else number
    if not 0 <= share <= 1:
        raise ValueError(f'starts=mixed:{share:g}: must be between 0 and 1')
    first, built = starts.params('init', context), construction(context, None)
    return jax.tree.map(lambda one, other: (1 - share) * one + share * other, first, built)
