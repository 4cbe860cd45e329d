"""What the cards of Propositions 3 and 21 share: trained networks, best readers, constructions, and their checks."""

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from qstr_jax import tasks
from qstr_jax.models import attention
from qstr_jax.sweeps import Sweep
from qstr_jax.theory import constructions, floors
from qstr_jax.theory.cards import check, draws, runs
from qstr_jax.theory.sparse_task import SparseTask


@dataclasses.dataclass(frozen=True)
class Settings(runs.Settings):
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


def describe(settings: Settings) -> str:
    """What was run, in one line."""
    return (
        f'norm2, N = 2q + 1, merged attention, AdamW on {settings.steps:,} × {settings.batch_size} fresh prompts, '
        f'cosine, {settings.num_lanes} lanes; loss at positions i ≥ N/2 on {settings.test_samples:,} prompts, where '
        'the label has variance 2.'
    )


def _half(sparsity: int, token_dim: int, link: str = 'norm2') -> dict[str, Any]:
    """Name and settings of `half_task`."""
    # With d_e > N the encodings are linearly independent, which the oracle needs and which makes training easier.
    sizes = {'seq_len': 2 * sparsity + 1, 'sparsity': sparsity, 'token_dim': token_dim}
    halves = {'indices': 'half', 'tokens': 'half', 'encoding_dim': 2 * sparsity + 4}
    return {'name': 'qstr', 'link': link, **sizes, **halves}


def half_task(sparsity: int, token_dim: int, link: str = 'norm2') -> SparseTask:
    """Proposition 3's distribution at the least N: q Gaussian tokens, t_i = (1, …, q) and x_i = 0 at late positions."""
    return tasks.build(**_half(sparsity, token_dim, link))


def sweep(settings: Settings, sparsity: int, token_dim: int, num_heads: Sequence[int], is_free: bool = True) -> Sweep:
    """Transformers with some numbers of heads, W_QK free or block-diagonal between tokens and encodings."""
    model = {'num_heads': tuple(num_heads), 'mlp_width': settings.mlp_width}
    networks: dict[str, Any] = (
        {'transformer': {**model, 'attention': 'merged'}} if is_free else {'block_diagonal': model}
    )
    probe: dict[str, Any] = {'probes': 'late_loss', 'late_loss': {'num_prompts': settings.test_samples}}
    task = _half(sparsity, token_dim)
    return runs.online(settings, task, models=tuple(networks), **networks, **probe)


def trained(rows: pd.DataFrame, suffix: str = '') -> pd.DataFrame:
    """The rows of a sweep as rows of a card: q, d, heads, network, loss and error."""
    heads = rows[f'{rows["model"].iloc[0]}_num_heads'].astype(int)
    names = {'sparsity': 'q', 'token_dim': 'd', 'late_loss': 'loss', 'late_loss_se': 'error'}
    return rows[[*names]].rename(columns=names).assign(heads=heads, network=f'trained{suffix}')


def untrained(settings: Settings, found: pd.DataFrame, is_free: bool = True, suffix: str = '') -> pd.DataFrame:
    """Beside trained networks of each size: the best reader if H < q, or Lemma 11's construction if not."""
    rows = []
    for q, d, num_heads in found[['q', 'd', 'heads']].drop_duplicates().itertuples(index=False):
        name, measure = ('Lemma 11', constructed) if num_heads >= q else (f'best reader{suffix}', oracle)
        more = {} if is_free or num_heads >= q else {'restricted': True}
        loss, error = measure(q, d, num_heads, settings.oracle_prompts, **more)
        rows.append({'q': q, 'd': d, 'heads': num_heads, 'network': name, 'loss': loss, 'error': error})
    return pd.DataFrame(rows)


def _on_prompts(task: SparseTask, build: Callable[..., Any], num_prompts: int, error: float) -> np.ndarray:
    """Errors of a construction for the prompts' tokens at late positions, (B,)."""
    task_draw, prompts = draws.draw(task, num_prompts, seed=2)
    radius = float(jnp.max(jnp.linalg.norm(prompts.x_NxD, axis=-1)))
    built = build(task, task_draw, radius, error)
    errors_BxN = draws.square_errors(built.module, built.params, prompts, task, task_draw)
    return errors_BxN[:, np.asarray(floors.late_positions(task.seq_len))].mean(axis=1)


def constructed(
    sparsity: int, token_dim: int, num_heads: int, num_prompts: int, error: float = 0.02
) -> tuple[float, float]:
    """The loss at late positions of Lemma 11's construction with H ≥ q heads, and its standard error."""
    build = functools.partial(constructions.transformer, num_heads=num_heads)
    with jax.enable_x64(True):
        return draws.mean_and_error(_on_prompts(half_task(sparsity, token_dim), build, num_prompts, error))


def averaging(sparsity: int, token_dim: int, num_prompts: int, error: float = 0.02) -> float:
    """Loss at late positions of one head that averages, for the linear mean link, whose variance is 1/q."""
    task = half_task(sparsity, token_dim, 'mean')
    with jax.enable_x64(True):
        return float(np.mean(_on_prompts(task, constructions.sparse_average, num_prompts, error)))


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


def floors_of(rows: pd.DataFrame, floor: Callable[[Any, int], float], fewer: int = 0) -> np.ndarray:
    """The floor at late positions of each row, as if its network had some heads fewer."""
    return np.array(
        [floors.LATE_VARIANCE if row.heads <= fewer else floor(row, row.heads - fewer) for row in rows.itertuples()]
    )


def checks_of(
    trained: pd.DataFrame,
    readers: pd.DataFrame,
    built: pd.DataFrame,
    *,
    floor_of: Callable[..., np.ndarray],
    what: tuple[str, str],
) -> list[check.Check]:
    """Trained networks keep a floor, best readers attain it, and Lemma 11's construction passes below it."""
    floor = floor_of(trained)
    wrong = check.above('wrong floor', trained['loss'], floor_of(trained, fewer=1), trained['error'])
    return [
        check.above(what[0], trained['loss'], floor, trained['error'], can_fail=floor > 0),
        check.near(what[1], readers['loss'], floor_of(readers), readers['error']),
        check.fails('a wrong floor, of one head fewer, is crossed', wrong),
        check.below('Lemma 11 with H ≥ q: loss < 0.01', built['loss'], 0.01),
    ]
