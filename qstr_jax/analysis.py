"""From lanes to numbers: samples to threshold, censoring, and exponents with intervals.

One row of the input is one lane: one model trained with one seed until its test loss fell strictly
below `threshold` ('reached'), its budget of `max_samples` ran out ('censored'), the `min_samples` that a
search began with were enough already ('censored_below'), or its loss stopped being finite ('diverged'). Only
tables are known here: results are read again without JAX.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np
import pandas as pd

OUTCOMES = ('reached', 'censored', 'censored_below', 'diverged')
MODELS = ('transformer', 'rnn', 'ffn')
DISPLAY_NAMES = {'transformer': 'Transformer', 'rnn': 'RNN', 'ffn': 'FFN', 'qstr': 'qSTR',
                 'simple_qstr': 'simple-qSTR', 'least_squares': 'least squares (t known)', 'ridge': 'ridge',
                 'theorem6_oracle': 'oracle (u, V x)'}
SYMBOLS = {'seq_len': 'N', 'sparsity': 'q'}

_CELL = ('model', 'task', 'sparsity', 'seq_len')
_MEASURED = ('seed', 'outcome', 'samples_to_threshold', 'max_samples')
_NUM_DRAWS = 2000
_MIN_LENGTHS = 3


@dataclasses.dataclass(frozen=True)
class Exponent:
    """The slope of log(mean samples) against log N, with its 95% interval.

    Attributes:
        value, low, high: the exponent and the ends of its interval, None where there is none.
        num_lengths: number of lengths where every lane reached the threshold.
        left_out: the other lengths, which the slope was not fitted to.
        note: in words, why there is no value or interval, or what was left out; '' if nothing.
    """

    value: float | None
    low: float | None
    high: float | None
    num_lengths: int
    left_out: tuple[int, ...] = ()
    note: str = ''

    def __str__(self) -> str:
        """'0.62 [0.55, 0.70]', or '0.62' without an interval, or the note without a value."""
        if self.value is None:
            return self.note
        interval = '' if self.low is None else f' [{self.low:.2f}, {self.high:.2f}]'
        return f'{self.value:.2f}{interval}'


def summarize(rows: pd.DataFrame, by: Sequence[str] = _CELL) -> pd.DataFrame:
    """One row per cell: how many lanes reached the threshold, and their mean with its interval.

    A censored lane counts as its budget, min(T, max_samples), so the mean is a lower bound:
    `lower_bound` is then True, and `high` missing since nothing bounds the mean from above; one
    that is censored below counts as `min_samples`, and `upper_bound` and `low` say so likewise. A
    diverged lane has no T: it is counted, and left out of mean, low, high, min and max.

    Args:
        rows: one row per lane, with the columns of `by` and seed, outcome, samples_to_threshold
            and max_samples.
        by: the columns that make a cell.

    Returns:
        The columns of `by`; num_lanes, num_reached, num_censored, num_censored_below, num_diverged;
        mean, median, low, high, min, max in samples, NaN for none; lower_bound, upper_bound.
        [low, high] is the 95% interval of the mean over lanes (percentile bootstrap, seeded), NaN
        for a single lane; it is narrow for few lanes: with five it covers the mean about 83% of the
        time. The median takes every lane that did not reach as infinite, and one that is censored
        below as `min_samples`; it is NaN if those that did not reach are half of the lanes or more.

    Raises:
        ValueError: no rows, missing columns, an unknown outcome, or one seed twice in a cell.
    """
    _check(rows, by)
    cells = rows.groupby(list(by), observed=True)
    summary = pd.DataFrame(dict(zip(by, key, strict=True)) | _summary(cell) for key, cell in cells)
    if 'model' in by:
        rank = {model: place for place, model in enumerate(model_order(rows))}
        summary = summary.sort_values('model', key=lambda names: names.map(rank), kind='stable')
    return summary.reset_index(drop=True)


def exponent(rows: pd.DataFrame, x: str = 'seq_len') -> Exponent:
    """The exponent a in samples ~ N^a of one curve: least squares on a log-log scale.

        a = sum_N (log N - c) log T(N) / sum_N (log N - c)^2,
        c = mean over N of log N,   T(N) = mean samples over the lanes at N,

    over the lengths where every lane reached: a censored mean is a bound, not a measurement. The
    95% interval is the percentile bootstrap that resamples lanes within each length (seeded): at
    six lengths of five lanes it covers about 90% of the time, and it knows no misfit of the law.

    Args:
        rows: the lanes of one curve: one model, one task, one of the other of (sparsity, seq_len).
        x: 'seq_len', or 'sparsity' for the exponent in q.

    Returns:
        An Exponent. Fewer than three usable lengths give no value, one lane per length no interval;
        the note says so.

    Raises:
        ValueError: as `summarize`, or rows of several curves.
    """
    _check(rows, _CELL)
    for column in curve_columns(x):
        if rows[column].nunique() > 1:
            raise ValueError(f'rows of several curves: {column} {sorted(set(rows[column]))}')
    cells = {int(length): cell for length, cell in rows.groupby(x, observed=True)}
    lanes = {length: _samples(cell) for length, cell in cells.items() if _is_usable(cell)}
    left_out = tuple(length for length in cells if length not in lanes)
    if len(lanes) < _MIN_LENGTHS:
        note = _why_none(rows, len(lanes), left_out, SYMBOLS.get(x, x))
        return Exponent(None, None, None, len(lanes), left_out, note)
    log_x = np.log(list(lanes))
    value = float(_slope(log_x, np.log([samples.mean() for samples in lanes.values()])))
    low = high = None
    if max(map(len, lanes.values())) > 1:
        # One generator per curve: one per length would resample the lanes of all lengths in step.
        rng = np.random.default_rng(0)
        means = np.stack([_resample(samples, rng) for samples in lanes.values()], axis=-1)
        low, high = _interval(_slope(log_x, np.log(means)))
    note = _caveats(lanes, left_out, SYMBOLS.get(x, x))
    return Exponent(value, low, high, len(lanes), left_out, note)


def table(rows: pd.DataFrame, x: str = 'seq_len') -> str:
    """The summary as a Markdown table that is readable raw: a line per model, a column per length.

    A cell is the mean with its 95% interval, '≥ 1000k' where lanes were censored, '–' where there
    is nothing. The last column is the exponent, or why there is none. Several tasks or sparsities
    give a line for each.

    Args:
        rows, x: as for `summarize`, and what the columns run over, 'seq_len' or 'sparsity'.

    Raises:
        ValueError: as `summarize`.
    """
    summary = summarize(rows)
    symbol, lengths = SYMBOLS.get(x, x), sorted(set(rows[x]))
    named = ['model', *panel_columns(rows, x)]
    lines = [[*(SYMBOLS.get(column, column) for column in named),
              *(f'{symbol} = {length}' for length in lengths), f'exponent of {symbol}']]
    for lanes in split_curves(rows, x):
        names = lanes.iloc[0]
        mine = (summary[curve_columns(x)] == names[curve_columns(x)]).all(axis=1)
        cells = {cell[x]: _cell_text(cell) for _, cell in summary[mine].iterrows()}
        fit = exponent(lanes, x)
        lines.append([*(DISPLAY_NAMES.get(names[column], str(names[column])) for column in named),
                      *(cells.get(length, '–') for length in lengths),
                      str(fit) if fit.value is None or not fit.note else f'{fit} ({fit.note})'])
    return _markdown(lines)


def model_order(rows: pd.DataFrame) -> list[str]:
    """The models in `rows`: the paper's three in their order, then a user's own by name."""
    models = set(rows['model'])
    return [model for model in MODELS if model in models] + sorted(models.difference(MODELS))


def curve_columns(x: str = 'seq_len') -> list[str]:
    """What one curve against `x` has one of: model, task, and the other of (sparsity, seq_len)."""
    return [column for column in _CELL if column != x]


def panel_columns(rows: pd.DataFrame, x: str = 'seq_len') -> list[str]:
    """Which of task and the other of (sparsity, seq_len) `rows` has several of."""
    return [column for column in curve_columns(x)[1:] if rows[column].nunique() > 1]


def split_curves(rows: pd.DataFrame, x: str = 'seq_len') -> list[pd.DataFrame]:
    """The rows of each curve against `x`: by task and sparsity, then models by `model_order`."""
    order = model_order(rows)
    curves = rows.groupby(curve_columns(x), observed=True)
    return [lanes for _, lanes in sorted(curves, key=lambda c: (c[0][1:], order.index(c[0][0])))]


def require(rows: pd.DataFrame, columns: Sequence[str]) -> None:
    """Raises a ValueError that names the columns that `rows` lack, or says that there are none."""
    missing = [column for column in dict.fromkeys(columns) if column not in rows.columns]
    if missing:
        raise ValueError(f'rows lack the columns: {", ".join(missing)}')
    if rows.empty:
        raise ValueError('no rows: the table is empty')


def short_number(value: float) -> str:
    """Samples to three digits, in thousands: 17234 -> '17.2k', 640 -> '640', NaN -> '–'."""
    if np.isnan(value):
        return '–'
    value = float(f'{value:.3g}')
    decimals = max(0, 5 - int(np.log10(max(value, 1))))
    return f'{value:g}' if value < 1000 else f'{value / 1000:.{decimals}f}k'


def _check(rows: pd.DataFrame, by: Sequence[str]) -> None:
    """Raises a ValueError that says in one line what is wrong with the rows."""
    require(rows, (*by, *_MEASURED))
    unknown = sorted(map(str, set(rows['outcome']) - set(OUTCOMES)))
    if unknown:
        raise ValueError(f'unknown outcome {", ".join(unknown)}: not one of {", ".join(OUTCOMES)}')
    if np.isnan(_samples(rows)).any():
        raise ValueError('samples_to_threshold or max_samples is missing where it is needed')
    if rows[list(by)].isna().any(axis=None):
        raise ValueError(f'a lane belongs to no cell: one of {", ".join(by)} is missing')
    # Several learning rates, or one file read twice, would be averaged as if they were repeats.
    twice = rows[rows.duplicated([*by, 'seed'])]
    if not twice.empty:
        cell = rows[(rows[[*by, 'seed']] == twice.iloc[0][[*by, 'seed']]).all(axis=1)]
        differ = [column for column in rows.columns if cell[column].nunique(dropna=False) > 1]
        raise ValueError(f'seed {twice["seed"].iloc[0]} is there {len(cell)} times in one cell of '
                         f'({", ".join(by)}); its rows differ in: {", ".join(differ) or "nothing"}')


def _samples(cell: pd.DataFrame) -> np.ndarray:
    """min(T, max_samples) of the lanes that did not diverge; sorted, so that order is no input."""
    kept = cell[cell['outcome'] != 'diverged']
    samples, budget = (pd.to_numeric(kept[column]).astype('Float64')
                       for column in ('samples_to_threshold', 'max_samples'))
    lanes = samples.where(kept['outcome'] == 'reached', budget)
    if 'min_samples' in kept.columns:
        least = pd.to_numeric(kept['min_samples']).astype('Float64')
        lanes = lanes.where(kept['outcome'] != 'censored_below', least)
    return np.sort(lanes.to_numpy(dtype=float, na_value=np.nan))


def _summary(cell: pd.DataFrame) -> dict:
    """The columns of `summarize` for the lanes of one cell."""
    counts = {f'num_{outcome}': int((cell['outcome'] == outcome).sum()) for outcome in OUTCOMES}
    columns = {'num_lanes': len(cell), **counts}
    columns |= dict.fromkeys(('mean', 'median', 'low', 'high', 'min', 'max'), np.nan)
    columns['lower_bound'] = counts['num_censored'] > 0
    columns['upper_bound'] = counts['num_censored_below'] > 0
    samples = _samples(cell)
    if samples.size:
        columns |= {'mean': samples.mean(), 'min': samples[0], 'max': samples[-1]}
    if samples.size > 1:
        low, high = _interval(_resample(samples, np.random.default_rng(0)))
        columns['low'] = np.nan if columns['upper_bound'] else low
        columns['high'] = np.nan if columns['lower_bound'] else high
    if 2 * (counts['num_reached'] + counts['num_censored_below']) > len(cell):
        reached = _samples(cell[cell['outcome'].isin(('reached', 'censored_below'))])
        columns['median'] = np.median([*reached, *[np.inf] * (len(cell) - reached.size)])
    return columns


def _resample(samples: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """(num_draws,) means over as many lanes, drawn with replacement."""
    return rng.choice(samples, size=(_NUM_DRAWS, samples.size)).mean(axis=1)


def _interval(draws: np.ndarray) -> tuple[float, float]:
    """The middle 95% of (num_draws,)."""
    low, high = np.percentile(draws, [2.5, 97.5])
    return float(low), float(high)


def _slope(log_x: np.ndarray, log_y: np.ndarray) -> np.ndarray:
    """Least-squares slope of log_y (..., num_lengths) against log_x (num_lengths,)."""
    centred = log_x - log_x.mean()
    return log_y @ centred / (centred @ centred)


def _is_usable(cell: pd.DataFrame) -> bool:
    """Whether all lanes reached, and trained before they did: 0 samples have no logarithm."""
    return bool((cell['outcome'] == 'reached').all()) and _samples(cell)[0] > 0


def _why_none(rows: pd.DataFrame, num_lengths: int, left_out: tuple, symbol: str) -> str:
    if not (rows['outcome'] == 'reached').any():
        return 'threshold not reached'
    where = f'of {num_lengths + len(left_out)} {symbol} fully reached' if left_out else symbol
    return f'only {num_lengths} {where}, {_MIN_LENGTHS} needed'


def _caveats(lanes: dict[int, np.ndarray], left_out: tuple, symbol: str) -> str:
    notes = []
    single = [length for length, samples in lanes.items() if samples.size == 1]
    if left_out:
        notes.append(f'without {symbol} = {", ".join(map(str, left_out))}: not all reached')
    if len(single) == len(lanes):
        notes.append('one lane each: no interval')
    elif single:
        notes.append(f'one lane at {symbol} = {", ".join(map(str, single))}: interval too narrow')
    return '; '.join(notes)


def _cell_text(cell: pd.Series) -> str:
    """'17.2k (16.1k–18.0k)', '≥ 1000k', '–'; with the number of diverged lanes, if any."""
    text = short_number(cell['mean'])
    if cell['lower_bound']:
        some = f' ({cell["num_reached"]} of {cell["num_lanes"]} reached)'
        text = f'≥ {text}{some if cell["num_reached"] else ""}'
    elif cell['upper_bound']:
        text = f'≤ {text}'
    elif not np.isnan(cell['low']):
        text += f' ({short_number(cell["low"])}–{short_number(cell["high"])})'
    return f'{text}, {cell["num_diverged"]} diverged' if cell['num_diverged'] else text


def _markdown(lines: list[list[str]]) -> str:
    """An aligned Markdown table of `lines` (the header first)."""
    lines = [[text.replace('|', '\\|') for text in line] for line in lines]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    lines.insert(1, ['-' * width for width in widths])
    return ''.join('| ' + ' | '.join(map(str.ljust, line, widths)) + ' |\n' for line in lines)
