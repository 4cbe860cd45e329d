"""What the cards of Propositions 3 and 21 share: losses at late positions of trained networks and of best readers."""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from qstr_jax import models, tasks
from qstr_jax.models import attention
from qstr_jax.theory import constructions, floors
from qstr_jax.theory.altered import Altered
from qstr_jax.theory.cards import draws, training
from qstr_jax.theory.sparse_task import SparseTask


@dataclasses.dataclass(frozen=True)
class Settings(training.Settings):
    """Settings of both cards.

    Attributes:
        num_lanes: trained networks of each kind.
        mlp_width: width of the ReLU layer.
        oracle_prompts: prompts on which best readers and constructions are tested.
    """

    num_lanes: int = 2
    learning_rate: float = 1e-2
    mlp_width: int = 128
    oracle_prompts: int = 2000


# A network's name, loss and standard error.
Found = tuple[str, float, float]


def describe(settings: Settings) -> str:
    """What was run, in one line.

    Args:
        settings: of the card.
    """
    return (
        f'norm2, N = 2q + 1, merged attention, AdamW on {settings.steps:,} × {settings.batch_size} fresh prompts, '
        f'{settings.num_lanes} lanes; loss at positions i ≥ N/2 on {settings.test_samples:,} prompts, where the label '
        'has variance 2.'
    )


def half_task(sparsity: int, token_dim: int, link: str = 'norm2') -> SparseTask:
    """Proposition 3's distribution at the least N: q Gaussian tokens, and t_i = (1, …, q), x_i = 0 at late positions.

    Args:
        sparsity: q.
        token_dim: d.
        link: the link's name.
    """
    # With d_e > N the encodings are linearly independent, which the oracle needs and which makes training easier.
    return tasks.build(
        'qstr',
        seq_len=2 * sparsity + 1,
        sparsity=sparsity,
        token_dim=token_dim,
        link=link,
        indices='half',
        tokens='half',
        encoding_dim=2 * sparsity + 4,
    )


@dataclasses.dataclass(frozen=True)
class BlockDiagonal(Altered):
    """A merged Transformer whose W_QK has no block between tokens and encodings (Proposition 21).

    Attributes:
        token_dim: d.
    """

    token_dim: int

    def altered(self, params: dict) -> dict:
        """The parameters with the blocks between tokens and encodings set to zero.

        Args:
            params: by layer.
        """
        attention = params['attention']
        is_token_E = jnp.arange(attention['qk_HxExE'].shape[-1]) < self.token_dim
        mask_ExE = is_token_E[:, None] == is_token_E[None, :]
        return {**params, 'attention': {**attention, 'qk_HxExE': attention['qk_HxExE'] * mask_ExE[None]}}


def trained(
    sparsity: int, token_dim: int, num_heads: int, settings: Settings, restricted: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Trains Transformers.

    Args:
        sparsity: q.
        token_dim: d.
        num_heads: H.
        settings: of the card.
        restricted: whether W_QK is block-diagonal between tokens and encodings.

    Returns:
        Losses at late positions (k,), and their standard errors (k,).
    """
    task = half_task(sparsity, token_dim)
    module: Any = models.Transformer(num_heads=num_heads, mlp_width=settings.mlp_width, attention='merged')
    module = BlockDiagonal(module, token_dim) if restricted else module
    fit = training.train(task, module, training.of(settings), settings.num_lanes)
    return training.loss_at(fit, floors.late_positions(task.seq_len))


def _on_prompts(task: SparseTask, build: Callable[..., Any], num_prompts: int, error: float) -> tuple[Any, np.ndarray]:
    """A construction for the prompts' tokens, and its errors at late positions, (B,)."""
    task_draw, prompts = draws.draw(task, num_prompts, seed=2)
    radius = float(jnp.max(jnp.linalg.norm(prompts.x_NxD, axis=-1)))
    built = build(task, task_draw, radius, error)
    errors_BxN = draws.square_errors(built.module, built.params, prompts, task, task_draw)
    return built, errors_BxN[:, np.asarray(floors.late_positions(task.seq_len))].mean(axis=1)


def constructed(
    sparsity: int, token_dim: int, num_heads: int, num_prompts: int, error: float = 0.02
) -> tuple[float, float, float]:
    """Tests Lemma 11's construction with H ≥ q heads.

    Args:
        sparsity: q.
        token_dim: d.
        num_heads: H.
        num_prompts: test prompts.
        error: |ŷ − y| that the construction is built for.

    Returns:
        Its loss at late positions, the standard error, and the bound on its squared error.
    """
    build = functools.partial(constructions.transformer, num_heads=num_heads)
    with jax.enable_x64(True):
        built, errors_B = _on_prompts(half_task(sparsity, token_dim), build, num_prompts, error)
        loss, spread = training.mean_and_error(errors_B)
        return float(loss), float(spread), built.bounds['squared_error']


def averaging(sparsity: int, token_dim: int, num_prompts: int, error: float = 0.02) -> float:
    """Loss at late positions of one head that averages, for the linear mean link, whose variance is 1/q.

    Args:
        sparsity: q.
        token_dim: d.
        num_prompts: test prompts.
        error: |ŷ − y| that the construction is built for.
    """
    task = half_task(sparsity, token_dim, 'mean')
    with jax.enable_x64(True):
        return float(np.mean(_on_prompts(task, constructions.sparse_average, num_prompts, error)[1]))


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
    """Tests the best reader of the outputs of H random heads. It reads the real module's outputs and nothing else.

    Args:
        sparsity: q.
        token_dim: d.
        num_heads: H.
        num_prompts: test prompts.
        restricted: whether scores ignore the tokens (Proposition 21).

    Returns:
        Its loss at the last position, which is late, and the standard error.
    """
    with jax.enable_x64(True):
        task = half_task(sparsity, token_dim)
        task_draw, prompts = draws.draw(task, num_prompts, seed=2)
        size = task.embedding_dim
        qk_HxExE = jax.random.normal(jax.random.key(3), (num_heads, size, size)) / math.sqrt(size)
        qk_HxExE = qk_HxExE.at[:, :, :token_dim].set(0) if restricted else qk_HxExE
        errors_B = np.asarray(_oracle_errors(task, task_draw, qk_HxExE, prompts))
        loss, error = training.mean_and_error(errors_B)
        return float(loss), float(error)


def networks(
    sparsity: int, token_dim: int, num_heads: int, settings: Settings, *, restricted: bool = False, suffix: str = ''
) -> list[Found]:
    """All networks of one size: trained ones, and the best reader if H < q or Lemma 11's construction if not.

    Args:
        sparsity: q.
        token_dim: d.
        num_heads: H.
        settings: of the card.
        restricted: whether W_QK is block-diagonal between tokens and encodings.
        suffix: of the names 'trained' and 'best reader'.

    Returns:
        Name, loss at late positions and standard error of each.
    """
    losses_K, errors_K = trained(sparsity, token_dim, num_heads, settings, restricted)
    found = [(f'trained{suffix}', loss, error) for loss, error in zip(losses_K, errors_K, strict=True)]
    if num_heads < sparsity:
        loss, error = oracle(sparsity, token_dim, num_heads, settings.oracle_prompts, restricted)
        return [*found, (f'best reader{suffix}', loss, error)]
    loss, error, _ = constructed(sparsity, token_dim, num_heads, settings.oracle_prompts)
    return [*found, ('Lemma 11', loss, error)]
