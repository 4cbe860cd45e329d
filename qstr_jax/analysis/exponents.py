"""The exponent of a curve: which power of N, or of another setting, the samples are. All exhibits take it from here.

Its interval is that of `line_fit.slope`.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from qstr_jax.analysis import erms, laws, learning, line_fit, resolution
from qstr_jax.analysis.curves import Curve, only_curve, require
from qstr_jax.analysis.log_means import LogMeans, log_means, sides
from qstr_jax.analysis.measured import Measured, measured
from qstr_jax.analysis.names import heading, value_text
from qstr_jax.analysis.summary import MEASURED, Share, check, point_of, share

MIN_POINTS = 3
# Where some N have this many lanes, N with fewer are left out.
MIN_LANES = 3
# A wider interval holds everything from constant samples to N^5; then readers are told that there are too few points.
WIDEST = 5.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Exponent:
    """The exponent of the samples in N, or another setting, given that lanes learn, with its 95% interval.

    Attributes:
        value: the exponent; None if there is none.
        low: lower end of its interval; None if there is none.
        high: upper end of its interval.
        interval_by: what the interval holds, `line_fit.BY_MISFIT` or, for three values of N, `line_fit.BY_NOISE`; ''
            if there is none.
        left_out: the other values of N.
        fitted_to: which lanes it was fitted to, 'all lanes', 'lanes that learn' or 'ERMs', and how many are bounds.
        bounds_at: the values of N at which all lanes are bounds.
        learn: how many of the curve's lanes learn within their budget; None if it has no lanes.
        note: why there is no value, what was left out, or how many lanes are bounds; '' if there is nothing to say.
        local_slopes: exponents between neighbouring values whose means are both measured.
        law: N^a or (log N)^p; None where that was not asked or cannot be said.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    interval_by: str = ''
    left_out: tuple = ()
    fitted_to: str = ''
    bounds_at: tuple = ()
    learn: Share | None = None
    note: str = ''
    local_slopes: tuple[float, ...] = ()
    law: laws.Law | None = None

    def __str__(self) -> str:
        """'0.62 [0.55, 0.70]', '0.62' without an interval, or the note without a value."""
        if self.value is None:
            return self.note
        return ' '.join(part for part in (f'{self.value:.2f}', self.interval_text) if part)

    @property
    def with_note(self) -> str:
        """As `str`, with the note in brackets behind a value."""
        return f'{self} ({self.note})' if self.value is not None and self.note else str(self)

    @property
    def interval_text(self) -> str:
        """'[0.55, 0.70]', '[0.55, 0.70 by lane noise alone]', '', or words for one that is wider than `WIDEST`."""
        if self.low is None or self.high is None:
            return ''
        if self.high - self.low > WIDEST:
            return '(too few points for an interval)'
        by = f' by {self.interval_by}' if self.interval_by == line_fit.BY_NOISE else ''
        return f'[{self.low:.2f}, {self.high:.2f}{by}]'


def exponent(rows: pd.DataFrame, x: str = 'seq_len') -> Exponent:
    """The exponent a in samples ~ N^a of one curve, by the likelihood of the log samples of its lanes.

        log T_{N,i} = c + a log N + b_N + e_{N,i},   b_N ~ N(0, τ²),   e_{N,i} ~ N(0, σ²)

    b_N is the misfit of the law, e_{N,i} the noise between lanes. It is the exponent of lanes that learn; their share
    stands beside it. A lane that used up its budget is a bound where lanes that learn come near the budget. Elsewhere
    it is a failure (`learning`) and is left out, as is a lane that diverged. Bounds enter the likelihood as bounds: an
    outraced lane needs more samples, a lane that is censored below needs fewer, and an n* of ERMs may be known only to
    be at most that of the lane (`erms`). Also left out are lanes that are known to be no ERMs, searches that end with a
    training risk above the threshold, N with fewer than three lanes where others have three, and those N where a
    predictor that ignores t is good enough (`no_retrieval`). The 95% interval is Student's; its degrees of freedom are
    the number of N with measured lanes, less two. With three N it is the interval by lane noise alone (`line_fit`).
    experiments/benchmarks/coverage.md says how often it covers the exponent.

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
    """The exponent of lanes that are known to be one curve; see `exponent`."""
    if not _is_number(lanes[x]):
        return Exponent(note=f'no power: {heading(x)} is no number')
    return _fit(measured(lanes, x), x)


def fits(curves: Sequence[Curve], rows: pd.DataFrame, x: str = 'seq_len') -> list[Exponent]:
    """The exponent in `x` of each of some curves (`split_curves`); their table is read once."""
    if not _is_number(rows[x]):
        return [fit(curve.lanes, x) for curve in curves]
    lanes = measured(rows, x)
    return [_fit(lanes.at(curve.places), x) for curve in curves]


def _is_number(values: pd.Series) -> bool:
    return bool(pd.api.types.is_numeric_dtype(values.infer_objects()))


def _fit(lanes: Measured, x: str) -> Exponent:
    """The exponent of lanes as arrays."""
    is_usable, notes = _usable(lanes, x)
    is_failure = np.zeros(len(lanes), bool)
    is_failure[is_usable] = learning.is_failure(lanes.at(is_usable))
    if is_failure.any():
        never = 'never learn' if is_failure.sum() > 1 else 'never learns'
        notes.append(f'without {_lanes(int(is_failure.sum()))} that {never} ({_where(lanes.x[is_failure], x)})')
    is_learner = is_usable & ~is_failure
    learners = lanes.at(is_learner)
    left_out = tuple(_number(value) for value in sorted(set(lanes.x) - set(learners.x)))
    learn = share(lanes.outcome[~lanes.is_easy].tolist())
    means = log_means(learners) if len(learners) else None
    num_measured = int(means.is_measured.sum()) if means else 0
    if means is None or num_measured < MIN_POINTS:
        few = [_why_none(learners, num_measured, x)] if means else []
        note = '; '.join([*few, *notes, *_coarse(lanes, x)])
        return Exponent(left_out=left_out, learn=learn, note=note)
    found = line_fit.slope(np.log(means.x), means)
    interval: dict[str, Any] = {'low': found.low, 'high': found.high, 'interval_by': found.by} if found.by else {}
    if not found.by and means.degrees:
        what = 'the three means' if means.is_measured.all() else 'means and bounds'
        notes.append(f'no interval: {what} do not lie on a line')
    return Exponent(
        value=found.value, **interval, left_out=left_out, learn=learn,
        fitted_to=_fitted_to(learners, lanes.at(~is_learner)),
        bounds_at=tuple(_number(value) for value in means.x[~means.is_measured]),
        note='; '.join([*notes, *_caveats(learners, x), *_coarse(lanes, x)]), local_slopes=_local_slopes(means),
        law=laws.law(means) if x == 'seq_len' else None,
    )  # fmt: skip


def _fitted_to(learners: Measured, others: Measured) -> str:
    """'all lanes', or 'lanes that learn, 2 as bounds', or 'ERMs'."""
    num_bounds = int((sides(learners) != 0).sum())
    fails = others.has('censored', 'diverged', erms.UNFITTED) & ~others.is_short
    is_short = others.is_short.any()
    lanes = ('ERMs that learn' if is_short else 'lanes that learn') if fails.any() else ('ERMs' if is_short else '')
    return (lanes or 'all lanes') + (f', {num_bounds} as bounds' if num_bounds else '')


def _usable(lanes: Measured, x: str) -> tuple[np.ndarray, list[str]]:
    """Which lanes an exponent is fitted to, and what was left out, in words."""
    easy, diverged = lanes.is_easy, lanes.has('diverged')
    short = lanes.is_short & ~easy & ~diverged
    unfitted = lanes.has(erms.UNFITTED) & ~easy & ~short
    # A threshold that was met before training has no logarithm, and neither has 0 on the x axis.
    at_once = np.isin(lanes.x, lanes.x[~diverged & ~(lanes.samples > 0)]) & ~diverged
    is_zero = ~(lanes.x > 0) & ~diverged
    _, place = np.unique(lanes.x, return_inverse=True)
    counts = np.bincount(place, weights=~(short | unfitted))
    thin = (counts < MIN_LANES)[place] if counts.max(initial=0) >= MIN_LANES else np.zeros(len(lanes), bool)
    notes = []
    if (thin & ~easy).any():
        notes.append(f'without {_where(lanes.x[thin & ~easy], x)}: fewer than {MIN_LANES} lanes')
    if easy.any():
        notes.append(f'without {_where(lanes.x[easy], x)}: no retrieval needed')
    if (diverged & ~easy).any():
        notes.append(f'without {_lanes(int((diverged & ~easy).sum()))} that diverged')
    if short.any():
        notes.append(f'without {int(short.sum())} of {len(lanes)} lanes, which are no ERMs')
    if unfitted.any():
        notes.append(
            f'without {_lanes(int(unfitted.sum()))} with an unfitted training set ({_where(lanes.x[unfitted], x)})'
        )
    if (at_once & ~easy).any():
        notes.append(f'without {_where(lanes.x[at_once & ~easy], x)}: 0 samples were enough')
    if (is_zero & ~at_once & ~easy).any():
        notes.append(f'without {_where(lanes.x[is_zero & ~at_once & ~easy], x)}, which has no logarithm')
    return ~easy & ~diverged & ~short & ~unfitted & ~at_once & ~is_zero & ~thin, notes


def _lanes(count: int) -> str:
    """'1 lane', '2 lanes'."""
    return f'{count} lane{"s" if count > 1 else ""}'


def _number(value: Any) -> int | float:
    """A whole number as an int."""
    return int(value) if float(value).is_integer() else float(value)


def _where(values: np.ndarray, x: str) -> str:
    """'N = 4, 8'."""
    return f'{heading(x)} = {", ".join(value_text(_number(value)) for value in np.unique(values))}'


def _why_none(usable: Measured, num_points: int, x: str) -> str:
    if not usable.has('reached').any():
        if usable.has(erms.AT_MOST).any():
            return 'n* of ERMs has upper bounds alone'
        all_below = len(usable) > 0 and (sides(usable) < 0).all()
        return 'the fewest samples tried were enough' if all_below else 'threshold not reached'
    num_usable, symbol = len(np.unique(usable.x)), heading(x)
    done = 'known' if usable.has(erms.AT_MOST).any() else 'reached'
    where = f'of {num_usable} {symbol} {done}' if num_usable > num_points else symbol
    return f'only {num_points} {where}, {MIN_POINTS} needed'


def _caveats(usable: Measured, x: str) -> list[str]:
    """Says which lanes are bounds, and at which N there is only one lane."""
    notes = []
    bounds = sides(usable) != 0
    if bounds.any():
        notes.append(f'{int(bounds.sum())} of {len(usable)} lanes are bounds ({_where(usable.x[bounds], x)})')
    values, counts = np.unique(usable.x, return_counts=True)
    if (counts == 1).all():
        notes.append('one lane each')
    elif (counts == 1).any():
        notes.append(f'one lane at {_where(values[counts == 1], x)}')
    return notes


def _coarse(lanes: Measured, x: str) -> list[str]:
    """Says at which N means are one to three checks."""
    coarse = [value for value in np.unique(lanes.x) if point_of(lanes.at(lanes.x == value))['is_coarse']]
    steps = lanes.step[np.isin(lanes.x, coarse)]
    return [f'{resolution.note_of(steps)} ({_where(np.array(coarse), x)})'] if coarse else []


def _local_slopes(means: LogMeans) -> tuple[float, ...]:
    """Exponents between neighbours whose means are both measured."""
    slopes = np.diff(means.mean) / np.diff(np.log(means.x))
    return tuple(slopes[means.is_measured[1:] & means.is_measured[:-1]].tolist())
