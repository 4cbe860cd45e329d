"""Test losses at the end of the budget, by the values of one setting."""

from collections.abc import Sequence

import pandas as pd

from qstr_jax.analysis.curves import require


def final_losses(rows: pd.DataFrame, setting: str, floors: Sequence[float]) -> pd.DataFrame:
    """Test loss at the end of the budget by value of a setting, beside a floor."""
    require(rows, (setting, 'seed', 'num_samples', 'test_loss'))
    table = rows.groupby(setting).agg(
        lanes=('seed', 'size'),
        samples=('num_samples', 'max'),
        mean=('test_loss', 'mean'),
        smallest=('test_loss', 'min'),
        largest=('test_loss', 'max'),
    )  # fmt: skip
    lowest = pd.Series(list(floors), rows.index).groupby(rows[setting]).first()
    return table.assign(floor=lowest).reset_index()
