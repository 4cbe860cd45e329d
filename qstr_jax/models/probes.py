"""Probes: functions of (params, task) that add columns to a row.

A probe takes one lane's trained parameters, its `tasks.Draw` and the cell's `online.Problem`, and returns a
dict of column → scalar; lanes come by vmap. Columns of a probe that does not apply are missing.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax

from qstr_jax import registry, tasks
from qstr_jax.models import Transformer
from qstr_jax.tasks import encodings, streams

REGISTRY = registry.Registry('probe', 'probes', skip=3)
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
    """The probe of a name, with its settings.

    Args:
        name: as registered.
        **settings: of the probe.

    Raises:
        ValueError: an unknown name or setting.
    """
    entry = REGISTRY.get(name)
    return functools.partial(entry.builder, **entry.schema.checked(settings, name))


def encoding_columns(task_draw):
    """Columns that every row has: how well positions can be told apart."""
    omega_NxE = task_draw.encodings.omega_NxE
    return {
        'encoding_coherence': encodings.coherence(omega_NxE),
        'encoding_equal_pairs': encodings.equal_pairs(omega_NxE),
        'encoding_redraws': task_draw.encodings.redraws,
    }


@register
def param_norm(params, task_draw, problem):
    """‖vec Θ‖₂."""
    return {'param_norm': optax.tree.norm(params)}


def query_key_HxExE(params):
    """W_QK = W_Q^T W_K of each head, row the query's: z_i^T W_QK z_j is the score (scale left out)."""
    weights = params['params']['attention']
    if 'qk_HxExE' in weights:
        return weights['qk_HxExE']
    kernel_Ex3xHxA = weights['in_kernel']
    return jnp.einsum('eha,fha->hef', kernel_Ex3xHxA[:, 0], kernel_Ex3xHxA[:, 1])


@register
def retrieval_share(params, task_draw, problem):
    """Share of ‖W_QK‖_F² in the blocks that pair the query's ω_t with the key's ω_i, as Lemma 11 builds it.

    Per head the best of its q blocks; the column is the mean over heads. Transformers only.
    """
    if not isinstance(problem.module, Transformer):
        return {}
    d, d_e, q = problem.task.token_dim, problem.task.encoding_dim, problem.task.sparsity
    energy_HxExE = query_key_HxExE(params) ** 2
    key = slice(d, d + d_e)
    blocks = [energy_HxExE[:, d + (j + 1) * d_e : d + (j + 2) * d_e, key] for j in range(q)]
    block_QxH = jnp.stack([jnp.sum(block, axis=(1, 2)) for block in blocks])
    share_H = jnp.max(block_QxH, axis=0) / jnp.sum(energy_HxExE, axis=(1, 2))
    return {'retrieval_share': jnp.mean(share_H)}


@register
def retrieval_mass(params, task_draw, problem):
    """Attention mass on the relevant tokens, averaged over heads, positions and 256 fresh test prompts.

    Per position the sum over distinct relevant tokens; one head per relevant token makes it 1. Transformers only.
    """
    if not isinstance(problem.module, Transformer):
        return {}
    task = problem.task
    key = streams.stream_key(0, 'validation', task)
    prompts = tasks.examples(key, jnp.arange(256), task, task_draw.link)

    def mass(prompt):
        z_NxE = tasks.encode(prompt, task, task_draw)
        _, sown = problem.module.apply(params, z_NxE, mutable='intermediates')
        weights_HxNxN = sown['intermediates']['attention']['weights_HxMxN'][0]
        is_relevant_NxN = jnp.any(prompt.t_NxQ[:, :, None] == jnp.arange(task.seq_len)[None, None, :], axis=1)
        return jnp.mean(jnp.sum(weights_HxNxN * is_relevant_NxN[None], axis=-1))

    return {'retrieval_mass': jnp.mean(jax.vmap(mass)(prompts))}
