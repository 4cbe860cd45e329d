"""Card: is Theorem 7's α_N ≤ 1/N needed? RNNs trained on simple-qSTR with and without it."""

import dataclasses
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
import pandas as pd

from qstr_jax import models, tasks
from qstr_jax.learners.outcomes import REACHED
from qstr_jax.theory import sensitivity
from qstr_jax.theory.cards import card, fits, training

NAME = 'alpha'
BOUNDS: dict[str, Callable[[int], float | None]] = {
    'free': lambda n: None,
    'α = 1/N': lambda n: 1 / n,
    'α = 0': lambda n: 0.0,
}


@dataclasses.dataclass(frozen=True)
class Settings(training.Settings):
    """Settings of the card.

    Attributes:
        seq_lens: values of N.
        token_dim: d.
        num_lanes: networks of each kind.
        threshold: test loss at which training ends; otherwise it ends after `steps`.
        windows: how often the test loss is compared with the threshold.
        width: d_h.
        hidden_width: width of the transitions' two hidden layers; those of the read-out have twice as many units.
    """

    seq_lens: tuple = (4, 8, 16, 32)
    token_dim: int = 4
    num_lanes: int = 4
    threshold: float = 0.1
    steps: int = 1600
    windows: int = 80
    width: int = 16
    hidden_width: int = 32
    test_samples: int = 1000


def _rows(settings: Settings, seq_len: int, name: str) -> list[dict[str, Any]]:
    """A row per lane: prompts to the threshold or the budget, the last loss, the Lipschitz product."""
    task = tasks.build('simple_qstr', seq_len=seq_len, sparsity=1, token_dim=settings.token_dim, link='linear')
    module = models.Recurrent(
        width=settings.width,
        cell='deep',
        states='exclusive',
        readout='mlp',
        readout_widths=(2 * settings.hidden_width,) * 2,
        transition_widths=(settings.hidden_width,) * 2,
        lipschitz=BOUNDS[name](seq_len),
    )
    how = training.of(settings, windows=settings.windows, threshold=settings.threshold, decay=False)
    fit = training.train(task, module, how, settings.num_lanes)
    losses_K, errors_K = training.loss_at(fit)
    reached_K = np.asarray(fit.state_K.outcome) == REACHED
    samples_K = np.asarray(fit.state_K.checks) * fit.problem.learner.samples_per_check
    product_Kx2 = np.asarray(jax.vmap(sensitivity.transition_lipschitz)(fit.params_K))
    return [
        {
            'seq_len': seq_len,
            'bound': name,
            'lane': k,
            'reached': bool(reached_K[k]),
            'samples': int(samples_K[k]),
            'loss': losses_K[k],
            'error': errors_K[k],
            'product': float(np.max(product_Kx2[k])),
        }
        for k in range(settings.num_lanes)
    ]


def compare(rows: pd.DataFrame) -> pd.DataFrame:
    """Prompts to the threshold of lanes that saw the same prompts; those that miss it count with their budget.

    Args:
        rows: with the columns seq_len, lane, bound and samples.

    Returns:
        A row per N and lane, a column per bound.
    """
    return rows.set_index(['seq_len', 'lane', 'bound'])['samples'].unstack()


def ratio(rows: pd.DataFrame) -> tuple[float, float, float]:
    """Prompts of free networks over those of α = 1/N: the geometric mean over pairs of lanes and its 95 % interval.

    Args:
        rows: see `compare`.
    """
    from scipy import stats  # slow to import, and few cards need it

    samples = compare(rows)
    logs = np.log(samples['free'] / samples['α = 1/N'])
    half = stats.t.ppf(0.975, len(logs) - 1) * logs.sem() if len(logs) > 1 else 0.0
    low, mean, high = (float(np.exp(logs.mean() + shift)) for shift in (-half, 0.0, half))
    return mean, low, high


def checks_of(rows: pd.DataFrame) -> tuple[card.Check, ...]:
    """The comparisons of the verdict.

    Args:
        rows: with the columns seq_len, lane, bound, samples, reached and product.
    """
    is_free = rows['bound'] == 'free'
    free, bounded = rows[is_free], rows[~is_free]
    _, _, high = ratio(rows)
    return (
        card.below('prompts, free over α = 1/N, upper end of 95 %: ≤ 1.25', high, 1.25),
        card.above('free networks break the bound: N ‖W_L‖⋯‖W_1,h‖ ≥ 1', free['product'] * free['seq_len'], 1),
        card.above('free networks reach the threshold', free['reached'], 1),
        card.above('networks with α ≤ 1/N reach it too', bounded['reached'], 1),
    )


def make(settings: Settings, bar: card.Bar) -> card.Card:
    """Makes the card.

    Args:
        settings: of the card.
        bar: progress bar.
    """
    cells = list(itertools.product(settings.seq_lens, BOUNDS))
    rows = pd.DataFrame([row for cell in bar(cells, 'N') for row in _rows(settings, *cell)])
    return card.Card(
        name=NAME,
        statement='Theorem 7, its constraint α_N ≤ 1/N',
        claim='The bound on the transitions is not needed in practice: on simple-qSTR free RNNs learn from as few '
        'prompts.',
        setting=f'simple-1STR, linear, d = {settings.token_dim}, deep transitions (d_h = {settings.width}), AdamW, '
        f'batch {settings.batch_size}, to test loss {settings.threshold:g} or {settings.steps * settings.batch_size:,} '
        f'prompts; lanes, each with its own task: {settings.num_lanes}.',
        panels=(
            card.Panel(f'to test loss {settings.threshold:g}', 'N', 'prompts', log_x=True, log_y=True),
            card.Panel('at the end of training', 'N', 'test loss', log_x=True, log_y=True),
            card.Panel('transitions as stored', 'N', '‖W_L‖⋯‖W_1,h‖', log_x=True, log_y=True),
        ),
        points=pd.DataFrame(_points(rows)),
        lines=pd.DataFrame(_lines(settings)),
        checks=checks_of(rows),
        finding=_finding(settings, rows),
    )


def _finding(settings: Settings, rows: pd.DataFrame) -> str:
    growth = [f'{name}: N^{fits.exponent(lanes["seq_len"], lanes["samples"])}' for name, lanes in rows.groupby('bound')]
    mean, low, high = ratio(rows)
    pairs = len(compare(rows))
    free = rows[rows['bound'] == 'free']
    product = float((free['product'] * free['seq_len']).median())
    resolution = max(1, settings.steps // settings.windows) * settings.batch_size
    return (
        f'Free networks need {mean:.2f} [{low:.2f}, {high:.2f}] times the prompts of α = 1/N ({pairs} pairs of lanes). '
        f'Prompts, known to {resolution:,}: {"; ".join(growth)}. Free products are {product:.0f} times 1/N (median). '
        'An experiment on this task, these N and this optimiser, not a theorem: the bound makes the proof go through.'
    )


def _points(rows: pd.DataFrame) -> Iterator[dict[str, Any]]:
    for row in rows.itertuples():
        if row.reached:
            yield card.point(0, row.bound, row.seq_len, row.samples)
        yield card.point(1, row.bound, row.seq_len, row.loss, row.error)
        if row.bound == 'free':
            yield card.point(2, row.bound, row.seq_len, row.product)


def _lines(settings: Settings) -> list[dict[str, Any]]:
    lengths = list(settings.seq_lens)
    lines = card.line(0, 'budget', lengths, [settings.steps * settings.batch_size] * len(lengths))
    lines += card.line(1, 'threshold', lengths, [settings.threshold] * len(lengths))
    return lines + card.line(2, '1/N', lengths, [1 / n for n in lengths])
