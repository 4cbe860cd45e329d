"""Card of Proposition 21: one-dimensional tokens, with W_QK block-diagonal between tokens and encodings, or free."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from qstr_jax.theory import floors
from qstr_jax.theory.cards import card, head_checks, heads

NAME = 'proposition21'
NETWORKS = {False: 'free W_QK', True: 'block-diagonal W_QK'}


@dataclasses.dataclass(frozen=True)
class Settings(heads.Settings):
    """Settings of the card; d = 1, and numbers of heads are 1..q+1, or 1 if W_QK is free.

    Attributes:
        sparsity: values of q.
    """

    sparsity: tuple = (2, 3)


def measure(settings: Settings, bar: card.Bar) -> pd.DataFrame:
    """Losses at late positions of all networks.

    Args:
        settings: of the card.
        bar: progress bar.

    Returns:
        One row per network: q, heads, network, loss, error.
    """
    # One free head is enough to see what the restriction does.
    cells = [(q, h, r) for q in settings.sparsity for h in range(1, q + 2) for r in NETWORKS if r or h == 1]
    rows = []
    for q, num_heads, restricted in bar(cells, 'heads'):
        found = heads.networks(q, 1, num_heads, settings, restricted=restricted, suffix=f', {NETWORKS[restricted]}')
        rows += [{'q': q, 'heads': num_heads, 'network': n, 'loss': x, 'error': e} for n, x, e in found]
    return pd.DataFrame(rows)


def floor_of(rows: pd.DataFrame, fewer: int = 0) -> np.ndarray:
    """2 (1 − H/q) of each row, see `head_checks.floors_of`.

    Args:
        rows: with the columns q and heads.
        fewer: how many heads fewer.
    """
    return head_checks.floors_of(rows, lambda row, h: floors.proposition21(h, row.q, late=True), fewer)


def checks_of(rows: pd.DataFrame) -> list[card.Check]:
    """The comparisons of the verdict.

    Args:
        rows: of `measure`.
    """
    by_network = {name: rows[rows['network'] == name] for name in rows['network'].unique()}
    few = by_network['trained, free W_QK']
    few = few[few['heads'] == 1]
    what = (
        'trained, block-diagonal ≥ 2(1 − H/q)',
        'the best reader of block-diagonal heads attains 2(1 − H/q)',
    )
    shared = head_checks.checks_of(
        by_network['trained, block-diagonal W_QK'],
        by_network['best reader, block-diagonal W_QK'],
        by_network['Lemma 11'],
        floor_of=floor_of,
        what=what,
    )
    free_loss = by_network['best reader, free W_QK']['loss']
    return [
        *shared,
        card.below('free W_QK, d = 1: the best reader of one head errs by rounding only', free_loss, 1e-9),
        card.fails(
            'free W_QK, d = 1: trained networks of one head cross 2(1 − 1/q), so the restriction is needed',
            card.above('', few['loss'], floor_of(few), few['error']),
        ),
    ]


def make(settings: Settings, bar: card.Bar) -> card.Card:
    """Makes the card.

    Args:
        settings: of the card.
        bar: progress bar.
    """
    rows = measure(settings, bar)
    free = rows[rows['network'] == 'trained, free W_QK'].groupby('q')['loss'].min()
    losses = ', '.join(f'{loss:.2g} at q = {q} (the floor would be {2 - 2 / q:.2g})' for q, loss in free.items())
    return card.Card(
        name=NAME,
        statement='Proposition 21',
        claim='d = 1 and scores that pair tokens with tokens, encodings with encodings only: loss at late positions ≥ '
        '2(1 − H/q), so exactly H ≥ q heads.',
        setting=f'd = 1; {heads.describe(settings)}',
        panels=tuple(card.Panel(f'q = {q}, d = 1', 'heads H', 'loss at i ≥ N/2') for q in settings.sparsity),
        points=pd.DataFrame(_points(settings, rows)),
        lines=pd.DataFrame(_lines(settings)),
        checks=tuple(checks_of(rows)),
        finding=f'With free W_QK one trained head reaches {losses}, best lane.',
    )


def _points(settings: Settings, rows: pd.DataFrame) -> Iterator[dict[str, Any]]:
    for panel, q in enumerate(settings.sparsity):
        for row in rows[rows['q'] == q].itertuples():
            yield card.point(panel, row.network, row.heads, row.loss, row.error)


def _lines(settings: Settings) -> list[dict[str, Any]]:
    lines = []
    for panel, q in enumerate(settings.sparsity):
        counts = list(range(1, q + 2))
        floor = [floors.proposition21(h, q, late=True) for h in counts]
        lines += card.line(panel, 'floor 2(1 − H/q), block-diagonal', counts, floor)
    return lines
