"""Card: a Transformer that starts at Lemma 11's construction stays there; one from scratch is compared with it."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from qstr_jax import models, tasks
from qstr_jax.theory import constructions, measures, networks
from qstr_jax.theory.cards import card, training
from qstr_jax.theory.sparse_task import SparseTask

NAME = 'alignment'
STARTS = ('from the construction', 'from scratch')


@dataclasses.dataclass(frozen=True)
class Settings(training.Settings):
    """Settings of the card; the link is 'sum'.

    Attributes:
        seq_len: N.
        sparsity: q.
        token_dim: d.
        encoding_dim: d_e.
        num_lanes: networks of each start.
        weight_decay: of AdamW.
        mlp_width: width of the ReLU layer of networks from scratch.
        error: |ŷ − y| that the construction is built for.
    """

    seq_len: int = 12
    sparsity: int = 2
    token_dim: int = 4
    encoding_dim: int = 12
    num_lanes: int = 2
    steps: int = 3000
    weight_decay: float = 0.1
    mlp_width: int = 64
    error: float = 0.1
    test_samples: int = 2000


def _start(settings: Settings, task: SparseTask, name: str) -> tuple[models.Transformer, training.Start | None]:
    """The module, and the function that gives its first parameters to `training.windows`."""
    if name == STARTS[1]:
        return models.Transformer(settings.sparsity, settings.mlp_width, attention='merged'), None
    radius = float(np.sqrt(3 * settings.token_dim)) + 2  # nearly all ‖x_j‖ are below

    def params(lane: int, task_draw: tasks.Draw) -> dict:
        """Lemma 11's parameters for a lane's draw."""
        return constructions.transformer(task, task_draw, radius, settings.error).params

    width = 2  # the sum link's two opposite units
    return models.Transformer(settings.sparsity, width, attention='merged', output_bias=False), params


def _measure(fit: training.Fit, k: int, start_K: Any) -> dict[str, Any]:
    """Alignment of lane k with the construction, and how far it moved from its start."""
    task: Any = fit.problem.task
    module = fit.problem.module
    params, start = training.lane(fit.params_K, k), training.lane(start_K, k)
    task_draw = training.lane(fit.data_K.task_draw, k)
    prompts = jax.tree.map(lambda leaf: leaf[k, :32], fit.data_K.test_prompts)
    aligned = measures.alignment(params, task)
    moved = jnp.sqrt(networks.square_norm(jax.tree.map(lambda a, b: a - b, params, start)))
    return {
        'share': aligned.share,
        'cosine': aligned.cosine,
        'off_mass': measures.off_mass(module, params, prompts, task, task_draw)['mean'],
        'moved': float(moved) / float(np.sqrt(networks.square_norm(start))),
    }


def _follow(settings: Settings, task: SparseTask, name: str, bar: card.Bar) -> list[dict[str, Any]]:
    """Rows of one start, a row per lane and window."""
    module, params = _start(settings, task, name)
    num_windows = min(8, settings.steps)
    how = training.of(settings, windows=num_windows, weight_decay=settings.weight_decay)
    rows: list[dict[str, Any]] = []
    start_K = None
    for steps, fit in bar(training.windows(task, module, how, settings.num_lanes, params), name, 1 + num_windows):
        if start_K is None:
            start_K = jax.device_get(fit.params_K)
        losses_K, errors_K = training.loss_at(fit)
        for k in range(settings.num_lanes):
            row = {'start': name, 'lane': k, 'samples': steps * settings.batch_size}
            rows.append({**row, 'loss': losses_K[k], 'error': errors_K[k], **_measure(fit, k, start_K)})
    return rows


def checks_of(settings: Settings, rows: pd.DataFrame) -> tuple[card.Check, ...]:
    """The comparisons of the verdict.

    Args:
        settings: of the card.
        rows: a row per start, lane and window.
    """
    last = rows[rows['samples'] == rows['samples'].max()]
    built, scratch = (last[last['start'] == name] for name in STARTS)
    first = rows[(rows['samples'] == 0) & (rows['start'] == STARTS[1])]
    return (
        card.below(
            f'from the construction: loss ≤ {settings.error:g}² after training', built['loss'], settings.error**2
        ),
        card.above('from the construction: share of the block ≥ 0.95', built['share'], 0.95),
        card.above('from the construction: cosine to the identity ≥ 0.95', built['cosine'], 0.95),
        card.above('from scratch: the share of the block grows', scratch['share'], first['share'].max()),
        card.above('from scratch: the cosine to the identity grows', scratch['cosine'], first['cosine'].max()),
    )


def make(settings: Settings, bar: card.Bar) -> card.Card:
    """Makes the card.

    Args:
        settings: of the card.
        bar: progress bar.
    """
    task = tasks.build(
        'qstr',
        seq_len=settings.seq_len,
        sparsity=settings.sparsity,
        token_dim=settings.token_dim,
        link='sum',
        encoding_dim=settings.encoding_dim,
    )
    rows = pd.DataFrame([row for name in STARTS for row in _follow(settings, task, name, bar)])
    last = rows[rows['samples'] == rows['samples'].max()]
    built, scratch = (last[last['start'] == name] for name in STARTS)
    return card.Card(
        name=NAME,
        statement='Lemma 11 and Figure 2',
        claim='Training keeps a Transformer at the construction, and moves one from scratch towards it: W_QK becomes a '
        'scaled identity in the (query ω_t, key ω) block.',
        setting=f'qSTR, sum link, N = {settings.seq_len}, q = H = {settings.sparsity}, d = {settings.token_dim}, d_e = '
        f'{settings.encoding_dim}, merged attention, AdamW (weight decay {settings.weight_decay:g}), '
        f'{settings.num_lanes} lanes.',
        panels=(
            card.Panel('held-out loss', 'training prompts', 'loss', log_y=True),
            card.Panel('energy share of the block', 'training prompts', 'share of ‖W_QK‖²'),
            card.Panel('cosine of the block to the identity', 'training prompts', 'cosine'),
            card.Panel('attention off the right token', 'training prompts', 'mean mass', log_y=True),
        ),
        points=pd.DataFrame(_points(rows)),
        lines=pd.DataFrame(_lines(settings, rows, task)),
        checks=checks_of(settings, rows),
        finding=f'From the construction weights move by {built["moved"].max():.2f} of their norm (loss '
        f'{built["loss"].max():.1g}); from scratch share {scratch["share"].mean():.2f}, cosine '
        f'{scratch["cosine"].mean():.2f}, mass off the right token {scratch["off_mass"].mean():.2g}, loss '
        f'{scratch["loss"].mean():.2g}.',
    )


def _points(rows: pd.DataFrame) -> Iterator[dict[str, Any]]:
    for panel, column in enumerate(('loss', 'share', 'cosine', 'off_mass')):
        for row in rows.to_dict('records'):
            error = row['error'] if column == 'loss' else float('nan')
            yield card.point(panel, row['start'], row['samples'], row[column], error, lane=row['lane'])


def _lines(settings: Settings, rows: pd.DataFrame, task: SparseTask) -> list[dict[str, Any]]:
    ends = [0, rows['samples'].max()]
    isotropic = (task.encoding_dim / task.embedding_dim) ** 2
    lines = card.line(0, 'error² of the construction', ends, [settings.error**2] * 2)
    lines += card.line(1, 'the construction', ends, [1, 1]) + card.line(1, 'random W_QK', ends, [isotropic] * 2)
    return lines + card.line(2, 'the construction', ends, [1, 1])
