"""What the cards of Propositions 3 and 21 share: losses at late positions, trained and read off attention."""

import dataclasses
import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from qstr_jax import models, tasks
from qstr_jax.models import attention
from qstr_jax.theory import constructions, floors
from qstr_jax.theory.cards import draws, training


@dataclasses.dataclass(frozen=True)
class Settings:
    """Lanes; training; width of the ReLU layer; test prompts, and those of oracle and construction."""

    num_lanes: int = 2
    steps: int = 2000
    batch_size: int = 64
    learning_rate: float = 1e-2
    mlp_width: int = 128
    test_samples: int = 5000
    oracle_prompts: int = 2000


def describe(settings):
    """The setting in a line."""
    return (
        f'norm2, N = 2q + 1, merged attention, AdamW on {settings.steps:,} × {settings.batch_size} fresh prompts, '
        f'{settings.num_lanes} lanes; loss at positions i ≥ N/2 on {settings.test_samples:,} prompts, where the label '
        'has variance 2.'
    )


def half_task(sparsity, token_dim, link='norm2'):
    """Proposition 3's distribution at the least N: q Gaussian tokens, t_i = (1, …, q) and x_i = 0 for the late i."""
    # d_e > N, so that encodings are independent: the oracle needs it, and training is easier.
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
class BlockDiagonal:
    """A merged Transformer whose W_QK has no block between tokens and encodings (Proposition 21)."""

    module: Any
    token_dim: int

    def init(self, key, z_NxE):
        """As a Linen module's."""
        return self.module.init(key, z_NxE)

    def apply(self, params, z_NxE):
        """As a Linen module's, with the blocks of W_QK masked."""
        is_token_E = jnp.arange(z_NxE.shape[-1]) < self.token_dim
        mask_ExE = is_token_E[:, None] == is_token_E[None, :]
        attend = params['params']['attention']
        attend = {**attend, 'qk_HxExE': attend['qk_HxExE'] * mask_ExE[None]}
        return self.module.apply({'params': {**params['params'], 'attention': attend}}, z_NxE)


def trained(sparsity, token_dim, num_heads, settings, restricted=False):
    """Losses (k,) at late positions of trained Transformers and their standard errors (k,)."""
    task = half_task(sparsity, token_dim)
    module = models.Transformer(num_heads, settings.mlp_width, attention='merged')
    module = BlockDiagonal(module, token_dim) if restricted else module
    plan = training.Plan(
        settings.steps,
        settings.batch_size,
        settings.learning_rate,
        windows=min(20, settings.steps),
        test_samples=settings.test_samples,
    )
    fit = training.train(task, module, plan, settings.num_lanes)
    return training.loss_at(fit, floors.late_positions(task.seq_len))


def constructed(sparsity, token_dim, num_heads, num_prompts, error=0.02):
    """Loss at late positions of Lemma 11's construction with H ≥ q heads, its standard error, and the bound."""
    with jax.enable_x64(True):
        task = half_task(sparsity, token_dim)
        task_draw, prompts = draws.draw(task, num_prompts, seed=2)
        radius = float(jnp.max(jnp.linalg.norm(prompts.x_NxD, axis=-1)))
        built = constructions.transformer(task, task_draw, radius, error, num_heads=num_heads)
        return *training.mean_and_error(_late_errors(built, prompts, task, task_draw)), built.bounds['squared_error']


def averaging(sparsity, token_dim, num_prompts, error=0.02):
    """Loss at late positions of one head that averages: the link is the linear mean, of variance 1/q."""
    with jax.enable_x64(True):
        task = half_task(sparsity, token_dim, 'mean')
        task_draw, prompts = draws.draw(task, num_prompts, seed=2)
        radius = float(jnp.max(jnp.linalg.norm(prompts.x_NxD, axis=-1)))
        built = constructions.sparse_average(task, task_draw, radius, error)
        return float(np.mean(_late_errors(built, prompts, task, task_draw)))


def _late_errors(built, prompts, task, task_draw):
    errors_BxN = draws.square_errors(built.module, built.params, prompts, task, task_draw)
    return errors_BxN[:, np.asarray(floors.late_positions(task.seq_len))].mean(axis=1)


@functools.partial(jax.jit, static_argnames='task')
def _oracle_errors(task, task_draw, qk_HxExE, prompts):
    position, module = task.seq_len - 1, attention.MergedAttention(qk_HxExE.shape[0])

    def error(prompt):
        z_NxE = tasks.encode(prompt, task, task_draw)
        heads_1xF = module.apply({'params': {'qk_HxExE': qk_HxExE}}, z_NxE[position][None], z_NxE)
        heads_HxE = heads_1xF.reshape(qk_HxExE.shape[0], -1)
        omega_NxE = task_draw.encodings.omega_NxE
        seen = floors.seen_through_heads(heads_HxE, qk_HxExE, prompt.t_NxQ, position, task, omega_NxE)
        return (prompt.y_N[position] - floors.oracle(*seen)) ** 2

    return jax.lax.map(error, prompts, batch_size=100)


def oracle(sparsity, token_dim, num_heads, num_prompts, restricted=False):
    """Loss of the best reader of the outputs of H random heads at a late position, and its standard error.

    It reads the real module's outputs and nothing else. `restricted`: scores ignore the tokens (Proposition 21).
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
