"""Settings that a file of rows lacks because it was written before they existed: they are at their defaults."""

from collections.abc import Iterable
from typing import Any

import pandas as pd

from qstr_jax import columns, registry


def filled(rows: pd.DataFrame, lane_settings: Iterable[str] = ()) -> pd.DataFrame:
    """The rows of one cell, with a column for every setting that its task, model and learner have today.

    A cell keeps its id when something that it uses gets another setting, so its old rows stand beside new ones that
    have the setting's column. A setting whose default follows from others (None) stays missing, and so do the settings
    of what is not registered here.

    Args:
        rows: of one cell.
        lane_settings: names of the traced settings that its learner looks at today.
    """
    wanted = set(lane_settings)
    missing = {
        column: columns.plain(setting.default)
        for column, setting in _settings(rows).items()
        if column not in rows.columns and setting.default is not None and (not setting.is_traced or column in wanted)
    }
    return rows.assign(**missing) if missing else rows


def _settings(rows: pd.DataFrame) -> dict[str, Any]:
    """The settings of the things that the rows name, by column."""
    found: dict[str, Any] = {}
    for kind in registry.SCOPES:
        name = rows[kind].iloc[0] if kind in rows.columns and len(rows) else None
        entry = registry.entries().get(name) if isinstance(name, str) else None
        if entry is not None and entry.kind == kind:
            prefix = f'{name}_' if kind == 'model' else ''
            found |= {f'{prefix}{setting}': value for setting, value in entry.schema.items()}
    return found
