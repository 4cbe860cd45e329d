"""Card of Theorem 6: FFNs at stationary points against the floor of their own training set, and a Transformer below."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from qstr_jax.theory import floors
from qstr_jax.theory.cards import card, theorem6_runs
from qstr_jax.theory.cards.theorem6_runs import FFN, TRANSFORMER, Settings

__all__ = ['NAME', 'Settings', 'checks_of', 'make', 'printed_of']

NAME = 'theorem6'
TASKS = {'simple_qstr': 'simple-1STR', 'qstr': '1STR'}
# Largest ‖∇_W‖/‖λ W‖ of a fit that counts as converged.
CONVERGED = 1e-2


def printed_of(rows: pd.DataFrame, share: float = 1.0) -> np.ndarray:
    """Theorem 6's printed floor of each row, see `floors.theorem6_floor`.

    Args:
        rows: with the columns num_samples, seq_len and load = n/(Nd).
        share: share of the training prompts that are taken to be there.
    """
    return np.array([floors.theorem6_floor(share * load, 1, 1) for load in rows['load']])


def checks_of(rows: pd.DataFrame) -> tuple[card.Check, ...]:
    """The comparisons of the verdict; a fit that did not converge is no run.

    A loss of 1 or more is that of a network that learnt nothing, beside which any floor below 1 would pass.

    Args:
        rows: of `theorem6_runs.measure`.
    """
    every = rows[rows['network'] == FFN]
    fitted, control = every[every['residual'] <= CONVERGED], rows[rows['network'] == TRANSFORMER]
    means = fitted.groupby(['task', 'seq_len', 'load'])['loss'].agg(['mean', 'sem', 'count'])
    means = means[means['count'] > 1]
    printed = np.maximum(0.0, 1 - means.index.get_level_values('load').to_numpy())
    learnt, oracle = (fitted['floor'] > 0) & (fitted['loss'] < 1), every[every['oracle'].notna() & (every['load'] < 1)]
    # Training sets of other tasks and N are independent draws too.
    floor = oracle.groupby('load')['floor'].agg(['mean', 'sem'])
    loss, sem = means['mean'].to_numpy(), means['sem'].to_numpy()
    wrong = card.above('', fitted['loss'], printed_of(fitted, share=0.6))
    return (
        card.above('FFNs ≥ the floor of their own (u, training set)', fitted['loss'], fitted['floor'], can_fail=learnt),
        card.above('mean over draws ≥ 1 − n/(Nd)', loss, printed, sem, can_fail=(printed > 0) & (loss < 1)),
        card.fails('a wrong floor, 1 − 0.6 n/(Nd), is crossed', wrong),
        card.below('Transformers on 1STR are below it', control['loss'] + 3 * control['error'], control['floor']),
        card.near('the oracle attains the floor of its set', oracle['oracle'], oracle['floor'], oracle['oracle_error']),
        card.near('floors average to 1 − n/(Nd)', floor['mean'], 1 - floor.index.to_numpy(), floor['sem']),
        card.below('W, started elsewhere, ends in the span: share outside', fitted['off_span'], 1e-3),
        card.above('share of fits that converged', len(fitted) / len(every), 0.9),
    )


def make(settings: Settings, bar: card.Bar) -> card.Card:
    """Makes the card.

    Args:
        settings: of the card.
        bar: progress bar.
    """
    return card_of(settings, theorem6_runs.measure(settings, bar))


def card_of(settings: Settings, rows: pd.DataFrame) -> card.Card:
    """The card of measured rows.

    Args:
        settings: of the card.
        rows: of `theorem6_runs.measure`.
    """
    return card.Card(
        name=NAME,
        statement='Theorem 6',
        claim='An FFN f(T, W x) at a stationary point has risk ≥ 1 − n/(Nd) on average over u, and ≥ the floor of its '
        'own (u, training set).',
        setting=f'Linear link, d = {settings.token_dim}; FFN f(T, W x)_i = ⟨a_{{t_i}}, W x⟩, m = 2N, ridge λ = '
        f'{settings.weight_decay:g}, L-BFGS from outside the span, {settings.num_lanes} draws, exact population loss; '
        f'Transformer at N = {settings.control_len}: AdamW, {settings.control_steps:,} steps.',
        panels=(
            card.Panel('simple-1STR: one index per prompt', 'n/(Nd)', 'loss'),
            card.Panel('1STR: N indices per prompt', 'n/(Nd)', 'loss', log_y=False),
            card.Panel('each run against its own floor', 'floor of (u, training set)', 'loss', join=False),
        ),
        points=pd.DataFrame(_points(rows)),
        lines=pd.DataFrame(_lines(settings, rows)),
        checks=checks_of(rows),
        finding=_finding(rows),
    )


def _finding(rows: pd.DataFrame) -> str:
    """How near to the floor FFNs come, and which runs are none."""
    every = rows[rows['network'] == FFN]
    fitted = every[(every['residual'] <= CONVERGED) & (every['floor'] > 0)]
    gained = (1 - fitted['loss']) / (1 - fitted['floor'])
    best = ', '.join(
        f'{share.median():.2f} ({TASKS[task]}, N = {n})'
        for (task, n), share in gained.groupby([fitted['task'], fitted['seq_len']])
    )
    return (
        f'Share of the variance that the floor allows which FFNs explain, median: {best}. On simple-1STR each index '
        'learns from its own n/N prompts, so the loss is about 1 − n/(N²d): N times as far as the floor. '
        f'{int((every["residual"] > CONVERGED).sum())} of {len(every)} fits did not converge and are no runs.'
    )


def _points(rows: pd.DataFrame) -> Iterator[dict[str, Any]]:
    groups = rows[(rows['network'] == TRANSFORMER) | (rows['residual'] <= CONVERGED)]
    for (network, task, n, load), chosen in groups.groupby(['network', 'task', 'seq_len', 'load']):
        spread = 0.0 if len(chosen) == 1 else chosen['loss'].sem()
        panel = 0 if task == 'simple_qstr' else 1
        yield card.point(panel, f'{network}, N = {n}', load, chosen['loss'].mean(), spread)
    for row in groups.itertuples():
        name = row.network if row.network == TRANSFORMER else f'{row.network}, {TASKS[row.task]}'
        yield card.point(2, name, row.floor, row.loss, row.error)


def _lines(settings: Settings, rows: pd.DataFrame) -> list[dict[str, Any]]:
    loads = np.linspace(0, rows['load'].max(), 40)
    lines = card.line(2, 'floor', [0, 1], [0, 1])
    for panel in (0, 1):
        lines += card.line(panel, 'floor 1 − n/(Nd)', loads, np.maximum(0, 1 - loads))
    for n in settings.simple_lens:
        label = '1 − n/(N²d)' if n == settings.simple_lens[0] else ''
        lines += card.line(0, label, loads, 1 - loads / n, of=f'{FFN}, N = {n}')
    return lines
