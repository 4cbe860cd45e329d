"""Probes: functions that measure trained parameters and add columns to a row.

A probe takes the trained parameters of one lane, its `tasks.Draw` and the cell's `Problem`, and returns a dict of
column → scalar; `vmap` adds the lanes. A probe that does not apply to a model returns an empty dict.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax

from qstr_jax import tasks
from qstr_jax.models import Transformer
from qstr_jax.settings import registry
from qstr_jax.tasks import encodings, streams

REGISTRY = registry.Registry('probe', 'probes', leading=('params', 'task_draw', 'problem'))
Probe = Callable[..., dict[str, Any]]


def register(probe: Probe) -> Probe:
    """Decorator that registers a function (params, task_draw, problem, **settings) → columns under its name.

    Args:
        probe: the function.

    Raises:
        ValueError: the name is taken.
    """
    REGISTRY.add(probe.__name__, probe)
    return probe


def names() -> tuple[str, ...]:
    """Names that a sweep's `probes` can list."""
    return REGISTRY.names()


def get(name: str, **settings: Any) -> Probe:
    """The probe of a name, with its settings."""
    entry = REGISTRY.get(name)
    return functools.partial(entry.builder, **entry.schema.checked(settings, name))


def encoding_columns(task_draw: tasks.Draw) -> dict[str, jax.Array]:
    """Columns that every row has: how well the positional encodings can be told apart."""
    omega_NxE = task_draw.encodings.omega_NxE
    return {
        'encoding_coherence': encodings.coherence(omega_NxE),
        'encoding_equal_pairs': encodings.equal_pairs(omega_NxE),
        'encoding_redraws': task_draw.encodings.redraws,
    }


@register
def param_norm(params: dict, task_draw: tasks.Draw, problem: Any) -> dict[str, jax.Array]:
    """‖vec Θ‖₂, the Euclidean norm of all parameters."""
    return {'param_norm': optax.tree.norm(params)}


def query_key_HxExE(params: dict) -> jax.Array:
    """W_QK = W_Q^T W_K of each head. Query i scores key j by z_i^T W_QK z_j; the factor 1/√D_e is left out."""
    weights = params['params']['attention']
    if 'qk_HxExE' in weights:
        return weights['qk_HxExE']
    kernel_Ex3xHxA = weights['in_kernel']
    return jnp.einsum('eha,fha->hef', kernel_Ex3xHxA[:, 0], kernel_Ex3xHxA[:, 1])


@register
def retrieval_share(params: dict, task_draw: tasks.Draw, problem: Any) -> dict[str, jax.Array]:
    """Share of ‖W_QK‖_F² in the block that pairs the query's ω_{t_l} with the key's ω_j, where Lemma 11 has all of it.

    Each head counts with the largest of its q blocks; the column is the mean over heads. Transformers only, and tasks
    whose tokens hold x_i, ω_i and the q encodings ω_{t_l}.
    """
    task = problem.task
    if not isinstance(problem.module, Transformer) or not hasattr(task, 'encoding_dim'):
        return {}
    d, d_e, q = task.token_dim, task.encoding_dim, getattr(task, 'sparsity', 0)
    if not q or task.embedding_dim != d + (q + 1) * d_e:
        return {}
    energy_HxExE = query_key_HxExE(params) ** 2
    key = slice(d, d + d_e)
    blocks = [energy_HxExE[:, d + (j + 1) * d_e : d + (j + 2) * d_e, key] for j in range(q)]
    block_QxH = jnp.stack([jnp.sum(block, axis=(1, 2)) for block in blocks])
    share_H = jnp.max(block_QxH, axis=0) / jnp.sum(energy_HxExE, axis=(1, 2))
    return {'retrieval_share': jnp.mean(share_H)}


@register
def retrieval_mass(params: dict, task_draw: tasks.Draw, problem: Any) -> dict[str, jax.Array]:
    """Attention mass on the relevant tokens, averaged over heads, positions that count and 256 validation prompts.

    At each position the weights of the distinct relevant tokens are summed; 1 means that no head looks elsewhere.
    Transformers only, and tasks with relevant tokens.
    """
    if not isinstance(problem.module, Transformer):
        return {}
    task = problem.task
    key = streams.stream_key(0, 'validation', task)
    prompts = tasks.examples(key, jnp.arange(256), task, task_draw.link, 'validation')
    if not prompts.t_NxQ.shape[-1]:  # No position asks for a token.
        return {}

    def mass(prompt: tasks.Prompt) -> jax.Array:
        z_NxE = tasks.encode(prompt, task, task_draw)
        if prompt.length is not None:
            z_NxE = jnp.where(jnp.arange(task.seq_len)[:, None] < prompt.length, z_NxE, 0.0)
        _, sown = problem.module.apply(params, z_NxE, length=prompt.length, mutable='intermediates')
        weights_HxNxN = sown['intermediates']['attention']['weights_HxMxN'][0]
        is_relevant_NxN = jnp.any(prompt.t_NxQ[:, :, None] == jnp.arange(task.seq_len)[None, None, :], axis=1)
        mass_N = jnp.mean(jnp.sum(weights_HxNxN * is_relevant_NxN[None], axis=-1), axis=0)
        return jnp.average(mass_N, weights=prompt.counts_N)

    return {'retrieval_mass': jnp.mean(jax.vmap(mass)(prompts))}
