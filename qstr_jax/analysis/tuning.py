"""What a tuned sweep chose, and from what."""

import numpy as np
import pandas as pd

from qstr_jax.analysis.curves import require, setting_columns
from qstr_jax.analysis.names import model_order


def chosen(rows: pd.DataFrame, x: str = 'seq_len') -> pd.DataFrame:
    """The chosen values of a tuned sweep, one line per point."""
    require(rows, ('model', x, 'tuned', 'tuned_grid', 'tuned_samples', 'tuned_seeds', 'samples_to_threshold'))
    names = list(dict.fromkeys(name for text in rows['tuned'].dropna() for name in text.split()))
    by = ['model', x, *names, 'tuned_grid', 'tuned_samples', 'tuned_seeds']
    found = rows.groupby(by, dropna=False)['samples_to_threshold'].agg(lanes='size', samples='mean').reset_index()
    order = {model: place for place, model in enumerate(model_order(rows))}
    found = found.sort_values(['model', x], key=lambda column: column.map(order) if column.name == 'model' else column)
    return found[['model', x, *names, 'lanes', 'samples', *by[-3:]]].reset_index(drop=True)


def beside(selected: pd.DataFrame, chosen: pd.DataFrame, setting: str, x: str = 'seq_len') -> pd.DataFrame:
    """The selection lanes that have, at their point, the chosen value of every other tuned setting."""
    names = {name for text in chosen['tuned'].dropna() for name in text.split()}
    point = ['model', x, *sorted(names - {setting})]
    return selected.merge(chosen[point].drop_duplicates(), on=point)


def longest(selected: pd.DataFrame) -> pd.DataFrame:
    """Of each selection lane that was stopped at several limits, the row of the last."""
    lane = ['seed', *(name for name in setting_columns(selected) if name != 'stop_after')]
    order = selected['stop_after'].replace(0, np.inf).sort_values(kind='stable').index
    return selected.loc[order].drop_duplicates(lane, keep='last').sort_index()
