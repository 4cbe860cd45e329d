"""Settings that a file of rows does not have, because it was written before they existed: their defaults."""

from typing import Any

import pandas as pd

from qstr_jax import registry


def filled(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of one cell with a column for every setting that its task, model and learner have today.

    A cell keeps its id when a setting is added to what it uses, so its old rows stand beside new ones that have the
    setting's column. A setting whose default follows from others (None) stays missing, and so do settings of what is
    not registered here.

    Args:
        rows: of one cell.
    """
    missing = {name: value for name, value in _defaults(rows).items() if name not in rows.columns}
    return rows.assign(**missing) if missing else rows


def _defaults(rows: pd.DataFrame) -> dict[str, Any]:
    """Default of each setting of the things that the rows name, by column."""
    found: dict[str, Any] = {}
    for kind in registry.SCOPES:
        name = rows[kind].iloc[0] if kind in rows.columns and len(rows) else None
        entry = registry.entries().get(name)
        if entry is None or entry.kind != kind:
            continue
        prefix = f'{name}_' if kind == 'model' else ''
        for setting in entry.schema.values():
            # A learner's rows have the traced settings that it looks at, which differ from row to row.
            if setting.default is not None and not setting.is_traced:
                found[f'{prefix}{setting.name}'] = setting.default
    return found
