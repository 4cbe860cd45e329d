"""Values that the paper published, for figures that draw them beside ours."""

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from qstr_jax.analysis.curves import curve_columns


def published_samples(
    rows: pd.DataFrame, points: Iterable[tuple[str, int, float]], only_for: Mapping[str, Any]
) -> dict[str, dict[int, float]]:
    """Published samples to the threshold against N, where they are of the same setting as the rows.

    Args:
        rows: one row per lane.
        points: triples of model, N and samples.
        only_for: column → the value that all rows must have.

    Returns:
        {model: {N: samples}} with those points that the rows have too; empty if the rows are of another setting, or
        of tasks that differ in more than N.
    """
    is_same = all(rows[name].eq(value).all() for name, value in only_for.items())
    tasks = {'task', 'sparsity', 'token_dim', 'link'}
    if not is_same or tasks.intersection(curve_columns(rows, 'seq_len')):
        return {}
    found: dict[str, dict[int, float]] = {}
    for model, length, samples in points:
        if ((rows['model'] == model) & (rows['seq_len'] == length)).any():
            found.setdefault(model, {})[length] = samples
    return found
