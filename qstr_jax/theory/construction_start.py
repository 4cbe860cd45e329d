"""A plugin that lets fits start at a network of the proofs or between it and the first parameters, as a control.

`starts='construction'` and `starts='mixed:0.3'` show whether an optimiser stays at, or comes back to, the network of
the proof. They know the encodings and the link, so they are never an answer; `reference='construction'` puts the
network's training risk and test loss beside every fit's.
"""

from typing import Any

import jax
import jax.numpy as jnp
import optax

from qstr_jax import models
from qstr_jax.learners import starts
from qstr_jax.tasks import links
from qstr_jax.theory import construction_norm

# A limit for |⟨u, x⟩|: the Gaussian ⟨u, x⟩ exceeds it for two tokens in a billion.
REACH = 6.0


@starts.register('construction')
def construction(context: starts.StartContext, number: float | None) -> Any:
    """Lemma 11's network for the lane's own link, with the α of `construction_norm.transformer`; for an FFN `lookup`.

    The number is a factor on W_QK, 1 if none is given. Saturated attention has no gradient, so a smaller factor lets it
    move. It needs a Transformer with merged attention or an FFN of the form 'theorem6', wide enough.
    """
    task: Any = context.problem.task
    module: Any = context.problem.module
    if isinstance(module, models.Feedforward) and module.form == 'theorem6':
        return lookup(context)
    if not isinstance(module, models.Transformer) or module.attention != 'merged':
        raise ValueError('needs transformer.attention=merged, or ffn.form=theorem6')
    radius = construction_norm.token_radius(task)
    form = links.two_layer_form(
        task.link, context.task_draw.link, task.sparsity, task.token_dim, radius=radius, error=construction_norm.ERROR
    )
    num_units = form.a_M.shape[0]
    if module.num_heads < task.sparsity or module.mlp_width < num_units:
        raise ValueError(
            f'needs num_heads ≥ {task.sparsity} and mlp_width ≥ {num_units}, '
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


def lookup(context: starts.StartContext) -> Any:
    """An FFN f(T, W x) that retrieves on simple-1STR: σ(±⟨u, x_j⟩ − C (1 − ⟨ω_j, ω_t⟩)) of all j, added up.

    C keeps all units of j ≠ t at zero while |⟨u, x_j⟩| < REACH. Where W is kept in the span of the training prompts,
    its rows are the projections of e_j ⊗ u, and the network is Theorem 6's oracle.
    """
    task: Any = context.problem.task
    widths = context.problem.module.widths
    if task.name != 'simple_qstr' or task.sparsity != 1 or task.link.name != 'linear':
        raise ValueError(
            f'an FFN looks up one token of simple_qstr with link=linear, not task={task.name!r}, '
            f'sparsity={task.sparsity}, link={task.link.name!r}'
        )
    N, d_e = task.seq_len, task.encoding_dim
    if widths[0] < 2 * N or min(widths) < 2:
        raise ValueError(f'needs ffn.widths of at least {2 * N}, then 2, not {widths}')
    omega_NxE = context.task_draw.encodings.omega_NxE
    shut = REACH / (1 - jnp.max(omega_NxE @ omega_NxE.T - 2 * jnp.eye(N)))
    built = jax.tree.map(jnp.zeros_like, starts.params('init', context))['params']
    rows_VxN = jnp.kron(jnp.eye(N), context.task_draw.link['u_V'][:, None])
    gate_ExN = shut / task.scale * omega_NxE.T
    tokens, indices = built['tokens']['kernel'], built['indices']
    for sign, units in ((1.0, slice(0, N)), (-1.0, slice(N, 2 * N))):
        tokens = tokens.at[:, units].set(sign * rows_VxN)
        # Of the flattened encodings (ω_1, ω_t, ω_2, ω_t, …) it reads the first ω_t.
        gates = indices['kernel'].at[d_e : 2 * d_e, units].set(gate_ExN)
        indices = {'kernel': gates, 'bias': indices['bias'].at[units].set(-shut)}
    layers: list[Any] = [{'tokens': {'kernel': tokens}, 'indices': indices}]
    sums = [slice(0, N), slice(N, 2 * N)]
    for name in (f'hidden_{i}' for i in range(1, len(widths))):
        kernel = built[name]['kernel'].at[sums[0], 0].set(1.0).at[sums[1], 1].set(1.0)
        layers.append({name: {**built[name], 'kernel': kernel}})
        sums = [slice(0, 1), slice(1, 2)]
    kernel = built['out']['kernel'].at[sums[0]].set(1.0).at[sums[1]].set(-1.0)
    layers.append({'out': {**built['out'], 'kernel': kernel}})
    return {'params': _balanced(layers)}


def _balanced(layers: list[Any]) -> dict[str, Any]:
    """The ReLU network with the same norm in each layer, which is the smallest norm of the same function."""
    norms = jnp.stack([optax.tree.norm(layer) for layer in layers])
    common = jnp.exp(jnp.mean(jnp.log(norms)))
    scaled = [optax.tree.scale(common / norm, layer) for layer, norm in zip(layers, norms, strict=True)]
    return {name: part for layer in scaled for name, part in layer.items()}


@starts.register('mixed')
def mixed(context: starts.StartContext, number: float | None) -> Any:
    """(1 − s) times the first parameters plus s times the construction; s is in [0, 1], 0.5 if none is given."""
    share = 0.5 if number is None else number
    if not 0 <= share <= 1:
        raise ValueError('after the colon must be between 0 and 1')
    first, built = starts.params('init', context), construction(context, None)
    return jax.tree.map(lambda one, other: (1 - share) * one + share * other, first, built)
