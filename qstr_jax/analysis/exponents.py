"""The exponent of a curve: which power of N, or of another setting, the samples are."""

import dataclasses
from typing import Any

import numpy as np
import pandas as pd

from qstr_jax.analysis.curves import only_curve, require
from qstr_jax.analysis.names import heading, value_text
from qstr_jax.analysis.summary import MEASURED, check, interval_of, resample, samples_of

_MIN_POINTS = 3


@dataclasses.dataclass(frozen=True, kw_only=True)
class Exponent:
    """The slope of log(mean samples) against log N, or another setting, with its 95% interval.

    Attributes:
        value: the exponent; None if there is none.
        low: lower end of its interval; None if there is none.
        high: upper end of its interval.
        num_points: number of values of N at which every lane reached the threshold.
        left_out: the other values of N, which the slope was not fitted to.
        note: why there is no value or no interval, or what was left out; '' if there is nothing to say.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    num_points: int = 0
    left_out: tuple = ()
    note: str = ''

    def __str__(self) -> str:
        """'0.62 [0.55, 0.70]', or '0.62' without an interval, or the note without a value."""
        if self.value is None:
            return self.note
        return f'{self.value:.2f}{self.interval}'

    @property
    def interval(self) -> str:
        """' [0.55, 0.70]', or '' without an interval."""
        return '' if self.low is None or self.high is None else f' [{self.low:.2f}, {self.high:.2f}]'


def exponent(rows: pd.DataFrame, x: str = 'seq_len') -> Exponent:
    """The exponent a in samples ~ N^a of one curve: least squares on a log-log scale.

        a = sum_N (log N - c) log T(N) / sum_N (log N - c)^2,
        c = mean over N of log N,   T(N) = mean samples over the lanes at N,

    over those N where every lane reached the threshold, since a censored mean is a bound and no measurement. The 95%
    interval is a percentile bootstrap that resamples the lanes of each N (seeded). With six N and five lanes each it
    covers the exponent about 90% of the time; it does not know whether a power law fits at all.

    Args:
        rows: the lanes of one curve.
        x: the setting on the x axis: 'seq_len', 'sparsity' or any other.

    Returns:
        The exponent; its note says why there is no value (fewer than three usable N, or no number on the x axis) or no
        interval (one lane at each N).

    Raises:
        ValueError: rows that are not lanes of one curve.
    """
    require(rows, ('model', x, *MEASURED))
    only_curve(rows, x)
    check(rows, (x,))
    return fit(rows, x)


def fit(lanes: pd.DataFrame, x: str = 'seq_len') -> Exponent:
    """The exponent of lanes that are known to be one curve; see `exponent`.

    Args:
        lanes: the lanes of one curve.
        x: the setting on the x axis.
    """
    if not pd.api.types.is_numeric_dtype(lanes[x].infer_objects()):
        return Exponent(note=f'no power: {heading(x)} is no number')
    cells = {_number(value): cell for value, cell in lanes.groupby(x)}
    used = {value: samples_of(cell) for value, cell in cells.items() if _is_usable(value, cell)}
    left_out = tuple(value for value in cells if value not in used)
    if len(used) < _MIN_POINTS:
        return Exponent(num_points=len(used), left_out=left_out, note=_why_none(lanes, len(used), left_out, heading(x)))
    log_x = np.log(list(used))
    slope = float(_slope(log_x, np.log([samples.mean() for samples in used.values()])))
    low = high = None
    if max(map(len, used.values())) > 1:
        # One generator per curve: one per N would resample the lanes of all N in step.
        rng = np.random.default_rng(0)
        means = np.stack([resample(samples, rng) for samples in used.values()], axis=-1)
        low, high = interval_of(_slope(log_x, np.log(means)))
    note = _caveats(used, left_out, heading(x))
    return Exponent(value=slope, low=low, high=high, num_points=len(used), left_out=left_out, note=note)


def _number(value: Any) -> int | float:
    """A whole number as an int."""
    return int(value) if float(value).is_integer() else float(value)


def _slope(log_x: np.ndarray, log_y: np.ndarray) -> np.ndarray:
    """Least-squares slope of log_y (..., num_points) against log_x (num_points,)."""
    centred = log_x - log_x.mean()
    return log_y @ centred / (centred @ centred)


def _is_usable(value: float, cell: pd.DataFrame) -> bool:
    """Whether all lanes reached the threshold, and both numbers have a logarithm."""
    return value > 0 and bool((cell['outcome'] == 'reached').all()) and samples_of(cell)[0] > 0


def _why_none(lanes: pd.DataFrame, num_points: int, left_out: tuple, symbol: str) -> str:
    if not (lanes['outcome'] == 'reached').any():
        return 'threshold not reached'
    where = f'of {num_points + len(left_out)} {symbol} reached' if left_out else symbol
    return f'only {num_points} {where}, {_MIN_POINTS} needed'


def _caveats(used: dict[int | float, np.ndarray], left_out: tuple, symbol: str) -> str:
    notes = []
    single = [value for value, samples in used.items() if samples.size == 1]
    if left_out:
        notes.append(f'without {symbol} = {", ".join(map(value_text, left_out))}: not all reached')
    if len(single) == len(used):
        notes.append('one lane each: no interval')
    elif single:
        notes.append(f'one lane at {symbol} = {", ".join(map(value_text, single))}: interval too narrow')
    return '; '.join(notes)
