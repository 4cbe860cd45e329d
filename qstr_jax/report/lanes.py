"""Rows as exhibits take them: with crossings between checks, from the curves beside them."""

from typing import Any

import pandas as pd

from qstr_jax.analysis import crossings, resolution
from qstr_jax.storage import results


def load(workdir: Any, strict: bool = False) -> pd.DataFrame:
    """`results.load`, with `resolution.CROSSING`."""
    return resolution.interpolated(*with_curves(workdir, strict))


def at_thresholds(workdir: Any, strict: bool = False, rows: pd.DataFrame | None = None) -> pd.DataFrame:
    """As `load`, one row per lane and threshold that it recorded; with the rows, where they are read already."""
    rows, curves = with_curves(workdir, strict, rows)
    return resolution.interpolated(crossings.at_thresholds(rows), curves)


def with_curves(
    workdir: Any, strict: bool = False, rows: pd.DataFrame | None = None
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows of a directory as they are stored, and the curves beside them."""
    rows = results.load(workdir, strict) if rows is None else rows
    return rows, results.load_curves(workdir, strict, rows)
