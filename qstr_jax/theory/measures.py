"""Quantities of the proofs, measured on trained or constructed weights."""

import functools
import itertools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from qstr_jax import tasks
from qstr_jax.models import probes
from qstr_jax.theory.sparse_task import SparseTask


class Alignment(NamedTuple):
    """How much each head resembles Lemma 11's construction, where each head is matched to an index l."""

    share_HxQ: jax.Array  # share of ‖W_QK^(h)‖_F² in the block (query's ω_{t_l}, key's ω_j)
    cosine_HxQ: jax.Array  # cosine between that block and the identity, tr B/(√d_e ‖B‖_F)
    index_H: jax.Array  # the index l that head h is matched to; −1 for heads without a match
    share: jax.Array  # mean share over the matched heads
    cosine: jax.Array  # mean cosine over the matched heads


def match_heads(gain_HxQ: jax.Array | np.ndarray) -> jax.Array:
    """Matches heads to indices one to one, with the largest total gain; tries all ways, so H and q are small."""
    gain_HxQ = jnp.asarray(gain_HxQ)
    num_heads, sparsity = gain_HxQ.shape
    if num_heads < sparsity:
        ways = np.array(list(itertools.permutations(range(sparsity), num_heads)))
        return jnp.asarray(ways)[jnp.argmax(gain_HxQ[np.arange(num_heads), ways].sum(axis=1))]
    ways = np.array(list(itertools.permutations(range(num_heads), sparsity)))
    head_Q = jnp.asarray(ways)[jnp.argmax(gain_HxQ[ways, np.arange(sparsity)].sum(axis=1))]
    return jnp.full(num_heads, -1).at[head_Q].set(jnp.arange(sparsity))


def _matched(values_HxQ: jax.Array, index_H: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Mean and least value over the matched heads."""
    value_H = jnp.take_along_axis(values_HxQ, jnp.maximum(index_H, 0)[:, None], axis=1)[:, 0]
    return jnp.mean(value_H, where=index_H >= 0), jnp.min(value_H, where=index_H >= 0, initial=jnp.inf)


def alignment(params: dict, task: SparseTask) -> Alignment:
    """How much a Transformer's W_QK = W_Q^T W_K resembles Lemma 11's construction, (A.2)."""
    d, d_e, q = task.token_dim, task.encoding_dim, task.sparsity
    qk_HxExE = probes.query_key_HxExE(params)
    rows_HxQxExE = qk_HxExE[:, d + d_e :, d : d + d_e].reshape(-1, q, d_e, d_e)
    energy_HxQ = jnp.sum(rows_HxQxExE**2, axis=(2, 3))
    total_H = jnp.sum(qk_HxExE**2, axis=(1, 2))
    tiny = jnp.finfo(energy_HxQ.dtype).tiny
    share_HxQ = energy_HxQ / jnp.maximum(total_H, tiny)[:, None]
    trace_HxQ = jnp.trace(rows_HxQxExE, axis1=2, axis2=3)
    cosine_HxQ = trace_HxQ / jnp.sqrt(jnp.maximum(d_e * energy_HxQ, tiny))
    index_H = match_heads(share_HxQ)
    return Alignment(
        share_HxQ=share_HxQ,
        cosine_HxQ=cosine_HxQ,
        index_H=index_H,
        share=_matched(share_HxQ, index_H)[0],
        cosine=_matched(cosine_HxQ, index_H)[0],
    )


def retrieval_weights(
    module: Any, params: dict, prompt: tasks.Prompt, task: SparseTask, task_draw: tasks.Draw
) -> jax.Array:
    """The attention weights of the relevant tokens of one prompt."""
    z_NxE = tasks.encode(prompt, task, task_draw)
    _, sown = module.apply(params, z_NxE, mutable='intermediates')
    weights_HxNxN = sown['intermediates']['attention']['weights_HxMxN'][0]
    t_HxNxQ = jnp.broadcast_to(prompt.t_NxQ[None], (weights_HxNxN.shape[0], *prompt.t_NxQ.shape))
    return jnp.take_along_axis(weights_HxNxN, t_HxNxQ, axis=2)


@functools.partial(jax.jit, static_argnames=('module', 'task'))
def _mean_and_least_weights(
    module: Any, params: dict, prompts: tasks.Prompt, task: SparseTask, task_draw: tasks.Draw
) -> tuple[jax.Array, jax.Array]:
    """Means and minima of `retrieval_weights` over prompts and positions, (H, q)."""
    weights_BxHxNxQ = jax.lax.map(lambda prompt: retrieval_weights(module, params, prompt, task, task_draw), prompts)
    return jnp.mean(weights_BxHxNxQ, axis=(0, 2)), jnp.min(weights_BxHxNxQ, axis=(0, 2))


def off_mass(
    module: Any, params: dict, prompts: tasks.Prompt, task: SparseTask, task_draw: tasks.Draw
) -> dict[str, jax.Array]:
    """Attention mass off the right token, 1 − weight of t_il, with heads matched to indices by mean weight."""
    mean_HxQ, least_HxQ = _mean_and_least_weights(module, params, prompts, task, task_draw)
    index_H = match_heads(mean_HxQ)
    return {'mean': 1 - _matched(mean_HxQ, index_H)[0], 'max': 1 - _matched(least_HxQ, index_H)[1]}
