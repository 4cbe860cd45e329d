"""Lanes that recorded the samples at several thresholds: a row for each, as a run to that threshold would have it."""

import math

import pandas as pd

from qstr_jax import columns
from qstr_jax.analysis import resolution

# Measures that do not change while a lane trains.
_CONSTANT = ('num_parameters', 'backend', 'lanes_per_batch', 'encoding_coherence', 'encoding_equal_pairs',
             'encoding_redraws', 'no_retrieval')  # fmt: skip
# A lane with a smaller threshold just runs to the end of its budget.
_LEAST_THRESHOLD = 1e-6


def loss_thresholds(rows: pd.DataFrame) -> pd.Series:
    """The test loss at which each lane ends; NaN where its error rate ends it, or where it cannot reach such a loss."""
    if 'threshold' not in rows.columns:
        return pd.Series(math.nan, rows.index)
    is_loss = rows['threshold'].gt(_LEAST_THRESHOLD) & ~resolution.is_of_rate(rows)
    return rows['threshold'].astype(float).where(is_loss)


def shared_loss_threshold(rows: pd.DataFrame) -> float | None:
    """The test loss at which all lanes end; None if there is no such loss."""
    found = loss_thresholds(rows).unique()
    return float(found[0]) if len(found) == 1 and not math.isnan(found[0]) else None


def has_crossings(rows: pd.DataFrame) -> bool:
    """Whether some lanes recorded several thresholds."""
    return 'crossings' in rows.columns and bool(rows['crossings'].notna().any())


def at_thresholds(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per lane and threshold, with the threshold, samples and outcome of a run to that threshold.

    Where a lane crossed a threshold on its way, what was measured at the lane's end is missing. Rows without crossings
    stay as they are.
    """
    if not has_crossings(rows):
        return rows
    table = rows.assign(crossings=rows['crossings'].str.split(' ')).explode('crossings', ignore_index=True)
    parts = table['crossings'].str.extract(r'^(?P<threshold>[\d.e+-]+):(?P<samples>\d*)$')
    is_given = table['crossings'].notna()
    if parts['threshold'][is_given].isna().any():
        bad = table['crossings'][is_given & parts['threshold'].isna()].iloc[0]
        raise ValueError(f'crossings {bad!r}: must be a threshold and its samples, as 0.7:12800')
    threshold = pd.to_numeric(parts['threshold'])
    is_earlier = is_given & (threshold > table['threshold'])
    is_crossed = is_earlier & parts['samples'].ne('')
    table = table.drop(columns=['crossings', 'thresholds'], errors='ignore')
    table['threshold'] = table['threshold'].mask(is_earlier, threshold)
    return _ended(table, is_crossed, pd.to_numeric(parts['samples']))


def _ended(table: pd.DataFrame, is_crossed: pd.Series, samples: pd.Series) -> pd.DataFrame:
    """The rows, some of which ended when they crossed their threshold."""
    samples = samples.astype('Int64')
    table['outcome'] = table['outcome'].mask(is_crossed, 'reached')
    if resolution.CROSSING in table.columns:
        table[resolution.CROSSING] = table[resolution.CROSSING].mask(is_crossed)
    for name in 'num_samples', 'samples_to_threshold':
        if name in table.columns:
            table[name] = table[name].astype('Int64').mask(is_crossed, samples)
    for name in table.columns:
        if columns.get(name).role == 'measure' and columns.is_declared(name) and name not in _CONSTANT:
            table[name] = table[name].mask(is_crossed)
    return table
