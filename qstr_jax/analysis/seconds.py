"""Seconds that the cells of a sweep took."""

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from qstr_jax.analysis.curves import point_columns, require

_COLUMNS = ('cell', 'device', 'lanes', 'wall_seconds', 'compile_seconds', 'seconds_per_lane')


def seconds_per_cell(runs: Iterable[Mapping[str, Any]], rows: pd.DataFrame) -> pd.DataFrame:
    """Seconds per cell and lane, from the provenance of the runs that computed them.

    Args:
        runs: as in `provenance/*.json`: 'device' and 'batches', each with 'cell', 'lanes' (names),
            'wall_seconds' and 'compile_seconds'.
        rows: one row per lane, with the column `cell`.

    Returns:
        One row per cell and device: cell, the settings that tell the cells of `rows` apart, device, lanes,
        wall_seconds and compile_seconds (sums over lane batches, those of stopped runs included), seconds_per_lane.
        The machine may have been busy with other work.

    Raises:
        ValueError: rows without the column `cell`.
    """
    batches = [{'device': run.get('device', '?'), **batch} for run in runs for batch in run['batches']]
    require(rows, ('model', 'cell'))
    named = point_columns(rows)
    cells = rows.drop_duplicates('cell')[['cell', *named]]
    if not batches:
        return pd.DataFrame(columns=['cell', *named, *_COLUMNS[1:]])
    frame = pd.DataFrame(batches)
    # A batch that was stopped and continued later counts its lanes once.
    lanes = frame.explode('lanes').groupby(['cell', 'device'])['lanes'].nunique()
    sums = frame.groupby(['cell', 'device'])[['wall_seconds', 'compile_seconds']].sum()
    table = cells.merge(sums.join(lanes).reset_index(), on='cell')
    return table.assign(seconds_per_lane=table['wall_seconds'] / table['lanes'])[['cell', *named, *_COLUMNS[1:]]]
