"""The exponent of a curve: which power of N, or of another setting, the samples are. All exhibits take it from here."""

import dataclasses
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy

from qstr_jax.analysis import erms, laws, line_fit
from qstr_jax.analysis.curves import only_curve, require
from qstr_jax.analysis.log_means import SIDES, LogMeans, log_means
from qstr_jax.analysis.names import heading, value_text
from qstr_jax.analysis.no_retrieval import is_easy
from qstr_jax.analysis.summary import MEASURED, check, samples_or_bound

_MIN_POINTS = 3
# A wider interval holds everything from constant samples to N^5: readers are told that the points are too few for one.
WIDEST = 5.0


class LocalSlope(NamedTuple):
    """The exponent between two neighbouring values of N, with an interval by the noise between lanes.

    Attributes:
        start: the smaller value.
        end: the larger value.
        value: the exponent.
        low: lower end of its interval; NaN where no value has two lanes.
        high: upper end.
    """

    start: float
    end: float
    value: float
    low: float
    high: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class Exponent:
    """The exponent of the samples in N, or another setting, with its 95% interval.

    Attributes:
        value: the exponent; None if there is none.
        low: lower end of its interval; None if there is none.
        high: upper end of its interval.
        num_points: number of values of N that it was fitted to, those with bounds included.
        left_out: the other values of N.
        note: why there is no value, what was left out, or how many lanes are bounds; '' if there is nothing to say.
        local_slopes: exponents between neighbouring values.
        law: N^a or (log N)^p; None where that was not asked or cannot be said.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    num_points: int = 0
    left_out: tuple = ()
    note: str = ''
    local_slopes: tuple[LocalSlope, ...] = ()
    law: laws.Law | None = None

    def __str__(self) -> str:
        """'0.62 [0.55, 0.70]', '0.62' without an interval, or the note without a value; see `interval`."""
        if self.value is None:
            return self.note
        return f'{self.value:.2f}{self.interval}'

    @property
    def interval(self) -> str:
        """' [0.55, 0.70]', '' without an interval, or words in the place of one that is wider than `WIDEST`."""
        if self.low is None or self.high is None:
            return ''
        if self.high - self.low > WIDEST:
            return ' (too few points for an interval)'
        return f' [{self.low:.2f}, {self.high:.2f}]'


def exponent(rows: pd.DataFrame, x: str = 'seq_len') -> Exponent:
    """The exponent a in samples ~ N^a of one curve, by the likelihood of the log samples of its lanes.

        log T_{N,i} = c + a log N + b_N + e_{N,i},   b_N ~ N(0, τ²),   e_{N,i} ~ N(0, σ²)

    b_N is the misfit of the law and e_{N,i} the noise between lanes. A lane that is censored or outraced needs more
    than its bound, one that is censored below needs less, and the likelihood takes them so; so it does with an n* of
    ERMs that is only known to be at most that of the lane (`erms`). Left out are lanes that diverged or are known to be
    no ERMs, and those N where a predictor that ignores t is good enough (`no_retrieval`). The 95% interval is Student's
    with as many degrees of freedom as there are N with measured lanes, less two (`line_fit`); by simulation it covers
    the exponent in 92 to 98% of cases (experiments/benchmarks/coverage.md).

    Args:
        rows: the lanes of one curve.
        x: the setting on the x axis: 'seq_len', 'sparsity' or any other.

    Returns:
        The exponent; its note says why there is no value: fewer than three usable N, or no number on the x axis.

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
    usable, notes = _usable(lanes, x)
    left_out = tuple(_number(value) for value in sorted(set(lanes[x]) - set(usable[x])))
    means = log_means(usable, x) if len(usable) else None
    num_measured = int(means.is_measured.sum()) if means else 0
    if means is None or num_measured < _MIN_POINTS:
        few = [_why_none(usable, num_measured, x)] if means else []
        return Exponent(num_points=num_measured, left_out=left_out, note='; '.join([*few, *notes]))
    log_x = np.log(means.x)
    slope = line_fit.slope(log_x, means.mean, means.variance, means.side)
    return Exponent(
        value=slope.value, low=slope.low, high=slope.high, num_points=len(means.x), left_out=left_out,
        note='; '.join([*notes, *_caveats(usable, x)]), local_slopes=_local_slopes(means),
        law=laws.law(means) if x == 'seq_len' else None,
    )  # fmt: skip


def _usable(lanes: pd.DataFrame, x: str) -> tuple[pd.DataFrame, list[str]]:
    """The lanes that an exponent is fitted to, and in words what was left out."""
    easy, diverged = is_easy(lanes), lanes['outcome'] == 'diverged'
    short = erms.is_short(lanes) & ~easy & ~diverged
    # A threshold that was met before training has no logarithm, and neither has 0 on the x axis.
    impossible = ~diverged & (~(samples_or_bound(lanes) > 0) | ~(lanes[x].astype(float) > 0))
    impossible = impossible.groupby(lanes[x]).transform('max') & ~diverged
    notes = []
    if easy.any():
        notes.append(f'without {_where(lanes[easy], x)}: no retrieval needed')
    if (diverged & ~easy).any():
        notes.append(f'without {int((diverged & ~easy).sum())} lanes that diverged')
    if short.any():
        notes.append(f'without {int(short.sum())} of {len(lanes)} lanes that are no ERMs')
    if (impossible & ~easy).any():
        notes.append(f'without {_where(lanes[impossible & ~easy], x)}: 0 samples were enough')
    return erms.with_bounds(lanes[~easy & ~diverged & ~short & ~impossible]), notes


def _number(value: Any) -> int | float:
    """A whole number as an int."""
    return int(value) if float(value).is_integer() else float(value)


def _where(lanes: pd.DataFrame, x: str) -> str:
    """'N = 4, 8'."""
    return f'{heading(x)} = {", ".join(value_text(_number(value)) for value in sorted(set(lanes[x])))}'


def _why_none(usable: pd.DataFrame, num_points: int, x: str) -> str:
    if not (usable['outcome'] == 'reached').any():
        if (usable['outcome'] == erms.AT_MOST).any():
            return 'n* of ERMs has upper bounds alone'
        all_below = len(usable) > 0 and (usable['outcome'].map(SIDES) < 0).all()
        return 'the fewest samples tried were enough' if all_below else 'threshold not reached'
    num_usable, symbol = usable[x].nunique(), heading(x)
    done = 'known' if (usable['outcome'] == erms.AT_MOST).any() else 'reached'
    where = f'of {num_usable} {symbol} {done}' if num_usable > num_points else symbol
    return f'only {num_points} {where}, {_MIN_POINTS} needed'


def _caveats(usable: pd.DataFrame, x: str) -> list[str]:
    """In words, which lanes are bounds, and where one lane stands alone."""
    notes = []
    bounds = usable['outcome'].map(SIDES) != 0
    if bounds.any():
        notes.append(f'{int(bounds.sum())} of {len(usable)} lanes are bounds ({_where(usable[bounds], x)})')
    counts = usable.groupby(x).size()
    if (counts == 1).all():
        notes.append('one lane each')
    elif (counts == 1).any():
        notes.append(f'one lane at {_where(usable[usable[x].map(counts) == 1], x)}')
    return notes


def _local_slopes(means: LogMeans) -> tuple[LocalSlope, ...]:
    """Exponents between neighbours whose means are both measured."""
    quantile = float(scipy.special.stdtrit(means.degrees, 0.975)) if means.degrees else np.nan
    found = []
    for j in np.flatnonzero(means.is_measured[1:] & means.is_measured[:-1]):
        run = float(np.log(means.x[j + 1] / means.x[j]))
        value = float(means.mean[j + 1] - means.mean[j]) / run
        half = quantile * float(np.sqrt(means.variance[j] + means.variance[j + 1])) / run
        found.append(LocalSlope(float(means.x[j]), float(means.x[j + 1]), value, value - half, value + half))
    return tuple(found)
