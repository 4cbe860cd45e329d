"""The exponent of a curve: which power of N, or of q, the samples are."""

import dataclasses

import numpy as np
import pandas as pd

from qstr_jax.analysis.curves import CELL, SYMBOLS, curve_columns
from qstr_jax.analysis.summary import check, interval_of, resample, samples_of

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
    check(rows, CELL)
    for column in curve_columns(x):
        if rows[column].nunique() > 1:
            raise ValueError(f'rows of several curves: {column} {sorted(set(rows[column]))}')
    cells = {int(length): cell for length, cell in rows.groupby(x, observed=True)}
    lanes = {length: samples_of(cell) for length, cell in cells.items() if _is_usable(cell)}
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
        means = np.stack([resample(samples, rng) for samples in lanes.values()], axis=-1)
        low, high = interval_of(_slope(log_x, np.log(means)))
    note = _caveats(lanes, left_out, SYMBOLS.get(x, x))
    return Exponent(value, low, high, len(lanes), left_out, note)


def _slope(log_x: np.ndarray, log_y: np.ndarray) -> np.ndarray:
    """Least-squares slope of log_y (..., num_lengths) against log_x (num_lengths,)."""
    centred = log_x - log_x.mean()
    return log_y @ centred / (centred @ centred)


def _is_usable(cell: pd.DataFrame) -> bool:
    """Whether all lanes reached, and trained before they did: 0 samples have no logarithm."""
    return bool((cell['outcome'] == 'reached').all()) and samples_of(cell)[0] > 0


def _why_none(rows: pd.DataFrame, num_lengths: int, left_out: tuple, symbol: str) -> str:
    if not (rows['outcome'] == 'reached').any():
        return 'threshold not reached'
    where = f'of {num_lengths + len(left_out)} {symbol} reached' if left_out else symbol
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
