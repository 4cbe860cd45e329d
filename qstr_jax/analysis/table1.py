"""Table 1 of the paper, measured: how samples grow with N per architecture and task, beside the theorems' claims."""

import itertools
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from qstr_jax import columns
from qstr_jax.analysis import formats
from qstr_jax.analysis.claims import CLAIMS, Claim, judge
from qstr_jax.analysis.curves import ALWAYS_NAMED, require, setting_columns
from qstr_jax.analysis.exponents import Exponent, fit
from qstr_jax.analysis.growth import log_power
from qstr_jax.analysis.names import MODELS, display

# The learner of the table; others are given n, or search for it.
ONLINE = 'online'
# Settings that save time or allow more of it, but do not change how many samples a lane needs.
_COST = ('screen', 'max_samples')
# Links whose labels have variance 1 at q = 1.
_VARIANCE_ONE = ('linear', 'mean', 'sum', 'hermite2')

COLUMNS = ('architecture', 'task', 'loss', 'N', 'lanes', 'exponent', 'low', 'high', 'log_power', 'claim', 'source',
           'agrees', 'note')  # fmt: skip


def measure(rows: pd.DataFrame) -> pd.DataFrame:
    """One line per curve: the exponent of samples in N with its interval, the claim, and whether they agree.

    Args:
        rows: lanes of any sweeps; a lane that several directories hold counts once. Points whose lanes share one (u, ω)
            are left out, since such repeats understate the error. The column `folder`, if there is one, tells which
            directory a row is from.

    Returns:
        COLUMNS: `loss` is the threshold, `N` the lengths that the exponent is fitted to, `lanes` per length,
        `exponent` with `low` and `high` as of `analysis.exponent` (NaN if there is none), `log_power` the p of a fit
        of (log N)^p to the same means, `agrees` 'yes', 'no', 'open' or 'not measured', and `note`, why.

    Raises:
        ValueError: missing columns.
    """
    lines: list[dict[str, Any]] = []
    own = rows
    if len(rows):
        require(rows, ('model', 'task', 'seq_len', 'learner', 'threshold', 'seed', 'task_seed', 'outcome'))
        rows = rows[rows['learner'] == ONLINE]
        own = _distinct(_own_draws(rows)) if len(rows) else rows
        lines = [_line(lanes) for lanes in _curves(own)]
    seen = {(line['architecture'], line['task']) for line in lines}
    lines += [
        _unmeasured(place, claim, _why_unmeasured(place, rows, own))
        for place, claim in CLAIMS.items()
        if place not in seen
    ]
    frame = pd.DataFrame(lines, columns=list(COLUMNS))
    order = [*MODELS, *sorted(set(frame['architecture']) - set(MODELS))]
    rank = frame.assign(by_task=frame['task'].ne('simple_qstr'), by_model=frame['architecture'].map(order.index))
    return frame.loc[rank.sort_values(['by_task', 'by_model', 'loss'], kind='stable').index].reset_index(drop=True)


def readable(table: pd.DataFrame) -> pd.DataFrame:
    """The table of `measure` as texts for readers: the exponent with its interval in one column.

    Args:
        table: of `measure`.
    """
    interval = [
        '–' if np.isnan(value) else str(Exponent(value=value, low=_or_none(low), high=_or_none(high)))
        for value, low, high in zip(table['exponent'], table['low'], table['high'], strict=True)
    ]
    return pd.DataFrame({
        'architecture': table['architecture'].map(display),
        'task': table['task'].map(display),
        'loss below': table['loss'],
        'N': table['N'].map(lambda lengths: ', '.join(map(str, lengths)) or '–'),
        'lanes per N': table['lanes'],
        'n grows as N to the': interval,
        'or as log N to the': table['log_power'].map(lambda power: '–' if np.isnan(power) else f'{power:.1f}'),
        'claim': table['claim'] + ' (' + table['source'] + ')',
        'agrees': table['agrees'],
        'note': table['note'].replace('', '–'),
    })  # fmt: skip


def markdown(table: pd.DataFrame) -> str:
    """The table of `measure` in Markdown.

    Args:
        table: of `measure`.
    """
    return formats.markdown(readable(table))


def latex(table: pd.DataFrame) -> str:
    """The table of `measure` in LaTeX, without the notes.

    Args:
        table: of `measure`.
    """
    caption = (
        'Measured growth of the number of samples with N (exponent with 95% interval over lanes that draw '
        'their own task), and what the theorems claim.'
    )
    return formats.latex(readable(table).drop(columns='note'), caption, 'tab:measured')


def _own_draws(rows: pd.DataFrame) -> pd.DataFrame:
    """The lanes of those points at which every lane draws its own (u, ω)."""
    rows = rows if 'folder' in rows.columns else rows.assign(folder='')
    lanes = rows.groupby(['folder', *setting_columns(rows)], dropna=False)
    return rows[lanes['task_seed'].transform('nunique') == lanes['seed'].transform('nunique')]


def _distinct(rows: pd.DataFrame) -> pd.DataFrame:
    """Each lane once, from the directory with the most N."""
    lane = ['seed', 'task_seed', *(name for name in setting_columns(rows) if name not in _COST)]
    reach = rows.groupby(['folder', 'model', 'task'])['seq_len'].transform('nunique')
    rows = rows.loc[reach.sort_values(ascending=False, kind='stable').index]
    # Whole numbers of one directory may be floats in another, where they stand beside missing values.
    keys = pd.DataFrame({name: pd.factorize(rows[name].astype(object), use_na_sentinel=False)[0] for name in lane})
    return rows[~keys.duplicated().to_numpy()].reset_index(drop=True)


def _curves(rows: pd.DataFrame) -> Iterable[pd.DataFrame]:
    """The lanes of each curve with several N; of several shapes at one N that of the directory with the most N.

    A shape is made of the settings that follow from N in some directory, such as widths and d_e.
    """
    for _, mine in rows.groupby(['model', 'task'], sort=False):
        shape = _following(mine)
        apart = [name for name in setting_columns(mine) if name not in ('seq_len', *_COST, *shape)]
        for _, lanes in mine.groupby(apart, dropna=False, sort=False):
            chosen = _of_one_shape(lanes, shape) if shape else lanes
            if chosen['seq_len'].nunique() > 1:
                yield chosen


def _following(rows: pd.DataFrame) -> list[str]:
    """The settings of the model and the task that take other values at another N, in some directory."""
    may = [
        name
        for name in setting_columns(rows)
        if columns.get(name).role not in ('learner', 'lane') and name not in ALWAYS_NAMED
    ]
    fixed = [name for name in setting_columns(rows) if name not in (*may, 'seq_len')]
    groups = [lanes for _, lanes in rows.groupby(['folder', *fixed], dropna=False)]
    return [name for name in may if any(_differs(lanes, name) for lanes in groups)]


def _differs(lanes: pd.DataFrame, name: str) -> bool:
    """Whether a setting has no value in common at two different N."""
    values = [set(cell[name].astype(str)) for _, cell in lanes.groupby('seq_len')]
    return any(one.isdisjoint(other) for one, other in itertools.combinations(values, 2))


def _of_one_shape(lanes: pd.DataFrame, shape: list[str]) -> pd.DataFrame:
    """At each N the lanes of one shape; an N at which the choice is open is left out."""
    reach = lanes.groupby('folder')['seq_len'].transform('nunique')
    number = lanes.groupby(shape, dropna=False).ngroup()
    is_farthest = reach == reach.groupby(lanes['seq_len']).transform('max')
    known = number[is_farthest].groupby(lanes['seq_len']).agg(['nunique', 'first'])
    chosen = known.loc[known['nunique'] == 1, 'first']
    return lanes[number == lanes['seq_len'].map(chosen)]


def _line(lanes: pd.DataFrame) -> dict[str, Any]:
    """One line of the table."""
    first = lanes.iloc[0]
    claim = CLAIMS.get((first['model'], first['task']))
    lanes, left_out = _without_easy(lanes)
    found = fit(lanes) if len(lanes) else Exponent(note='no N is left')
    lengths = sorted(set(map(int, lanes['seq_len'])) - set(found.left_out))
    counts = lanes.groupby('seq_len')['seed'].nunique()
    power, share = log_power(lanes[lanes['seq_len'].isin(lengths)]) if found.value is not None else (np.nan, np.nan)
    agrees, why = judge(claim, found, power, share)
    risk = 'by the point-wise risk' if first.get('risk') == 'pointwise' else ''
    return {
        'architecture': first['model'], 'task': first['task'], 'loss': first['threshold'], 'N': tuple(lengths),
        'lanes': f'{counts.min()}' if counts.nunique() == 1 else f'{counts.min()}-{counts.max()}',
        'exponent': _or_nan(found.value), 'low': _or_nan(found.low), 'high': _or_nan(found.high), 'log_power': power,
        'claim': claim.words if claim else '–', 'source': claim.source if claim else '–', 'agrees': agrees,
        'note': '; '.join(part for part in (risk, why, found.note, left_out) if part),
    }  # fmt: skip


def _why_unmeasured(place: tuple[str, str], rows: pd.DataFrame, own: pd.DataFrame) -> str:
    def has(frame: pd.DataFrame) -> bool:
        return len(frame) > 0 and bool(((frame['model'] == place[0]) & (frame['task'] == place[1])).any())

    if has(own):
        return 'only one N'
    return 'all lanes share one (u, ω)' if has(rows) else 'no rows'


def _unmeasured(place: tuple[str, str], claim: Claim, note: str) -> dict[str, Any]:
    nothing = dict.fromkeys(('loss', 'exponent', 'low', 'high', 'log_power'), np.nan)
    return {'architecture': place[0], 'task': place[1], 'N': (), 'lanes': '0', 'claim': claim.words,
            'source': claim.source, 'agrees': 'not measured', 'note': note, **nothing}  # fmt: skip


def _without_easy(lanes: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """The lanes without those N at which a predictor that ignores t is good enough, and in words what was left out.

    For q = 1, tokens N(0, I) and uniform t its error is 1 − 1/N of the label variance 1: it predicts the mean of the
    link over all tokens.
    """
    first = lanes.iloc[0]
    if first['sparsity'] > 1 or first['link'] not in _VARIANCE_ONE:
        return lanes, ''
    is_easy = 1 - 1 / lanes['seq_len'] <= first['threshold']
    easy = ', '.join(map(str, sorted(set(lanes.loc[is_easy, 'seq_len']))))
    note = f'without N = {easy}: 1 − 1/N ≤ {first["threshold"]:g} needs no retrieval' if easy else ''
    return lanes[~is_easy], note


def _or_nan(value: float | None) -> float:
    return np.nan if value is None else value


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else value
