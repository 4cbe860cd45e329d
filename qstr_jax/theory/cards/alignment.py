"""Card: a Transformer that starts at Lemma 11's construction stays there; one from scratch is compared with it."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from qstr_jax import models, tasks
from qstr_jax.theory import constructions, measures
from qstr_jax.theory.cards import card, training

NAME = 'alignment'
STARTS = ('from the construction', 'from scratch')


@dataclasses.dataclass(frozen=True)
class Settings:
    """Task (sum link); training; width of the ReLU layer from scratch; α d/q-free target error of the construction."""

    seq_len: int = 12
    sparsity: int = 2
    token_dim: int = 4
    encoding_dim: int = 12
    num_lanes: int = 2
    steps: int = 3000
    batch_size: int = 64
    learning_rate: float = 3e-3
    weight_decay: float = 0.1
    mlp_width: int = 64
    error: float = 0.1
    test_samples: int = 2000


def _at_construction(settings, task):
    """Module and a function (lane, draw) → parameters for `training.windows`."""
    radius = float(np.sqrt(3 * settings.token_dim)) + 2  # nearly all ‖x_j‖ are below

    def params(lane, task_draw):
        return constructions.transformer(task, task_draw, radius, settings.error).params

    width = 2  # the sum link's two opposite units
    return models.Transformer(settings.sparsity, width, attention='merged', output_bias=False), params


def _measure(fit, k, losses, start_K, samples, name):
    """Loss and alignment of lane k; `losses` are those of all lanes and their standard errors."""
    task, module = fit.problem.task, fit.problem.module
    params, start = training.lane(fit.params_K, k), training.lane(start_K, k)
    task_draw = training.lane(fit.data_K.task_draw, k)
    prompts = jax.tree.map(lambda leaf: leaf[k, :32], fit.data_K.test_prompts)
    aligned = measures.alignment(params, task)
    moved = jnp.sqrt(constructions.square_norm(jax.tree.map(lambda a, b: a - b, params, start)))
    return {
        'start': name,
        'lane': k,
        'samples': samples,
        'loss': losses[0][k],
        'error': losses[1][k],
        'share': aligned.share,
        'cosine': aligned.cosine,
        'off_mass': measures.off_mass(module, params, prompts, task, task_draw)['mean'],
        'moved': float(moved) / float(np.sqrt(constructions.square_norm(start))),
    }


def _follow(settings, task, name, bar):
    """Rows of one start, a row per lane and window."""
    if name == STARTS[0]:
        module, params = _at_construction(settings, task)
    else:
        module, params = models.Transformer(settings.sparsity, settings.mlp_width, attention='merged'), None
    plan = training.Plan(
        settings.steps,
        settings.batch_size,
        settings.learning_rate,
        min(8, settings.steps),
        settings.test_samples,
        weight_decay=settings.weight_decay,
    )
    rows, start_K = [], None
    stages = training.windows(task, module, plan, settings.num_lanes, params)
    for steps, fit in bar(stages, name, 1 + min(8, settings.steps)):
        if start_K is None:
            start_K = jax.device_get(fit.params_K)
        losses, samples = training.loss_at(fit), steps * settings.batch_size
        rows += [_measure(fit, k, losses, start_K, samples, name) for k in range(settings.num_lanes)]
    return rows


def make(settings, bar):
    """The card; see `lemma11.make`."""
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
    first = rows[(rows['samples'] == 0) & (rows['start'] == STARTS[1])]
    checks = (
        card.below(
            f'from the construction: loss ≤ {settings.error:g}² after training', built['loss'], settings.error**2
        ),
        card.above('from the construction: share of the block ≥ 0.95', built['share'], 0.95),
        card.above('from the construction: cosine to the identity ≥ 0.95', built['cosine'], 0.95),
        card.above('from scratch: the share of the block grows', scratch['share'], first['share'].max()),
        card.above('from scratch: the cosine to the identity grows', scratch['cosine'], first['cosine'].max()),
    )
    return card.Card(
        NAME,
        'Lemma 11 and Figure 2',
        'Training keeps a Transformer at the construction, and moves one from scratch towards it: W_QK becomes a '
        'scaled '
        'identity in the (query ω_t, key ω) block.',
        f'qSTR, sum link, N = {settings.seq_len}, q = H = {settings.sparsity}, d = {settings.token_dim}, d_e = '
        f'{settings.encoding_dim}, merged attention, AdamW (weight decay {settings.weight_decay:g}), '
        f'{settings.num_lanes} lanes.',
        (
            card.Panel('held-out loss', 'training prompts', 'loss', log_y=True),
            card.Panel('energy share of the block', 'training prompts', 'share of ‖W_QK‖²'),
            card.Panel('cosine of the block to the identity', 'training prompts', 'cosine'),
            card.Panel('attention off the right token', 'training prompts', 'mean mass', log_y=True),
        ),
        pd.DataFrame(_points(rows)),
        pd.DataFrame(_lines(settings, rows, task)),
        checks,
        f'From the construction weights move by {built["moved"].max():.2f} of their norm (loss '
        f'{built["loss"].max():.1g}); from '
        f'scratch share {scratch["share"].mean():.2f}, cosine {scratch["cosine"].mean():.2f}, mass off the right token '
        f'{scratch["off_mass"].mean():.2g}, loss {scratch["loss"].mean():.2g}.',
    )


def _points(rows):
    for panel, column in enumerate(('loss', 'share', 'cosine', 'off_mass')):
        for row in rows.to_dict('records'):
            error = row['error'] if column == 'loss' else float('nan')
            yield card.point(panel, row['start'], row['samples'], row[column], error, lane=row['lane'])


def _lines(settings, rows, task):
    ends = [0, rows['samples'].max()]
    isotropic = (task.encoding_dim / task.embedding_dim) ** 2
    lines = card.line(0, 'error² of the construction', ends, [settings.error**2] * 2)
    lines += card.line(1, 'the construction', ends, [1, 1]) + card.line(1, 'random W_QK', ends, [isotropic] * 2)
    return lines + card.line(2, 'the construction', ends, [1, 1])
