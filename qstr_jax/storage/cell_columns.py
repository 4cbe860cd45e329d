"""The rows of cells column by column, to look up which lanes each cell has and what made them."""

from collections.abc import Iterable, Mapping
from typing import Any

from etils import epath

from qstr_jax.storage import cell_tables, compact, names, results


def with_rows(workdir: Any) -> set[str]:
    """The ids of the cells of a directory that have rows; none if there is no such directory."""
    return {path.stem for path in names.listed(epath.Path(workdir) / 'rows', '.parquet')}


def columns_of(workdir: Any, cell_id: str, lane_settings: Iterable[str] = ()) -> dict[str, list]:
    """The rows of one cell, column by column; from the copy of all if its file has not changed; {} without rows."""
    path = results.cell_path(workdir, 'rows', cell_id)
    if not path.exists():
        return {}
    copy = compact.read(workdir, 'rows')
    if cell_id in copy.stamps and compact.fresh(copy, [path]):
        found = copy.columns(cell_id)
        if set(lane_settings) <= set(found):
            return found
    return {str(name): values.tolist() for name, values in cell_tables.read_rows(path, lane_settings).items()}


def columns_of_each(
    workdir: Any, cells: Mapping[str, Iterable[str]], more: Iterable[str] | None = None
) -> dict[str, dict[str, list]]:
    """`columns_of` for many cells, whose files are listed at once: by id, without the cells that have no rows.

    `cells` maps an id to the settings that tell the cell's lanes apart. `more` names further columns; with it every
    other column, such as a setting of the cell, is there with its first value.
    """
    copy = compact.read(workdir, 'rows')
    fresh = compact.fresh(copy, names.listed(epath.Path(workdir) / 'rows', '.parquet')) if copy.stamps else set()
    found = {}
    for cell_id, lane_settings in cells.items():
        rows = copy.columns(cell_id, (*lane_settings, *(more or ()))) if cell_id in fresh else {}
        if rows and more is not None:
            rows = copy.firsts(cell_id) | rows
        if not rows or not set(lane_settings) <= set(rows):
            rows = columns_of(workdir, cell_id, lane_settings)
        if rows:
            found[cell_id] = rows
    return found
