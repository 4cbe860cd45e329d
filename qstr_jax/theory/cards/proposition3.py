"""Card of Proposition 3: trained Transformers with too few heads against the printed and the sharper floor."""

import dataclasses
import itertools

import numpy as np
import pandas as pd

from qstr_jax.theory import floors
from qstr_jax.theory.cards import card, heads

NAME = 'proposition3'


@dataclasses.dataclass(frozen=True)
class Settings(heads.Settings):
    """Pairs (q, d), and one with d < q; heads 1..q+1."""

    sizes: tuple = ((2, 4), (4, 4))
    narrow: tuple = (3, 1)
    steps: int = 3000
    batch_size: int = 128
    test_samples: int = 10_000
    oracle_prompts: int = 4000


def measure(settings, bar):
    """One row per (q, d, H, network): loss at late positions, its standard error."""
    sizes = [*settings.sizes, settings.narrow]
    cells = [(q, d, h) for q, d in sizes for h in range(1, q + 2)]
    rows = []
    for q, d, num_heads in bar(cells, 'heads'):
        losses_K, errors_K = heads.trained(q, d, num_heads, settings)
        found = [('trained', loss, error) for loss, error in zip(losses_K, errors_K, strict=True)]
        if num_heads < q:
            found.append(('best reader', *heads.oracle(q, d, num_heads, settings.oracle_prompts)))
        else:
            loss, error, _ = heads.constructed(q, d, num_heads, settings.oracle_prompts)
            found.append(('Lemma 11', loss, error))
        rows += [{'q': q, 'd': d, 'heads': num_heads, 'network': n, 'loss': x, 'error': e} for n, x, e in found]
    return pd.DataFrame(rows)


def floor_of(rows, fewer=0):
    """Sharper floor of each row, as if it had `fewer` heads less (none: the label's variance)."""
    return np.array(
        [
            2.0 if row.heads <= fewer else floors.head_floor(row.heads - fewer, row.q, row.d, late=True)
            for row in rows.itertuples()
        ]
    )


def printed_of(rows):
    """Proposition 3's floor of each row."""
    return np.array([floors.proposition3(row.heads, row.q, row.d, late=True) for row in rows.itertuples()])


def checks_of(rows, sizes, narrow):
    """The comparisons of the verdict."""
    wide = rows[[pair in set(sizes) for pair in zip(rows['q'], rows['d'], strict=True)]]
    trained, readers = wide[wide['network'] == 'trained'], wide[wide['network'] == 'best reader']
    built = wide[wide['network'] == 'Lemma 11']
    narrow_rows = rows[(rows['q'] == narrow[0]) & (rows['d'] == narrow[1]) & (rows['heads'] == narrow[1])]
    readers_narrow = narrow_rows[narrow_rows['network'] == 'best reader']
    above = card.above('wrong floor', trained['loss'], floor_of(trained, fewer=1), trained['error'])
    return [
        card.above('all networks ≥ the printed floor', rows['loss'], printed_of(rows), rows['error']),
        card.above('trained ≥ the sharper floor', trained['loss'], floor_of(trained), trained['error']),
        card.near(
            'the best reader of H heads attains the sharper floor', readers['loss'], floor_of(readers), readers['error']
        ),
        card.fails('a wrong floor, of one head fewer, is crossed', above),
        card.below('Lemma 11 with H ≥ q: loss < 0.01', built['loss'], 0.01),
        card.below('d < q: the best reader of H = d heads errs by rounding only', readers_narrow['loss'], 1e-9),
    ]


def make(settings, bar):
    """The card; see `lemma11.make`."""
    rows = measure(settings, bar)
    averaging = max(heads.averaging(*pair, settings.oracle_prompts) for pair in settings.sizes)
    return card_of(settings, rows, averaging)


def card_of(settings, rows, averaging):
    """The card of measured rows and of the loss of one averaging head."""
    sizes, (q, d) = [tuple(pair) for pair in settings.sizes], settings.narrow
    linear = card.below('linear mean link: one head that averages has loss < 0.001', averaging, 0.001)
    best = rows[rows['network'] == 'trained'].groupby(['q', 'd', 'heads'])['loss'].min()
    enough = ', '.join(f'{best[a, b, a]:.2g} (q = {a}, d = {b})' for a, b in sizes)
    narrow = ', '.join(f'{loss:.2g}' for loss in best[q, d])
    return card.Card(
        NAME,
        'Proposition 3',
        'With H < q heads no Transformer fits norm2: loss at late positions ≥ 2(1 − H(q+d)/(qd)), sharper (ours) ≥ '
        '2(1 − H/q)(1 − H/d).',
        heads.describe(settings),
        tuple(card.Panel(f'q = {a}, d = {b}', 'heads H', 'loss at i ≥ N/2') for a, b in [*sizes, (q, d)]),
        pd.DataFrame(_points(rows, [*sizes, (q, d)])),
        pd.DataFrame(_lines([*sizes, (q, d)])),
        (*checks_of(rows, sizes, settings.narrow), linear),
        f'Floors bound from below only: trained with H = q heads the best lane reaches {enough}, where the '
        'construction, with a wider ReLU layer, has '
        f'{rows["loss"][rows["network"] == "Lemma 11"].max():.1g}. d < q: both floors are zero from H = d on; at '
        f'q = {q}, d = {d} the best trained losses for H = 1..{q + 1} are {narrow}.',
    )


def _points(rows, sizes):
    for panel, (q, d) in enumerate(sizes):
        for row in rows[(rows['q'] == q) & (rows['d'] == d)].itertuples():
            yield card.point(panel, row.network, row.heads, row.loss, row.error)


def _lines(sizes):
    rows = []
    for panel, (q, d) in enumerate(sizes):
        counts = list(range(1, q + 2))
        pairs = itertools.product((floors.proposition3, floors.head_floor), [counts])
        for (function, _), label in zip(pairs, ('printed floor', 'sharper floor (ours)'), strict=True):
            rows += card.line(panel, label, counts, [function(h, q, d, late=True) for h in counts])
    return rows
