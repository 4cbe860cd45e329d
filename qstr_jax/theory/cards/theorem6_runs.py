"""Runs of the card of Theorem 6: FFNs at stationary points, oracles, and Transformers on the same task."""

import dataclasses
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from qstr_jax import learners, models, tasks
from qstr_jax.theory import floors, table_readout
from qstr_jax.theory.cards import draws, fixed_sample, training
from qstr_jax.theory.sparse_task import SparseTask

FFN, TRANSFORMER = 'FFN', 'Transformer'


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of the card; networks have m = 2N and ridge penalty λ on all weights.

    Attributes:
        simple_lens: values of N on simple-1STR.
        seq_lens: values of N on 1STR, where a prompt asks for N indices.
        token_dim: d.
        tenths: values of n as tenths of N d.
        num_lanes: networks for each n, each with its own (u, ω) and prompts.
        weight_decay: λ.
        max_steps: most steps of L-BFGS.
        control_len: N of the Transformer, on 1STR; the FFN beside it has the same prompts.
        control_tenths: its n as tenths of N d.
        control_lanes: numbers of Transformers.
        control_dim: d_e of the Transformer.
        control_steps: its training steps, AdamW with batches of 32.
        test_samples: test prompts of the oracle and the Transformer.
    """

    simple_lens: tuple = (2, 3, 4)
    seq_lens: tuple = (4, 16)
    token_dim: int = 10
    tenths: tuple = (1, 3, 5, 7, 8, 9, 12)
    num_lanes: int = 5
    weight_decay: float = 1e-3
    max_steps: int = 5000
    control_len: int = 64
    control_tenths: int = 8
    control_lanes: int = 3
    control_dim: int = 75
    control_steps: int = 1000
    test_samples: int = 2000


def _size(settings: Settings, seq_len: int, tenths: float) -> int:
    return max(1, round(tenths * seq_len * settings.token_dim / 10))


def _fitted(settings: Settings, task: SparseTask, prompts: tasks.Prompt, u_D: Any, seed: int) -> dict[str, Any]:
    """One FFN on the prompts, with the columns that all networks have."""
    num_samples, seq_len = len(prompts.y_N), task.seq_len
    x_BxV = np.asarray(prompts.x_NxD, np.float64).reshape(num_samples, -1)
    t_BxR = np.asarray(prompts.t_NxQ)[:, : 1 if task.name == 'simple_qstr' else seq_len, 0]
    fit = table_readout.fit(
        x_BxV,
        t_BxR,
        np.asarray(u_D, np.float64),
        width=2 * seq_len,
        weight_decay=settings.weight_decay,
        max_steps=settings.max_steps,
        seed=seed,
    )
    row = {'network': FFN, 'task': task.name, 'seq_len': seq_len, 'num_samples': num_samples, 'lane': seed}
    row |= {'load': num_samples / (seq_len * task.token_dim), 'loss': fit.loss(u_D), 'error': 0.0}
    row |= {'residual': fit.residual, 'off_span': fit.off_span(x_BxV), 'oracle': np.nan, 'oracle_error': np.nan}
    return row | {'floor': _floor(prompts, u_D)}


def _floor(prompts: tasks.Prompt, u_D: Any) -> float:
    return max(0.0, float(floors.theorem6_given(jnp.asarray(prompts.x_NxD), jnp.asarray(u_D))))


def _lane(settings: Settings, name: str, seq_len: int, seed: int) -> list[dict[str, Any]]:
    """FFNs and oracles on nested training sets of one draw."""
    task = tasks.build(name, seq_len=seq_len, sparsity=1, token_dim=settings.token_dim, link='linear')
    sizes = [_size(settings, seq_len, tenths) for tenths in settings.tenths]
    rows = []
    with jax.enable_x64(True):
        task_draw, prompts = draws.draw(task, max(sizes), seed=2 * seed + 1, task_seed=seed)
        _, fresh = draws.draw(task, settings.test_samples, seed=2 * seed + 2, task_seed=seed)
        u_D = task_draw.link['u_V']
        for size in sizes:
            row = _fitted(settings, task, jax.tree.map(lambda leaf, n=size: leaf[:n], prompts), u_D, seed)
            basis_RxV = floors.span_basis(prompts.x_NxD[:size].reshape(size, -1))
            oracle = jax.vmap(lambda x_NxD, t, v=basis_RxV: floors.theorem6_oracle(v, x_NxD, t, u_D))
            errors_B = (fresh.y_N[:, 0] - oracle(fresh.x_NxD, fresh.t_NxQ[:, 0, 0])) ** 2
            loss, error = training.mean_and_error(errors_B)
            rows.append(row | {'oracle': float(loss), 'oracle_error': float(error)})
    return rows


def _control(settings: Settings) -> list[dict[str, Any]]:
    """Transformers that are trained on n prompts of 1STR, and an FFN on the first one's prompts."""
    seq_len, count = settings.control_len, settings.control_lanes
    task = tasks.build(
        'qstr',
        seq_len=seq_len,
        sparsity=1,
        token_dim=settings.token_dim,
        link='linear',
        encoding_dim=settings.control_dim,
        encoding_scale='scaled',
    )
    size = _size(settings, seq_len, settings.control_tenths)
    learner = learners.AdamW(
        batch_size=32,
        schedule='cosine',
        max_steps=settings.control_steps,
        check_every=settings.control_steps,
        test_samples=settings.test_samples,
        validation_samples=1,
    )
    module = models.Transformer(num_heads=1, mlp_width=32, attention='merged')
    fits = fixed_sample.run(
        task, module, learner, sizes=[size] * count, seeds=range(count), learning_rate=3e-3, weight_decay=0.0
    )
    u_KxD = np.asarray(fits.data_K.task_draw.link['u_V'])
    first = _fitted(settings, task, fixed_sample.prompts(fits, 0, size), u_KxD[0], 0)
    rows = [first]
    for k in range(count):
        floor = _floor(fixed_sample.prompts(fits, k, size), u_KxD[k])
        loss, error = (float(fits.columns[name][k]) for name in ('test_loss', 'test_loss_se'))
        rows.append({**first, 'network': TRANSFORMER, 'lane': k, 'floor': floor, 'loss': loss, 'error': error})
    return rows


def measure(settings: Settings, bar: Any) -> pd.DataFrame:
    """Losses of all networks beside the floors of their training sets.

    Args:
        settings: of the card.
        bar: progress bar.
    """
    cells = [('simple_qstr', seq_len) for seq_len in settings.simple_lens]
    cells += [('qstr', seq_len) for seq_len in settings.seq_lens]
    lanes = list(itertools.product(cells, range(settings.num_lanes)))
    rows = [row for (name, seq_len), seed in bar(lanes, 'FFN') for row in _lane(settings, name, seq_len, seed)]
    return pd.DataFrame(rows + [row for _ in bar([0], 'Transformer') for row in _control(settings)])
