"""What a tuned sweep chose, and from what."""

import numpy as np
import pandas as pd

from qstr_jax.analysis.curves import places_of, require, setting_columns
from qstr_jax.analysis.measured import measured
from qstr_jax.analysis.names import model_order
from qstr_jax.analysis.samples_table import mean_and_share
from qstr_jax.analysis.summary import point_of


def tuned_settings(rows: pd.DataFrame) -> list[str]:
    """The settings that were tuned for some row."""
    texts = rows['tuned'].dropna().unique() if 'tuned' in rows.columns else ()
    return list(dict.fromkeys(name for text in texts for name in text.split()))


def chosen(rows: pd.DataFrame, x: str = 'seq_len') -> pd.DataFrame:
    """The chosen values of a tuned sweep, one line per point."""
    require(rows, ('model', x, 'tuned', 'tuned_grid', 'tuned_samples', 'tuned_seeds', 'samples_to_threshold'))
    names = tuned_settings(rows)
    by = ['model', x, *names, 'tuned_grid', 'tuned_samples', 'tuned_seeds']
    points, lanes = places_of(rows.groupby(by, dropna=False)), measured(rows)
    keys = rows[by].iloc[[places[0] for places in points]].reset_index(drop=True)
    cells = [point_of(lanes.at(places)) for places in points]
    found = keys.assign(lanes=[cell['num_lanes'] for cell in cells], samples=list(map(mean_and_share, cells)))
    order = {model: place for place, model in enumerate(model_order(rows))}
    found = found.sort_values(['model', x], key=lambda column: column.map(order) if column.name == 'model' else column)
    return found[['model', x, *names, 'lanes', 'samples', *by[-3:]]].reset_index(drop=True)


def beside(selected: pd.DataFrame, chosen: pd.DataFrame, setting: str, x: str = 'seq_len') -> pd.DataFrame:
    """The selection lanes that have, at their point, the chosen value of every other tuned setting.

    `is_chosen` says which of them have the chosen value of the setting too.
    """
    point = ['model', x, *sorted({*tuned_settings(chosen)} - {setting})]
    found = selected.merge(chosen[point].drop_duplicates(), on=point)
    keys = [pd.MultiIndex.from_frame(rows[[*point, setting]]) for rows in (found, chosen)]
    return found.assign(is_chosen=keys[0].isin(keys[1]))


def longest(selected: pd.DataFrame) -> pd.DataFrame:
    """The rows of selection lanes; if a lane was stopped at several limits, only the row of the last."""
    lane = ['seed', *(name for name in setting_columns(selected) if name != 'stop_after')]
    order = selected['stop_after'].replace(0, np.inf).sort_values(kind='stable').index
    return selected.loc[order].drop_duplicates(lane, keep='last').sort_index()
