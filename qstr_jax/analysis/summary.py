"""One row for all lanes of a point, which differ in their seeds alone: counts, mean and its interval."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from qstr_jax.analysis import erms
from qstr_jax.analysis.curves import point_columns, require
from qstr_jax.analysis.names import model_order

OUTCOMES = ('reached', 'censored', 'outraced', 'censored_below', 'diverged')
# Lanes that needed more samples than they were given.
NEED_MORE = ('censored', 'outraced')

# What every lane has, beside its settings.
MEASURED = ('seed', 'outcome', 'samples_to_threshold', 'max_samples')
_NUM_DRAWS = 2000
# A column of the samples of each lane.
_SAMPLES = '_samples'


def summarize(rows: pd.DataFrame, by: Sequence[str] | None = None) -> pd.DataFrame:
    """Counts, mean and interval of the lanes of each point.

    A censored lane counts as its budget, so the mean is a lower bound: `lower_bound` is then True, and `high` is
    missing because nothing bounds the mean from above. An outraced lane counts as its samples, with the same effect. A
    lane that is censored below counts as `min_samples`; `upper_bound` and `low` say so in the same way, and do so for
    an n* that n* of ERMs is at most (`erms.is_at_most`). A diverged lane is counted, but it has no number of samples
    and is left out of mean, low, high, min and max.

    Args:
        rows: one row per lane, with the columns of `by` and seed, outcome, samples_to_threshold and max_samples, and
            num_samples of outraced lanes.
        by: the columns that make a point; by default those of `point_columns`.

    Returns:
        The columns of `by`; num_lanes, num_reached, num_censored, num_outraced, num_censored_below, num_diverged; mean,
        median, low, high, min, max in samples, NaN where there is none; lower_bound, upper_bound. [low, high] is the
        95% interval of the mean over lanes (percentile bootstrap, seeded), NaN for a single lane. It is too narrow for
        few lanes: with five it covers the mean about 83% of the time. The median takes lanes that did not reach as
        infinite, and is NaN if they are half of the lanes or more.

    Raises:
        ValueError: no rows, missing columns, an unknown outcome, or one seed twice at a point.
    """
    require(rows, ('model', *MEASURED) if by is None else (*by, *MEASURED))
    by = point_columns(rows) if by is None else list(by)
    check(rows, by)
    points = rows.assign(**{_SAMPLES: samples_or_bound(rows)}).groupby(by, observed=True, dropna=False)
    summary = pd.DataFrame(dict(zip(by, key, strict=True)) | _summary(lanes) for key, lanes in points)
    if 'model' in by:
        rank = {model: place for place, model in enumerate(model_order(rows))}
        summary = summary.sort_values('model', key=lambda names: names.map(rank), kind='stable')
    return summary.reset_index(drop=True)


def check(rows: pd.DataFrame, by: Sequence[str]) -> None:
    """Checks that rows are lanes, each once.

    Args:
        rows: one row per lane.
        by: the columns that make a point.

    Raises:
        ValueError: in one line, what is wrong.
    """
    require(rows, (*by, *MEASURED))
    unknown = sorted(map(str, set(rows['outcome']) - set(OUTCOMES)))
    if unknown:
        raise ValueError(f'unknown outcome {", ".join(unknown)}: not one of {", ".join(OUTCOMES)}')
    if np.isnan(samples_of(rows)).any():
        raise ValueError('samples_to_threshold, max_samples, min_samples or num_samples is missing where it is needed')
    if 'model' in rows.columns and rows['model'].isna().any():
        raise ValueError('a lane without a model: the column is empty there')
    # Several learning rates, or one file read twice, would be averaged as if they were repeats.
    twice = rows.duplicated([*by, 'seed'], keep=False)
    if twice.any():
        points = rows[twice].groupby([*by, 'seed'], dropna=False, sort=False)
        lanes = rows[twice][points.ngroup() == 0]
        differ = [column for column in rows.columns if lanes[column].nunique(dropna=False) > 1]
        raise ValueError(
            f'seed {lanes["seed"].iloc[0]} is there {len(lanes)} times at one point of '
            f'({", ".join(by)}); its rows differ in: {", ".join(differ) or "nothing"}'
        )


def samples_of(lanes: pd.DataFrame) -> np.ndarray:
    """Samples of the lanes that did not diverge, or the bound where a lane is censored; sorted.

    Args:
        lanes: as for `samples_or_bound`.
    """
    return np.sort(samples_or_bound(lanes[lanes['outcome'] != 'diverged']).to_numpy())


def samples_or_bound(lanes: pd.DataFrame) -> pd.Series:
    """Samples to the threshold of each lane, or the bound where a lane is censored; NaN where a lane diverged.

    Args:
        lanes: rows with outcome, samples_to_threshold and max_samples; min_samples for searches, and num_samples where
            lanes are outraced.
    """
    bounds = {'reached': 'samples_to_threshold', 'censored': 'max_samples', 'outraced': 'num_samples',
              'censored_below': 'min_samples', erms.AT_MOST: 'samples_to_threshold'}  # fmt: skip
    found = pd.Series(np.nan, lanes.index)
    for outcome, column in bounds.items():
        if column in lanes.columns:
            numbers = pd.to_numeric(lanes[column]).astype('Float64').astype(float)
            found = found.where(lanes['outcome'] != outcome, numbers)
    return found


def resample(samples: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Means of lanes that are drawn with replacement, as many as there are.

    Args:
        samples: one number per lane.
        rng: random numbers.

    Returns:
        The means, one per draw.
    """
    return rng.choice(samples, size=(_NUM_DRAWS, samples.size)).mean(axis=1)


def interval_of(draws: np.ndarray) -> tuple[float, float]:
    """The middle 95% of some draws.

    Args:
        draws: one number per draw.
    """
    low, high = np.percentile(draws, [2.5, 97.5])
    return float(low), float(high)


def _summary(lanes: pd.DataFrame) -> dict[str, Any]:
    """The columns of `summarize` for the lanes of one point."""
    outcomes, numbers = lanes['outcome'].to_numpy(), lanes[_SAMPLES].to_numpy()
    counts = {f'num_{outcome}': int((outcomes == outcome).sum()) for outcome in OUTCOMES}
    found: dict[str, Any] = {'num_lanes': len(lanes), **counts}
    found |= dict.fromkeys(('mean', 'median', 'low', 'high', 'min', 'max'), np.nan)
    found['lower_bound'] = any(counts[f'num_{outcome}'] for outcome in NEED_MORE)
    found['upper_bound'] = counts['num_censored_below'] > 0 or bool(erms.is_at_most(lanes).any())
    samples = np.sort(numbers[outcomes != 'diverged'])
    if samples.size:
        found |= {'mean': samples.mean(), 'min': samples[0], 'max': samples[-1]}
    if samples.size > 1:
        low, high = interval_of(resample(samples, np.random.default_rng(0)))
        found['low'] = np.nan if found['upper_bound'] else low
        found['high'] = np.nan if found['lower_bound'] else high
    if 2 * (counts['num_reached'] + counts['num_censored_below']) > len(lanes):
        reached = numbers[np.isin(outcomes, ('reached', 'censored_below'))]
        found['median'] = np.median([*reached, *[np.inf] * (len(lanes) - reached.size)])
    return found
