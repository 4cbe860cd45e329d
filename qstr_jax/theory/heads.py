"""Propositions 3 and 21 beside networks: floors of trained lanes, late losses of best readers and constructions."""

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from qstr_jax import tasks
from qstr_jax.models import attention
from qstr_jax.theory import constructions, draws, floors
from qstr_jax.theory.sparse_task import SparseTask

# The error that constructions may make.
_ERROR = 0.02


def half_settings(sparsity: int, token_dim: int, link: str = 'norm2') -> dict[str, Any]:
    """Name and settings of `half_task`."""
    # With d_e > N the encodings are linearly independent, which the oracle needs and which makes training easier.
    sizes = {'seq_len': 2 * sparsity + 1, 'sparsity': sparsity, 'token_dim': token_dim}
    halves = {'indices': 'half', 'tokens': 'half', 'encoding_dim': 2 * sparsity + 4}
    return {'name': 'qstr', 'link': link, **sizes, **halves}


def half_task(sparsity: int, token_dim: int, link: str = 'norm2') -> SparseTask:
    """Proposition 3's distribution at the least N: q Gaussian tokens, t_i = (1, …, q) and x_i = 0 at late positions."""
    return tasks.build(**half_settings(sparsity, token_dim, link))


def _on_prompts(task: SparseTask, build: Callable[..., Any], num_prompts: int) -> np.ndarray:
    """Errors of a construction for the prompts' tokens at late positions, (B,)."""
    task_draw, prompts = draws.draw(task, num_prompts, seed=2)
    radius = float(jnp.max(jnp.linalg.norm(prompts.x_NxD, axis=-1)))
    built = build(task, task_draw, radius, _ERROR)
    errors_BxN = draws.square_errors(built.module, built.params, prompts, task, task_draw)
    return errors_BxN[:, np.asarray(floors.late_positions(task.seq_len))].mean(axis=1)


def constructed(sparsity: int, token_dim: int, num_heads: int, num_prompts: int) -> tuple[float, float]:
    """The loss at late positions of Lemma 11's construction with H ≥ q heads, and its standard error."""
    build = functools.partial(constructions.transformer, num_heads=num_heads)
    with jax.enable_x64(True):
        return draws.mean_and_error(_on_prompts(half_task(sparsity, token_dim), build, num_prompts))


def averaging(sparsity: int, token_dim: int, num_prompts: int) -> float:
    """Loss at late positions of one head that averages, for the linear mean link, whose variance is 1/q."""
    task = half_task(sparsity, token_dim, 'mean')
    with jax.enable_x64(True):
        return float(np.mean(_on_prompts(task, constructions.sparse_average, num_prompts)))


@functools.partial(jax.jit, static_argnames='task')
def _oracle_errors(task: SparseTask, task_draw: tasks.Draw, qk_HxExE: jax.Array, prompts: tasks.Prompt) -> jax.Array:
    position, module = task.seq_len - 1, attention.MergedAttention(num_heads=qk_HxExE.shape[0])

    def error(prompt: tasks.Prompt) -> jax.Array:
        z_NxE = tasks.encode(prompt, task, task_draw)
        heads_1xF = jnp.asarray(module.apply({'params': {'qk_HxExE': qk_HxExE}}, z_NxE[position][None], z_NxE))
        heads_HxE = heads_1xF.reshape(qk_HxExE.shape[0], -1)
        omega_NxE = task_draw.encodings.omega_NxE
        seen = floors.seen_through_heads(
            heads_HxE, qk_HxExE, prompt.t_NxQ, position=position, task=task, omega_NxE=omega_NxE
        )
        return (prompt.y_N[position] - floors.oracle(*seen)) ** 2

    return jax.lax.map(error, prompts, batch_size=100)


def oracle(
    sparsity: int, token_dim: int, num_heads: int, num_prompts: int, restricted: bool = False
) -> tuple[float, float]:
    """The loss at the last position, which is late, of the best reader of H random heads, and its standard error.

    It reads the real module's outputs and nothing else.
    """
    with jax.enable_x64(True):
        task = half_task(sparsity, token_dim)
        task_draw, prompts = draws.draw(task, num_prompts, seed=2)
        size = task.embedding_dim
        qk_HxExE = jax.random.normal(jax.random.key(3), (num_heads, size, size)) / math.sqrt(size)
        qk_HxExE = qk_HxExE.at[:, :, :token_dim].set(0) if restricted else qk_HxExE
        return draws.mean_and_error(_oracle_errors(task, task_draw, qk_HxExE, prompts))


def floor_of_row(row: Mapping[str, Any]) -> float:
    """The floor of the test loss that the number of heads sets; 0 where the task is not Proposition 3's."""
    heads = row.get('transformer_num_heads')
    is_task = (row['link'], row['indices'], row['tokens']) == ('norm2', 'half', 'half')
    if not is_task or heads is None or pd.isna(heads):
        return 0.0
    return floors.head_floor(int(heads), int(row['sparsity']), int(row['token_dim']))
