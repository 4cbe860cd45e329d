"""Choosing hyperparameters on validation prompts, and how much the choice matters.

A sweep over hyperparameters has a row for each of their values. `select` keeps those rows whose values have the best
validation losses, over all seeds together, at each point of the other settings.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from qstr_jax.analysis.curves import point_columns, require, setting_columns

# What `select` chooses, unless told otherwise.
DEFAULT_OVER = ('learning_rate', 'weight_decay')


def select(rows: pd.DataFrame, over: Sequence[str] | None = None) -> pd.DataFrame:
    """The rows whose hyperparameters have the best validation score at each point of the other settings.

    The score is the median over seeds of the validation loss, or for searches of the smallest n whose validation loss
    is below the threshold; test losses play no part. Ties go to the first values in sorted order.
    """
    over = _chosen(rows, over)
    require(rows, ('model', *over, 'validation_loss'))
    if not over:
        return rows.reset_index(drop=True)
    points = [name for name in setting_columns(rows) if name not in over]
    point = rows.groupby(points, dropna=False, sort=False).ngroup()
    setting = rows.groupby(list(over), dropna=False).ngroup()
    score = _score(rows).groupby([point, setting]).transform('median')
    best = setting.where(score == score.groupby(point).transform('min'))
    chosen = setting == best.groupby(point).transform('min')
    return rows[chosen].iloc[np.argsort(point[chosen], kind='stable')].reset_index(drop=True)


def sensitivity(rows: pd.DataFrame, value: str = 'test_loss') -> pd.DataFrame:
    """How much hyperparameters matter: at each point the chosen, best, median and worst of them."""
    over = _chosen(rows, None)
    chosen = select(rows)
    names = point_columns(rows, leave_out=over)
    picked = chosen.groupby(names, dropna=False)[value].apply(_median)
    tried = rows.groupby([*names, *over], dropna=False)[value].apply(_median)
    by_point = tried.groupby(names, dropna=False)
    table = by_point.agg(best='min', median='median', worst='max', num_settings='size')
    table.insert(0, 'chosen', picked)
    return table.reset_index()


def _chosen(rows: pd.DataFrame, over: Sequence[str] | None) -> list[str]:
    return [name for name in DEFAULT_OVER if name in rows.columns] if over is None else list(over)


def _score(rows: pd.DataFrame) -> pd.Series:
    """What a setting is judged by, smaller is better: the validation loss, or n by validation for a search."""
    is_search = 'is_search' in rows.columns and rows['is_search'].eq(True).any()
    name = 'validation_samples_to_threshold' if is_search else 'validation_loss'
    return pd.Series(_with_infinity(rows[name]), rows.index)


def _median(lanes: pd.Series) -> float:
    return float(np.median(_with_infinity(lanes)))


def _with_infinity(values: pd.Series) -> np.ndarray:
    """Numbers, infinite where one is missing."""
    return values.astype('Float64').fillna(np.inf).to_numpy(dtype=float, na_value=np.inf)
