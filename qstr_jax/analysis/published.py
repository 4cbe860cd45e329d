"""Values that the paper published, for figures that draw them beside ours."""

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from qstr_jax.analysis.curves import curve_columns


def published_samples(
    rows: pd.DataFrame, points: Iterable[tuple[str, int, float]], only_for: Mapping[str, Any]
) -> dict[str, dict[int, float]]:
    """Published samples to the threshold against N, where they are of the same setting as the rows."""
    is_same = all(rows[name].eq(value).all() for name, value in only_for.items())
    tasks = {'task', 'sparsity', 'token_dim', 'link'}
    if not is_same or tasks.intersection(curve_columns(rows, 'seq_len')):
        return {}
    found: dict[str, dict[int, float]] = {}
    for model, length, samples in points:
        if ((rows['model'] == model) & (rows['seq_len'] == length)).any():
            found.setdefault(model, {})[length] = samples
    return found
