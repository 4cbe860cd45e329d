"""Card of Proposition 21: one-dimensional tokens, with W_QK block-diagonal between tokens and encodings, or free."""

import dataclasses

import numpy as np
import pandas as pd

from experiments.exhibits import card_proposition3 as heads_card
from qstr_jax import progress
from qstr_jax.analysis import check
from qstr_jax.analysis.card import Card, Panel
from qstr_jax.sweeps import Sweep
from qstr_jax.theory import altered, floors

ORDER = 330
QUESTION = 'How many heads do one-dimensional tokens need?'
LIMITS = 'Other links and longer prompts: as in the card of Proposition 3 it is norm2 at the least N.'
# Modules that register what the sweeps name.
PLUGINS = (altered,)
FREE, BLOCK = ', free W_QK', ', block-diagonal W_QK'


@dataclasses.dataclass(frozen=True)
class Settings(heads_card.HeadSettings):
    """Settings of the card; d = 1, and numbers of heads are 1..q+1, or 1 if W_QK is free.

    Attributes:
        sparsity: values of q.
    """

    sparsity: tuple[int, ...] = (2, 3)


# Settings of the small version, which takes seconds.
REDUCED = {
    'sparsity': (2,), 'num_lanes': 1, 'steps': 200, 'batch_size': 32,
    'mlp_width': 32, 'test_samples': 200, 'oracle_prompts': 100,
}  # fmt: skip


def sweeps(settings: Settings) -> dict[str, Sweep]:
    """The trained networks, by kind and q. One free head is enough to see what the restriction does."""
    found = {f'q = {q}{FREE}': heads_card.sweep(settings, q, 1, [1]) for q in settings.sparsity}
    for q in settings.sparsity:
        found[f'q = {q}{BLOCK}'] = heads_card.sweep(settings, q, 1, range(1, q + 2), is_free=False)
    return found


def measure(settings: Settings, rows: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """One row per network: q, heads, network, loss, error."""
    found = []
    for name, own in progress.each(rows.items(), 'proposition21: best readers'):
        suffix = FREE if name.endswith(FREE) else BLOCK
        trained = heads_card.trained(own, suffix)
        found += [trained, heads_card.untrained(settings, trained, suffix == FREE, suffix)]
    return pd.concat(found, ignore_index=True)


def floor_of(rows: pd.DataFrame, fewer: int = 0) -> np.ndarray:
    """2 (1 − H/q) of each row, see `heads_card.floors_of`."""
    return heads_card.floors_of(rows, lambda row, h: floors.proposition21(h, row.q, late=True), fewer)


def checks_of(rows: pd.DataFrame) -> list[check.Check]:
    """The comparisons of the verdict."""
    by_network = {name: rows[rows['network'] == name] for name in rows['network'].unique()}
    few = by_network[f'trained{FREE}']
    few = few[few['heads'] == 1]
    what = 'trained, block-diagonal ≥ 2(1 − H/q)', 'the best reader of block-diagonal heads attains 2(1 − H/q)'
    block = [by_network[name] for name in (f'trained{BLOCK}', f'best reader{BLOCK}', 'Lemma 11')]
    free_loss = by_network[f'best reader{FREE}']['loss']
    return [
        *heads_card.floor_checks(*block, floor_of=floor_of, what=what),
        check.below('free W_QK, d = 1: the best reader of one head errs by rounding only', free_loss, 1e-9),
        check.fails(
            'free W_QK, d = 1: trained networks of one head cross 2(1 − 1/q), so the restriction is needed',
            check.above('', few['loss'], floor_of(few), few['error']),
        ),
    ]


def card(settings: Settings, rows: dict[str, pd.DataFrame]) -> Card:
    """The card of the sweeps' rows."""
    found, sizes = measure(settings, rows), [(q, 1) for q in settings.sparsity]
    free = found[found['network'] == f'trained{FREE}'].groupby('q')['loss'].min()
    losses = ', '.join(f'{loss:.2g} at q = {q} (the floor would be {2 - 2 / q:.2g})' for q, loss in free.items())

    def floor(num_heads: int, sparsity: int, token_dim: int, late: bool) -> float:
        return floors.proposition21(num_heads, sparsity, late=late)

    return Card(
        statement='Proposition 21',
        claim='With d = 1 and a W_QK that pairs tokens only with tokens and encodings only with encodings, the loss at '
        'late positions is ≥ 2(1 − H/q), so q heads are needed, and enough.',
        setting=f'd = 1; {heads_card.describe(settings)}',
        panels=tuple(Panel(f'q = {q}, d = 1', 'heads H', 'loss at i ≥ N/2') for q in settings.sparsity),
        points=pd.DataFrame(heads_card.points_of(found, sizes)),
        lines=pd.DataFrame(heads_card.lines_of({'floor 2(1 − H/q), block-diagonal': floor}, sizes)),
        checks=tuple(checks_of(found)),
        finding=f'With free W_QK one trained head reaches {losses}, best lane.',
    )
