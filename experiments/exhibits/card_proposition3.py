"""Card of Proposition 3: trained Transformers with too few heads against the printed and the sharper floor."""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from experiments import cards
from qstr_jax import progress
from qstr_jax.analysis import check
from qstr_jax.analysis.card import Card, Panel, line, point
from qstr_jax.sweeps import Sweep
from qstr_jax.theory import floors, heads

ORDER = 320
QUESTION = 'Does any Transformer with fewer than q heads get below the floor?'
LIMITS = (
    'That training with q heads gets to zero: a floor bounds from below only. It is one link and the least N that '
    'the proof allows.'
)
FLOORS = {'printed floor': floors.proposition3, 'sharper floor (ours)': floors.head_floor}


@dataclasses.dataclass(frozen=True)
class HeadSettings(cards.Settings):
    """Settings of the cards of Propositions 3 and 21.

    Attributes:
        num_lanes: trained networks of each kind.
        mlp_width: width of the ReLU layer.
        oracle_prompts: prompts on which best readers and constructions are tested.
    """

    num_lanes: int = 5
    learning_rate: float = 1e-2
    mlp_width: int = 128
    oracle_prompts: int = 2000


@dataclasses.dataclass(frozen=True)
class Settings(HeadSettings):
    """Settings of the card; numbers of heads are 1..q+1.

    Attributes:
        sizes: pairs (q, d).
        narrow: one more pair, with d < q.
    """

    sizes: tuple = ((2, 4), (4, 4))
    narrow: tuple[int, ...] = (3, 1)
    steps: int = 3000
    batch_size: int = 128
    test_samples: int = 10_000
    oracle_prompts: int = 4000


# Settings of the small version, which takes seconds.
REDUCED = {
    'sizes': ((2, 2),), 'narrow': (2, 1), 'num_lanes': 1, 'steps': 200, 'batch_size': 32,
    'mlp_width': 32, 'test_samples': 200, 'oracle_prompts': 100,
}  # fmt: skip


def describe(settings: HeadSettings) -> str:
    """What was run, in one line."""
    return (
        f'norm2, N = 2q + 1, merged attention, AdamW on {settings.steps:,} × {settings.batch_size} fresh prompts, '
        f'cosine, {settings.num_lanes} lanes; loss at positions i ≥ N/2 on {settings.test_samples:,} prompts, where '
        'the label has variance 2.'
    )


def sweep(
    settings: HeadSettings, sparsity: int, token_dim: int, num_heads: Sequence[int], is_free: bool = True
) -> Sweep:
    """Transformers with some numbers of heads, W_QK free or block-diagonal between tokens and encodings."""
    model = {'num_heads': tuple(num_heads), 'mlp_width': settings.mlp_width}
    networks: dict[str, Any] = (
        {'transformer': {**model, 'attention': 'merged'}} if is_free else {'block_diagonal': model}
    )
    probe: dict[str, Any] = {'probes': 'late_loss', 'late_loss': {'num_prompts': settings.test_samples}}
    task = heads.half_settings(sparsity, token_dim)
    return cards.online(settings, task, models=tuple(networks), **networks, **probe)


def trained(rows: pd.DataFrame, suffix: str = '') -> pd.DataFrame:
    """The rows of a sweep as rows of a card: q, d, heads, network, loss and error."""
    counts = rows[f'{rows["model"].iloc[0]}_num_heads'].astype(int)
    names = {'sparsity': 'q', 'token_dim': 'd', 'late_loss': 'loss', 'late_loss_se': 'error'}
    return rows[[*names]].rename(columns=names).assign(heads=counts, network=f'trained{suffix}')


def untrained(settings: HeadSettings, found: pd.DataFrame, is_free: bool = True, suffix: str = '') -> pd.DataFrame:
    """What stands beside trained networks of each size: the best reader if H < q, else Lemma 11's construction."""
    rows = []
    for q, d, num_heads in found[['q', 'd', 'heads']].drop_duplicates().itertuples(index=False):
        name, measure = ('Lemma 11', heads.constructed) if num_heads >= q else (f'best reader{suffix}', heads.oracle)
        more = {} if is_free or num_heads >= q else {'restricted': True}
        loss, error = measure(q, d, num_heads, settings.oracle_prompts, **more)
        rows.append({'q': q, 'd': d, 'heads': num_heads, 'network': name, 'loss': loss, 'error': error})
    return pd.DataFrame(rows)


def sweeps(settings: Settings) -> dict[str, Sweep]:
    """The trained networks, by (q, d)."""
    sizes = [*settings.sizes, settings.narrow]
    return {f'q = {q}, d = {d}': sweep(settings, q, d, range(1, q + 2)) for q, d in sizes}


def floors_of(rows: pd.DataFrame, floor: Callable[[Any, int], float], fewer: int = 0) -> np.ndarray:
    """The floor at late positions of each row, as if its network had `fewer` heads less."""
    return np.array(
        [floors.LATE_VARIANCE if row.heads <= fewer else floor(row, row.heads - fewer) for row in rows.itertuples()]
    )


def floor_checks(
    trained: pd.DataFrame,
    readers: pd.DataFrame,
    built: pd.DataFrame,
    *,
    floor_of: Callable[..., np.ndarray],
    what: tuple[str, str],
) -> list[check.Check]:
    """Trained networks keep a floor, best readers attain it, and Lemma 11's construction passes below it."""
    floor = floor_of(trained)
    wrong = check.above('wrong floor', trained['loss'], floor_of(trained, fewer=1), trained['error'])
    return [
        check.above(what[0], trained['loss'], floor, trained['error'], can_fail=floor > 0),
        check.near(what[1], readers['loss'], floor_of(readers), readers['error']),
        check.fails('a wrong floor, of one head fewer, is crossed', wrong),
        check.below('Lemma 11 with H ≥ q: loss < 0.01', built['loss'], 0.01),
    ]


def floor_of(rows: pd.DataFrame, fewer: int = 0) -> np.ndarray:
    """The sharper floor of each row, see `floors_of`."""
    return floors_of(rows, lambda row, h: floors.head_floor(h, row.q, row.d, late=True), fewer)


def checks_of(rows: pd.DataFrame, sizes: list, narrow: tuple) -> list[check.Check]:
    """The comparisons of the verdict."""
    wide = rows[[pair in set(sizes) for pair in zip(rows['q'], rows['d'], strict=True)]]
    trained, readers, built = (wide[wide['network'] == name] for name in ('trained', 'best reader', 'Lemma 11'))
    narrow_rows = rows[(rows['q'] == narrow[0]) & (rows['d'] == narrow[1]) & (rows['heads'] == narrow[1])]
    readers_narrow = narrow_rows[narrow_rows['network'] == 'best reader']
    printed = floors_of(rows, lambda row, h: floors.proposition3(h, row.q, row.d, late=True))
    what = 'trained ≥ the sharper floor', 'the best reader of H heads attains the sharper floor'
    return [
        check.above('all networks ≥ the printed floor', rows['loss'], printed, rows['error'], can_fail=printed > 0),
        *floor_checks(trained, readers, built, floor_of=floor_of, what=what),
        check.below('d < q: the best reader of H = d heads errs by rounding only', readers_narrow['loss'], 1e-9),
    ]


def card(settings: Settings, rows: dict[str, pd.DataFrame]) -> Card:
    """The card of the sweeps' rows."""
    networks = [trained(found) for found in rows.values()]
    beside = [untrained(settings, found) for found in progress.each(networks, 'proposition3: best readers')]
    found = pd.concat([*networks, *beside], ignore_index=True)
    averaging = max(heads.averaging(q, d, settings.oracle_prompts) for q, d in settings.sizes)
    sizes, narrow = [tuple(pair) for pair in settings.sizes], tuple(settings.narrow)
    linear = check.below('linear mean link: one head that averages has loss < 0.001', averaging, 0.001)
    return Card(
        statement='Proposition 3',
        claim='With H < q heads no Transformer fits norm2: loss at late positions ≥ 2(1 − H(q+d)/(qd)), sharper '
        '(ours) ≥ 2(1 − H/q)(1 − H/d).',
        setting=describe(settings),
        panels=tuple(Panel(f'q = {q}, d = {d}', 'heads H', 'loss at i ≥ N/2') for q, d in [*sizes, narrow]),
        points=pd.DataFrame(points_of(found, [*sizes, narrow])),
        lines=pd.DataFrame(lines_of(FLOORS, [*sizes, narrow])),
        checks=(*checks_of(found, sizes, narrow), linear),
        finding=_finding(found, sizes, narrow),
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


def points_of(rows: pd.DataFrame, sizes: Sequence[tuple[int, int]]) -> Iterator[dict[str, Any]]:
    """Losses against the number of heads, a panel for each (q, d)."""
    for panel, (q, d) in enumerate(sizes):
        for row in rows[(rows['q'] == q) & (rows['d'] == d)].itertuples():
            yield point(panel, row.network, row.heads, row.loss, row.error)


def lines_of(floors_by_label: dict[str, Callable], sizes: Sequence[tuple[int, int]]) -> list[dict[str, Any]]:
    """Floors against the number of heads, in the same panels."""
    rows = []
    for panel, (q, d) in enumerate(sizes):
        counts = list(range(1, q + 2))
        for label, floor in floors_by_label.items():
            rows += line(panel, label, counts, [floor(h, q, d, late=True) for h in counts])
    return rows
