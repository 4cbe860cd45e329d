"""One row for all lanes of a point, which differ only in their seeds: counts, the share that learns, their mean."""

import collections
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy

from qstr_jax.analysis import erms, resolution
from qstr_jax.analysis.curves import places_of, point_columns, require
from qstr_jax.analysis.measured import Measured, measured, samples_or_bound
from qstr_jax.analysis.names import model_order

OUTCOMES = ('reached', 'censored', 'outraced', 'censored_below', 'diverged')
# Lanes that needed more samples than they were given.
NEED_MORE = ('censored', 'outraced')
# Lanes that learned within their budget.
LEARNED = ('reached', 'censored_below', erms.AT_MOST)

# What every lane has, beside its settings.
MEASURED = ('seed', 'outcome', 'samples_to_threshold', 'max_samples')


class Share(NamedTuple):
    """How many lanes learn within their budget, with the exact 95% interval of the share (Clopper and Pearson)."""

    num_learn: int
    num_lanes: int  # lanes that learn, use up their budget or diverge; outraced ones say nothing
    low: float  # lower end of the interval
    high: float

    def __str__(self) -> str:
        """'3 of 5 learn'."""
        return f'{self.num_learn} of {self.num_lanes} learn'


def share(outcomes: Sequence[str]) -> Share:
    """The share of lanes that learn."""
    total, some = sum(one != 'outraced' for one in outcomes), sum(one in LEARNED for one in outcomes)
    low = float(scipy.special.betaincinv(some, total - some + 1, 0.025)) if some else 0.0
    high = float(scipy.special.betaincinv(some + 1, total - some, 0.975)) if some < total else 1.0
    return Share(some, total, low, high)


def summarize(rows: pd.DataFrame, by: Sequence[str] | None = None) -> pd.DataFrame:
    """Counts, the share that learns, and the mean samples of the lanes that learn, for each point.

    The mean is geometric: exponents and figures take the logarithms of samples. It is that of the lanes that learn; a
    lane that used up its budget or diverged counts only in the share that learns. An outraced lane enters with the
    samples that it used, so the mean is a lower bound: `lower_bound` is then True, and `high` is missing because
    nothing bounds the mean from above. Where no lane learns, the mean is that of the budgets, also a lower bound. A
    search that did not fit its training set is in no mean. A lane that is censored below enters with `min_samples`, so
    the mean is an upper bound: `upper_bound` is True and `low` is missing. The same holds where n* of ERMs is only
    known to be at most a lane's n* (`erms.is_at_most`). As in figures and exponents, a fit that is known to be no ERM
    is in no mean.

    Args:
        rows: one row per lane, with the columns of `by` and seed, outcome, samples_to_threshold and max_samples, and
            num_samples of outraced lanes.
        by: the columns that make a point; by default those of `point_columns`.

    Returns:
        The columns of `by`; num_lanes, num_reached, num_censored, num_outraced, num_censored_below, num_diverged;
        num_learn of num_judged lanes that learn, learn_low and learn_high (95% interval of their share, `share`);
        num_short, lanes that are no ERMs; num_unfitted, searches that did not fit their training set; mean, low, high,
        min, max in samples, NaN where there is none; lower_bound, upper_bound; is_coarse, whether the mean is one to
        three checks (`resolution`). [low, high] is the 95% interval of the mean, Student's of the log samples of this
        point, NaN for a single lane.

    Raises:
        ValueError: no rows, missing columns, an unknown outcome, or one lane twice at a point.
    """
    require(rows, ('model', *MEASURED) if by is None else (*by, *MEASURED))
    by = point_columns(rows) if by is None else list(by)
    check(rows, by)
    points, lanes = places_of(rows.groupby(by, observed=True, dropna=False)), measured(rows)
    keys = rows[by].iloc[[places[0] for places in points]].to_dict('records')
    summary = pd.DataFrame(key | point_of(lanes.at(own)) for key, own in zip(keys, points, strict=True))
    if 'model' in by:
        rank = {model: place for place, model in enumerate(model_order(rows))}
        summary = summary.sort_values('model', key=lambda names: names.map(rank), kind='stable')
    return summary.reset_index(drop=True)


def check(rows: pd.DataFrame, by: Sequence[str]) -> None:
    """Checks that rows are lanes, each once."""
    require(rows, (*by, *MEASURED))
    unknown = sorted(map(str, set(rows['outcome']) - set(OUTCOMES)))
    if unknown:
        raise ValueError(f'unknown outcome {", ".join(unknown)}: not one of {", ".join(OUTCOMES)}')
    if samples_or_bound(rows[rows['outcome'] != 'diverged']).isna().any():
        raise ValueError('samples_to_threshold, max_samples, min_samples or num_samples is missing where it is needed')
    if 'model' in rows.columns and rows['model'].isna().any():
        raise ValueError('a lane without a model: the column is empty there')
    # Several learning rates, or one file read twice, would be averaged as if they were repeats.
    lane = [*by, *rows.columns.intersection(['seed', 'task_seed'])]
    twice = rows.duplicated(lane, keep=False)
    if twice.any():
        points = rows[twice].groupby(lane, dropna=False, sort=False)
        lanes = rows[twice][points.ngroup() == 0]
        differ = [column for column in rows.columns if lanes[column].nunique(dropna=False) > 1]
        raise ValueError(
            f'seed {lanes["seed"].iloc[0]} is there {len(lanes)} times at one point of '
            f'({", ".join(by)}); its rows differ in: {", ".join(differ) or "nothing"}'
        )


def point_of(lanes: Measured) -> dict[str, Any]:
    """The columns of `summarize` for the lanes of one point."""
    outcomes = lanes.outcome.tolist()
    learn, counts = share(outcomes), collections.Counter(outcomes)
    counts['reached'] += counts[erms.AT_MOST]
    counts['censored'] += counts[erms.UNFITTED]
    found: dict[str, Any] = {'num_lanes': len(lanes)}
    found |= {f'num_{outcome}': counts[outcome] for outcome in OUTCOMES}
    found |= dict(zip(('num_learn', 'num_judged', 'learn_low', 'learn_high'), learn, strict=True))
    counted = lanes.has(*((*LEARNED, 'outraced') if learn.num_learn or counts['outraced'] else NEED_MORE))
    counted &= ~lanes.is_short
    found |= geometric(np.sort(lanes.samples[counted]))
    found['num_short'], found['num_unfitted'] = int(lanes.is_short.sum()), counts[erms.UNFITTED]
    found['lower_bound'] = bool((counted & lanes.has(*NEED_MORE)).any())
    found['upper_bound'] = bool((counted & lanes.has('censored_below', erms.AT_MOST)).any())
    found['low'] = np.nan if found['upper_bound'] else found['low']
    found['high'] = np.nan if found['lower_bound'] else found['high']
    found['is_coarse'] = bool(learn.num_learn and (found['mean'] <= resolution.COARSE * lanes.step).any())
    return found


def geometric(samples: np.ndarray) -> dict[str, float]:
    """Geometric mean of sorted samples with its interval, the smallest and the largest."""
    if not samples.size:
        return dict.fromkeys(('mean', 'low', 'high', 'min', 'max'), np.nan)
    found = {'mean': 0.0, 'low': np.nan, 'high': np.nan, 'min': samples[0], 'max': samples[-1]}
    if samples[0] <= 0:  # A threshold that was met before training.
        return found
    logs = np.log(samples)
    found['mean'] = np.exp(logs.mean())
    if samples.size > 1:
        half = scipy.special.stdtrit(samples.size - 1, 0.975) * logs.std(ddof=1) / np.sqrt(samples.size)
        found |= {'low': np.exp(logs.mean() - half), 'high': np.exp(logs.mean() + half)}
    return found
