"""Rows as exhibits take them: with crossings between checks, from the curves beside them."""

from typing import Any

import pandas as pd

from qstr_jax.analysis import crossings, resolution, table1
from qstr_jax.storage import lane_keys, results


def load(workdir: Any, strict: bool = False) -> pd.DataFrame:
    """`results.load`, with `resolution.CROSSING`."""
    rows = results.load(workdir, strict)
    return resolution.interpolated(rows, _curves(workdir, strict, rows))


def at_thresholds(workdir: Any, strict: bool = False, rows: pd.DataFrame | None = None) -> pd.DataFrame:
    """As `load`, one row per lane and threshold that it recorded; `rows` if they are read already."""
    rows = results.load(workdir, strict) if rows is None else rows
    return resolution.interpolated(crossings.at_thresholds(rows), _curves(workdir, strict, rows))


def for_table1(workdir: Any, strict: bool = False) -> pd.DataFrame:
    """As `load`, at the thresholds that Table 1 takes: tuned lanes only at the one that they were tuned for."""
    rows = results.load(workdir, strict)
    return resolution.interpolated(table1.each_threshold(rows), _curves(workdir, strict, rows))


def _curves(workdir: Any, strict: bool, rows: pd.DataFrame) -> pd.DataFrame:
    """Curves without the settings of cells, which no crossing needs: those of 17 mixers took 0.6 GB."""
    return results.load_curves(workdir, strict, rows.filter(['cell', 'outcome', *lane_keys.columns_of(rows)]))
