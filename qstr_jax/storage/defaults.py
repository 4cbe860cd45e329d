"""Settings that a file of rows lacks because it was written before they existed: they are at their defaults."""

from collections.abc import Iterable
from typing import Any

import pandas as pd

from qstr_jax import columns
from qstr_jax.settings import function_names, registry


def filled(rows: pd.DataFrame, lane_settings: Iterable[str] = ()) -> pd.DataFrame:
    """The rows of one cell, with a column for every setting that its task and its model have today.

    A cell keeps its id when something that it uses gets another setting, so its old rows stand beside new ones that
    have the setting's column. A setting whose default follows from others (None, ()) stays missing, and so does one of
    something that is not registered in this process. Rows leave out what their learner ignores, so of its settings only
    `lane_settings` are filled in.
    """
    learner = _defaults(rows, 'learner')
    of_lanes = {name: learner[name] for name in lane_settings if name in learner}
    found = {**_defaults(rows, 'task'), **_defaults(rows, 'model'), **of_lanes}
    missing = {name: value for name, value in found.items() if name not in rows.columns}
    return rows.assign(**missing) if missing else rows


def shared(rows: pd.DataFrame, others: pd.DataFrame) -> pd.DataFrame:
    """The rows of one cell, with the settings that only its newer rows have: all rows of a cell share their values."""
    settings = columns.with_role(others.columns, 'task', 'model', 'learner')
    return rows.assign(**{name: others[name].iloc[0] for name in settings if name not in rows.columns})


def filled_curves(curves: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """The curves of one cell, with the columns of lanes that its rows have; they are newer than the file of curves."""
    newer = [name for name in columns.with_role(rows.columns, 'lane') if name not in curves.columns]
    return curves.assign(**{name: rows[name].iloc[0] for name in newer}) if len(rows) else curves


def _defaults(rows: pd.DataFrame, kind: str) -> dict[str, Any]:
    """Defaults of the settings of a cell's task, model or learner, by column."""
    name = rows[kind].iloc[0] if kind in rows.columns and len(rows) else None
    entry = registry.entries().get(name) if isinstance(name, str) else None
    if entry is None or entry.kind != kind:
        return {}
    prefix = f'{name}_' if kind == 'model' else ''
    settings = [setting for setting in entry.schema.values() if setting.default not in (None, ())]
    return {f'{prefix}{setting.name}': function_names.plain(setting.default) for setting in settings}
