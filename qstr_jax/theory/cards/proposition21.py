"""Card of Proposition 21: one-dimensional tokens, W_QK block-diagonal between tokens and encodings, or free."""

import dataclasses

import numpy as np
import pandas as pd

from qstr_jax.theory import floors
from qstr_jax.theory.cards import card, heads

NAME = 'proposition21'
NETWORKS = {False: 'free W_QK', True: 'block-diagonal W_QK'}


@dataclasses.dataclass(frozen=True)
class Settings(heads.Settings):
    """Several q at d = 1; heads 1..q+1, with free W_QK one."""

    sparsity: tuple = (2, 3)


def measure(settings, bar):
    """One row per (q, H, network)."""
    # One head is enough to see what the restriction does.
    cells = [(q, h, r) for q in settings.sparsity for h in range(1, q + 2) for r in NETWORKS if r or h == 1]
    rows = []
    for q, num_heads, restricted in bar(cells, 'heads'):
        losses_K, errors_K = heads.trained(q, 1, num_heads, settings, restricted)
        found = [(f'trained, {NETWORKS[restricted]}', *pair) for pair in zip(losses_K, errors_K, strict=True)]
        if num_heads < q:
            reader = heads.oracle(q, 1, num_heads, settings.oracle_prompts, restricted)
            found.append((f'best reader, {NETWORKS[restricted]}', *reader))
        elif restricted:
            found.append(('Lemma 11', *heads.constructed(q, 1, num_heads, settings.oracle_prompts)[:2]))
        rows += [{'q': q, 'heads': num_heads, 'network': n, 'loss': x, 'error': e} for n, x, e in found]
    return pd.DataFrame(rows)


def floor_of(rows, fewer=0):
    """2 (1 − H/q) of each row, as if it had `fewer` heads less."""
    return np.array(
        [
            2.0 if row.heads <= fewer else floors.proposition21(row.heads - fewer, row.q, late=True)
            for row in rows.itertuples()
        ]
    )


def checks_of(rows):
    """The comparisons of the verdict."""

    def named(name, chosen=rows):
        return chosen[chosen['network'] == name]

    blocked = named('trained, block-diagonal W_QK')
    reader, free_reader = named('best reader, block-diagonal W_QK'), named('best reader, free W_QK')
    built, free = named('Lemma 11'), named('trained, free W_QK')
    few = free[free['heads'] == 1]
    above = card.above('wrong floor', blocked['loss'], floor_of(blocked, fewer=1), blocked['error'])
    return (
        card.above('trained, block-diagonal ≥ 2(1 − H/q)', blocked['loss'], floor_of(blocked), blocked['error']),
        card.near(
            'the best reader of block-diagonal heads attains 2(1 − H/q)',
            reader['loss'],
            floor_of(reader),
            reader['error'],
        ),
        card.fails('a wrong floor, of one head fewer, is crossed', above),
        card.below('Lemma 11 with H ≥ q: loss < 0.01', built['loss'], 0.01),
        card.below('free W_QK, d = 1: the best reader of one head errs by rounding only', free_reader['loss'], 1e-9),
        card.fails(
            'free W_QK, d = 1: trained networks of one head cross 2(1 − 1/q), so the restriction is needed',
            card.above('', few['loss'], floor_of(few), few['error']),
        ),
    )


def make(settings, bar):
    """The card; see `lemma11.make`."""
    rows = measure(settings, bar)
    points = [
        card.point(panel, row.network, row.heads, row.loss, row.error)
        for panel, q in enumerate(settings.sparsity)
        for row in rows[rows['q'] == q].itertuples()
    ]
    lines = []
    for panel, q in enumerate(settings.sparsity):
        counts = list(range(1, q + 2))
        floor = [floors.proposition21(h, q, late=True) for h in counts]
        lines += card.line(panel, 'floor 2(1 − H/q), block-diagonal', counts, floor)
    free = rows[rows['network'] == 'trained, free W_QK'].groupby('q')['loss'].min()
    losses = ', '.join(f'{loss:.2g} at q = {q} (the floor would be {2 - 2 / q:.2g})' for q, loss in free.items())
    return card.Card(
        NAME,
        'Proposition 21',
        'd = 1 and scores that pair tokens with tokens, encodings with encodings only: loss at late positions ≥ '
        '2(1 − H/q), so exactly H ≥ q heads.',
        f'd = 1; {heads.describe(settings)}',
        tuple(card.Panel(f'q = {q}, d = 1', 'heads H', 'loss at i ≥ N/2') for q in settings.sparsity),
        pd.DataFrame(points),
        pd.DataFrame(lines),
        checks_of(rows),
        f'With free W_QK one trained head reaches {losses}, best lane.',
    )
