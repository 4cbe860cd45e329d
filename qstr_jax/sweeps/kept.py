"""Parameters that are asked for after rows were made: an error of one line, or their cells run again."""

from collections.abc import Sequence
from typing import Any

from qstr_jax.storage import cell_columns, results
from qstr_jax.sweeps import claims, rows, stale
from qstr_jax.sweeps.cells import Cell


def check(workdir: Any, cells: Sequence[Cell], tuned: Sequence[str], record: dict[str, Any], refresh: bool) -> None:
    """Raises ResultsError where lanes have rows and no parameters; with `refresh` their cells are set aside.

    Tuned settings do not tell lanes apart.
    """
    lost = [(cell, count) for cell in cells if (count := _num_bare(workdir, cell, tuned))]
    if lost and not refresh:
        count = sum(number for _, number in lost)
        raise results.ResultsError(
            f'save_params=True: {count} lanes have rows but no parameters in {workdir}, of {lost[0][0].id} first: '
            f'{stale.HINT}'
        )
    for cell, _ in lost:
        with claims.locked(workdir, f'{cell.id}-tables'):
            if _num_bare(workdir, cell, tuned):  # no other worker has set them aside meanwhile
                stale.move_aside(workdir, cell, record['id'])


def _num_bare(workdir: Any, cell: Cell, tuned: Sequence[str]) -> int:
    """The number of a cell's lanes that have rows and no parameters; parameters are written before rows."""
    found, kind = cell_columns.columns_of(workdir, cell.id, cell.lanes[0]._fields), type(cell.lanes[0])
    there = map(kind._make, zip(*(found[name] for name in kind._fields), strict=True)) if found else ()
    names = [name for name in kind._fields if name not in tuned]
    asked = {tuple(getattr(lane, name) for name in names) for lane in cell.lanes}
    mine = [lane for lane in there if tuple(getattr(lane, name) for name in names) in asked]
    return sum(not rows.params_path(workdir, cell, lane).exists() for lane in mine)
