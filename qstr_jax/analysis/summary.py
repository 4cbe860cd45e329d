"""Lanes of a cell as one row: how many reached the threshold, their mean and its interval."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from qstr_jax.analysis.curves import CELL, model_order, require

OUTCOMES = ('reached', 'censored', 'censored_below', 'diverged')

_MEASURED = ('seed', 'outcome', 'samples_to_threshold', 'max_samples')
_NUM_DRAWS = 2000


def summarize(rows: pd.DataFrame, by: Sequence[str] = CELL) -> pd.DataFrame:
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
    check(rows, by)
    cells = rows.groupby(list(by), observed=True)
    summary = pd.DataFrame(dict(zip(by, key, strict=True)) | _summary(cell) for key, cell in cells)
    if 'model' in by:
        rank = {model: place for place, model in enumerate(model_order(rows))}
        summary = summary.sort_values('model', key=lambda names: names.map(rank), kind='stable')
    return summary.reset_index(drop=True)


def check(rows: pd.DataFrame, by: Sequence[str]) -> None:
    """Raises a ValueError that says in one line what is wrong with the rows."""
    require(rows, (*by, *_MEASURED))
    unknown = sorted(map(str, set(rows['outcome']) - set(OUTCOMES)))
    if unknown:
        raise ValueError(f'unknown outcome {", ".join(unknown)}: not one of {", ".join(OUTCOMES)}')
    if np.isnan(samples_of(rows)).any():
        raise ValueError('samples_to_threshold or max_samples is missing where it is needed')
    if rows[list(by)].isna().any(axis=None):
        raise ValueError(f'a lane belongs to no cell: one of {", ".join(by)} is missing')
    # Several learning rates, or one file read twice, would be averaged as if they were repeats.
    twice = rows[rows.duplicated([*by, 'seed'])]
    if not twice.empty:
        cell = rows[(rows[[*by, 'seed']] == twice.iloc[0][[*by, 'seed']]).all(axis=1)]
        differ = [column for column in rows.columns if cell[column].nunique(dropna=False) > 1]
        raise ValueError(
            f'seed {twice["seed"].iloc[0]} is there {len(cell)} times in one cell of '
            f'({", ".join(by)}); its rows differ in: {", ".join(differ) or "nothing"}'
        )


def samples_of(cell: pd.DataFrame) -> np.ndarray:
    """min(T, max_samples) of the lanes that did not diverge; sorted, so that order is no input."""
    kept = cell[cell['outcome'] != 'diverged']
    samples, budget = (
        pd.to_numeric(kept[column]).astype('Float64') for column in ('samples_to_threshold', 'max_samples')
    )
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
    samples = samples_of(cell)
    if samples.size:
        columns |= {'mean': samples.mean(), 'min': samples[0], 'max': samples[-1]}
    if samples.size > 1:
        low, high = interval_of(resample(samples, np.random.default_rng(0)))
        columns['low'] = np.nan if columns['upper_bound'] else low
        columns['high'] = np.nan if columns['lower_bound'] else high
    if 2 * (counts['num_reached'] + counts['num_censored_below']) > len(cell):
        reached = samples_of(cell[cell['outcome'].isin(('reached', 'censored_below'))])
        columns['median'] = np.median([*reached, *[np.inf] * (len(cell) - reached.size)])
    return columns


def resample(samples: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """(num_draws,) means over as many lanes, drawn with replacement."""
    return rng.choice(samples, size=(_NUM_DRAWS, samples.size)).mean(axis=1)


def interval_of(draws: np.ndarray) -> tuple[float, float]:
    """The middle 95% of (num_draws,)."""
    low, high = np.percentile(draws, [2.5, 97.5])
    return float(low), float(high)
