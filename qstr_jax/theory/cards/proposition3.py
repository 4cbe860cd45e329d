"""Card of Proposition 3: trained Transformers with too few heads against the printed and the sharper floor."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from qstr_jax import progress
from qstr_jax.sweeps import Sweep
from qstr_jax.theory import floors
from qstr_jax.theory.cards import check, heads
from qstr_jax.theory.cards.card import Card, Panel, line, point

NAME = 'proposition3'
FLOORS = {'printed floor': floors.proposition3, 'sharper floor (ours)': floors.head_floor}


@dataclasses.dataclass(frozen=True)
class Settings(heads.Settings):
    """Settings of the card; numbers of heads are 1..q+1.

    Attributes:
        sizes: pairs (q, d).
        narrow: one more pair, with d < q.
    """

    sizes: tuple = ((2, 4), (4, 4))
    narrow: tuple = (3, 1)
    steps: int = 3000
    batch_size: int = 128
    test_samples: int = 10_000
    oracle_prompts: int = 4000


def sweeps(settings: Settings) -> dict[str, Sweep]:
    """The trained networks, by (q, d)."""
    sizes = [*settings.sizes, settings.narrow]
    return {f'q = {q}, d = {d}': heads.sweep(settings, q, d, range(1, q + 2)) for q, d in sizes}


def floor_of(rows: pd.DataFrame, fewer: int = 0) -> np.ndarray:
    """The sharper floor of each row, see `heads.floors_of`."""
    return heads.floors_of(rows, lambda row, h: floors.head_floor(h, row.q, row.d, late=True), fewer)


def printed_of(rows: pd.DataFrame) -> np.ndarray:
    """Proposition 3's floor of each row."""
    return heads.floors_of(rows, lambda row, h: floors.proposition3(h, row.q, row.d, late=True))


def checks_of(rows: pd.DataFrame, sizes: list, narrow: tuple) -> list[check.Check]:
    """The comparisons of the verdict."""
    wide = rows[[pair in set(sizes) for pair in zip(rows['q'], rows['d'], strict=True)]]
    trained, readers, built = (wide[wide['network'] == name] for name in ('trained', 'best reader', 'Lemma 11'))
    narrow_rows = rows[(rows['q'] == narrow[0]) & (rows['d'] == narrow[1]) & (rows['heads'] == narrow[1])]
    readers_narrow = narrow_rows[narrow_rows['network'] == 'best reader']
    printed = printed_of(rows)
    what = 'trained ≥ the sharper floor', 'the best reader of H heads attains the sharper floor'
    return [
        check.above('all networks ≥ the printed floor', rows['loss'], printed, rows['error'], can_fail=printed > 0),
        *heads.checks_of(trained, readers, built, floor_of=floor_of, what=what),
        check.below('d < q: the best reader of H = d heads errs by rounding only', readers_narrow['loss'], 1e-9),
    ]


def card(settings: Settings, rows: dict[str, pd.DataFrame]) -> Card:
    """The card of the sweeps' rows."""
    trained = [heads.trained(found) for found in rows.values()]
    beside = [heads.untrained(settings, found) for found in progress.each(trained, f'{NAME}: best readers')]
    averaging = max(heads.averaging(q, d, settings.oracle_prompts) for q, d in settings.sizes)
    return card_of(settings, pd.concat([*trained, *beside], ignore_index=True), averaging)


def card_of(settings: Settings, rows: pd.DataFrame, averaging: float) -> Card:
    """The card of measured rows."""
    sizes, (q, d) = [tuple(pair) for pair in settings.sizes], settings.narrow
    linear = check.below('linear mean link: one head that averages has loss < 0.001', averaging, 0.001)
    return Card(
        name=NAME,
        statement='Proposition 3',
        claim='With H < q heads no Transformer fits norm2: loss at late positions ≥ 2(1 − H(q+d)/(qd)), sharper '
        '(ours) ≥ 2(1 − H/q)(1 − H/d).',
        setting=heads.describe(settings),
        panels=tuple(Panel(f'q = {a}, d = {b}', 'heads H', 'loss at i ≥ N/2') for a, b in [*sizes, (q, d)]),
        points=pd.DataFrame(_points(rows, [*sizes, (q, d)])),
        lines=pd.DataFrame(_lines([*sizes, (q, d)])),
        checks=(*checks_of(rows, sizes, settings.narrow), linear),
        finding=_finding(rows, sizes, settings.narrow),
    )


def _finding(rows: pd.DataFrame, sizes: list, narrow: tuple) -> str:
    q, d = narrow
    best = rows[rows['network'] == 'trained'].groupby(['q', 'd', 'heads'])['loss'].min()
    enough = ', '.join(f'{best[a, b, a]:.2g} (q = {a}, d = {b})' for a, b in sizes)
    losses = ', '.join(f'{loss:.2g}' for loss in best[q, d])
    built = rows['loss'][rows['network'] == 'Lemma 11'].max()
    return (
        f'Floors bound from below only: trained with H = q heads the best lane reaches {enough}, where the '
        f'construction, with a wider ReLU layer, has {built:.1g}. d < q: both floors are zero from H = d on; at '
        f'q = {q}, d = {d} the best trained losses for H = 1..{q + 1} are {losses}.'
    )


def _points(rows: pd.DataFrame, sizes: Sequence[tuple[int, int]]) -> Iterator[dict[str, Any]]:
    for panel, (q, d) in enumerate(sizes):
        for row in rows[(rows['q'] == q) & (rows['d'] == d)].itertuples():
            yield point(panel, row.network, row.heads, row.loss, row.error)


def _lines(sizes: Sequence[tuple[int, int]]) -> list[dict[str, Any]]:
    rows = []
    for panel, (q, d) in enumerate(sizes):
        counts = list(range(1, q + 2))
        for label, floor in FLOORS.items():
            rows += line(panel, label, counts, [floor(h, q, d, late=True) for h in counts])
    return rows
