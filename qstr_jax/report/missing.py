"""Which lanes of a directory's plan have no row yet, in words."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from qstr_jax import analysis

_MOST_NAMED = 12


def words(plan: Mapping[str, Any], rows: pd.DataFrame) -> list[str]:
    """A sentence about the lanes that are missing; none if all are there, or if there is no plan."""
    cells = _cells(plan, rows)
    total = int(cells['left'].sum()) if len(cells) else 0
    if not total:
        return []
    parts = _parts(cells)
    more = [f'and {len(parts) - _MOST_NAMED} more'] if len(parts) > _MOST_NAMED else []
    what = 'cells' if (cells['planned'] == 1).all() else 'lanes'
    verb = 'is' if total == 1 else 'are'
    return [f'{total} of the planned {what} {verb} missing: {"; ".join(parts[:_MOST_NAMED] + more)}.']


def _cells(plan: Mapping[str, Any], rows: pd.DataFrame) -> pd.DataFrame:
    """A row per planned cell: its settings, how many lanes are planned, and how many of them have no row."""
    done = rows['cell'].value_counts().to_dict() if len(rows) else {}
    table = []
    for cell_id, entry in plan.items():
        settings = entry['columns'].items()
        plain = {name: value if isinstance(value, (int, float, str)) else str(value) for name, value in settings}
        planned = len(entry['lanes'])
        left = max(0, planned - done.get(cell_id, 0))
        table.append({'model': cell_id, **plain, 'cell': cell_id, 'planned': planned, 'left': left})
    return pd.DataFrame(table)


def _parts(cells: pd.DataFrame) -> list[str]:
    """'RNN N = 2, 4 (3 of 5 lanes each)': cells of one curve that miss equally many lanes are named together."""
    x = 'seq_len'
    if x not in cells.columns or not pd.api.types.is_numeric_dtype(cells[x]) or cells[x].isna().any():
        return [_part(cell, cells[cells['cell'] == cell]) for cell in cells.loc[cells['left'] > 0, 'cell']]
    if cells[x].nunique() == 1 and 'sparsity' in cells.columns and cells['sparsity'].nunique() > 1:
        x = 'sparsity'
    parts = []
    for curve in analysis.split_curves(cells, x):
        name = ', '.join([curve.name, *(analysis.setting_text(*item) for item in curve.task.items())])
        for _, same in curve.lanes[curve.lanes['left'] > 0].groupby(['planned', 'left'], sort=False):
            values = ', '.join(f'{value:g}' for value in analysis.ordered(same[x]))
            parts.append(_part(f'{name} {analysis.heading(x)} = {values}', same))
    return parts


def _part(name: str, cells: pd.DataFrame) -> str:
    planned, left = cells['planned'].iloc[0], cells['left'].iloc[0]
    if planned == 1:
        return name
    number = f'all {planned}' if left == planned else f'{left} of {planned}'
    return f'{name} ({number} lanes{" each" if len(cells) > 1 else ""})'
