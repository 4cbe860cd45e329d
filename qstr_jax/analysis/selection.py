"""Choosing hyperparameters on validation prompts, and what the choice is worth.

Hyperparameters are lanes. Rows of a sweep over several of them become rows with one setting per cell, chosen by the
validation losses of all seeds together, and a table of how much the choice matters.
"""

import numpy as np
import pandas as pd

from qstr_jax import analysis

HYPERPARAMETERS = ('learning_rate', 'weight_decay')
# What a comparison is made for: one choice each.
POINT = ('model', 'learner', 'task', 'sparsity', 'seq_len', 'budget', 'num_samples')


def _points(rows, over):
    """Columns that tell the points of a comparison apart; n only where the lanes were given it."""
    searched = rows.get('is_search', pd.Series(False, rows.index)).fillna(False).astype(bool)
    names = [name for name in POINT if name in rows.columns and name not in over]
    return [name for name in names if name != 'num_samples' or not searched.any()]


def _score(rows):
    """What a setting is judged by, smaller is better: validation loss, or n by validation for a search."""
    if 'is_search' in rows.columns and rows['is_search'].fillna(False).astype(bool).any():
        return rows['validation_samples_to_threshold'].astype('Float64').fillna(np.inf)
    return rows['validation_loss'].fillna(np.inf)


def select(rows, over=HYPERPARAMETERS):
    """The rows of the setting with the best validation score at each point.

    The score is the median over seeds of the validation loss, or for searches of the smallest n with validation loss
    below the threshold; test losses play no part. Ties go to the first setting in sorted order.

    Args:
        rows: rows of fixed-sample learners.
        over: the columns that are chosen.

    Returns:
        A DataFrame with the columns of `rows`.

    Raises:
        ValueError: no rows, or columns are missing.
    """
    analysis.require(rows, (*over, 'validation_loss'))
    scored = rows.assign(_score=_score(rows).astype(float))
    chosen = []
    for _, lanes in scored.groupby(_points(rows, over), dropna=False, observed=True):
        scores = lanes.groupby(list(over), dropna=False)['_score'].median()
        best = scores.index[int(np.argmin(scores.to_numpy()))]
        best = best if isinstance(best, tuple) else (best,)
        chosen.append(lanes[(lanes[list(over)] == list(best)).all(axis=1)])
    return pd.concat(chosen, ignore_index=True).drop(columns='_score')


def sensitivity(rows, over=HYPERPARAMETERS, value='test_loss'):
    """How much hyperparameters matter: per point the chosen, best, median and worst setting by `value`.

    Args:
        rows, over: as in `select`.
        value: column whose median over seeds is compared; a missing value counts as infinite.

    Returns:
        A DataFrame: the point's columns, `chosen` (by validation), `best`, `median`, `worst` and `num_settings`.
    """
    names = _points(rows, over)
    chosen = select(rows, over).groupby(names, dropna=False, observed=True)[value]
    chosen = chosen.apply(_median)
    table = []
    for key, lanes in rows.groupby(names, dropna=False, observed=True):
        settings = lanes.groupby(list(over), dropna=False)[value].apply(_median)
        table.append(
            {
                **dict(zip(names, key, strict=True)),
                'chosen': chosen[key],
                'best': settings.min(),
                'median': settings.median(),
                'worst': settings.max(),
                'num_settings': len(settings),
            }
        )
    return pd.DataFrame(table)


def _median(lanes):
    return float(np.median(lanes.astype('Float64').to_numpy(dtype=float, na_value=np.inf)))


def name_curves(rows):
    """Rows whose `model` also names the learner and the budget where a model has several of them.

    So that figures, exponents and tables tell them apart: 'transformer constrained R = 0.5'.
    """
    rows = rows.reset_index(drop=True)
    for _, lanes in rows.groupby('model'):
        parts = []
        if lanes['learner'].nunique() > 1:
            parts.append(lanes['learner'])
        if 'budget' in lanes.columns and lanes['budget'].nunique() > 1:
            parts.append('R = ' + lanes['budget'].map('{:g}'.format))
        for part in parts:
            rows.loc[lanes.index, 'model'] = rows.loc[lanes.index, 'model'] + ' ' + part
    return rows
