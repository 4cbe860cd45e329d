"""Probes that are asked for after rows were made: computed from kept parameters, or else an error of one line."""

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import pandas as pd
from absl import logging

from qstr_jax.models.probes import Probe
from qstr_jax.storage import cell_tables, files, provenance, results
from qstr_jax.sweeps import claims, programs, rows, stale
from qstr_jax.sweeps.cells import Cell
from qstr_jax.sweeps.outputs import Made

# The column of the fingerprints of a row's probes, as 'param_norm=0123456789ab other=…'.
COLUMN = stale.PROBES


def text(made: Mapping[str, Made]) -> str:
    """What the rows of a cell say about their probes."""
    return ' '.join(f'{name}={one.fingerprint}' for name, one in made.items())


def complete(
    workdir: Any,
    cells: Sequence[Cell],
    probes: Mapping[str, Probe],
    *,
    made: Mapping[str, Mapping[str, Made]],
    record: dict[str, Any],
    refresh: bool,
) -> None:
    """Adds the columns of probes to the rows that lack them, or have them of other code."""
    runs = provenance.by_program(provenance.load(workdir)) if probes else {}
    lost = []
    for cell in cells if probes else ():
        path = results.cell_path(workdir, 'rows', cell.id)
        with claims.locked(workdir, f'{cell.id}-tables'):
            table = cell_tables.read_rows(path, cell.lanes[0]._fields) if path.exists() else pd.DataFrame()
            lacking = {i: _lacking(row, cell, made[cell.id], runs, record) for i, row in table.iterrows()}
            bare = table.loc[[i for i, names in lacking.items() if names]]
            try:
                if len(bare):
                    files.write_table(
                        path, _filled(table, _measured(workdir, cell, bare, probes, made[cell.id])), cell.id
                    )
            except results.ResultsError as error:
                names = dict.fromkeys(name for names in lacking.values() for name in names)
                judged = stale.origin(cell, table.to_dict('list'))
                lost.append((cell, f'probes={",".join(names)!r}: the rows of {cell.id}', error, judged))
    if lost and not refresh:
        _, what, reason, _ = lost[0]
        others = f', and of {len(lost) - 1} more cells,' if len(lost) > 1 else ''
        raise results.ResultsError(f'{what}{others} in {workdir} lack them ({reason}); or {stale.HINT}')
    for cell, _, _, judged in lost:
        stale.set_aside(workdir, cell, judged, record['id'])


def _known(said: Any) -> dict[str, str]:
    """Fingerprints by name, of the column of a row."""
    return dict(part.split('=', 1) for part in said.split()) if isinstance(said, str) else {}


def _lacking(row: pd.Series, cell: Cell, made: Mapping[str, Made], runs: dict, record: dict[str, Any]) -> list[str]:
    """The probes whose columns a row lacks or has from other code, unless other versions made the row."""
    known = _known(row.get(COLUMN))
    is_ours = bool(stale.of_these_versions(runs.get((cell.id, row.get('program')), []), record))
    found = []
    for name, one in made.items():
        if name in known:
            lacks = is_ours and known[name] != one.fingerprint
        else:  # without the probe, or from before there were fingerprints, when a probe's number may be missing
            can_miss = COLUMN not in row
            lacks = any(column not in row or (pd.isna(row[column]) and not can_miss) for column in one.columns)
        found += [name] if lacks else []
    return found


def _measured(
    workdir: Any, cell: Cell, table: pd.DataFrame, probes: Mapping[str, Probe], made: Mapping[str, Made]
) -> pd.DataFrame:
    """The columns of probes for some rows of a cell, computed lane by lane from the parameters that were kept."""
    kinds = {name: type(value) for name, value in cell.lanes[0]._asdict().items()}
    lines = []
    for row in table.to_dict('records'):
        lane = type(cell.lanes[0])(**{name: kind(row[name]) for name, kind in kinds.items()})
        params_K = jax.tree.map(lambda leaf: leaf[None], rows.load_params(workdir, cell, lane))
        task_draw_K = rows.task_draws(programs.lane_arrays([lane]), cell.problem)
        measured = jax.device_get(rows.probed(params_K, task_draw_K, cell.problem, tuple(probes.values())))
        said = _known(row.get(COLUMN)) | _known(text(made))
        lines.append(
            {name: values[0] for name, values in measured.items()}
            | {COLUMN: ' '.join(f'{name}={fingerprint}' for name, fingerprint in said.items())}
        )
    logging.info('%s: probes of %d lanes are computed from their kept parameters', cell.id, len(table))
    return pd.DataFrame(lines, index=table.index)


def _filled(table: pd.DataFrame, measured: pd.DataFrame) -> pd.DataFrame:
    """A table with further columns for some of its rows."""
    for name, values in measured.reindex(table.index).items():
        is_new = table.index.isin(measured.index)
        table[name] = values.where(is_new, table[name]) if name in table.columns else values
    return table
