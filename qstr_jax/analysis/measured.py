"""What the lanes of a table measured, as arrays: pandas takes nearly as long over ten lanes as over a hundred thousand.

Points and exponents are computed for thousands of curves of one table, so its columns are read once for all of them.
"""

import dataclasses
from typing import Any

import numpy as np
import pandas as pd

from qstr_jax.analysis import erms, no_retrieval, resolution


@dataclasses.dataclass(frozen=True, kw_only=True)
class Measured:
    """Lanes as arrays."""

    outcome: np.ndarray  # how each ended, with those of `erms.with_bounds`
    samples: np.ndarray  # to the threshold, or the bound where a lane is censored; NaN where it diverged
    is_short: np.ndarray  # whether it is known to be no ERM
    step: np.ndarray  # samples between two checks; NaN without checks
    x: np.ndarray  # the setting on the x axis; NaN where there is none
    is_easy: np.ndarray  # whether its threshold needs no retrieval; False without an x axis, where nobody asks

    def __len__(self) -> int:
        """The number of lanes."""
        return len(self.outcome)

    def at(self, places: Any) -> 'Measured':
        """Some of the lanes, by the numbers of their lines or a mask."""
        return Measured(**{field.name: getattr(self, field.name)[places] for field in dataclasses.fields(self)})

    def has(self, *outcomes: str) -> np.ndarray:
        """Which lanes have one of some outcomes."""
        return np.array([outcome in outcomes for outcome in self.outcome.tolist()], bool)


def measured(rows: pd.DataFrame, x: str | None = None) -> Measured:
    """The lanes of a table; with the numbers of a setting `x` where exponents in it are asked for."""
    nothing = np.full(len(rows), np.nan)
    return Measured(
        outcome=erms.with_bounds(rows)['outcome'].to_numpy(object),
        samples=samples_or_bound(rows).to_numpy(float),
        is_short=erms.is_short(rows).to_numpy(bool),
        step=resolution.step(rows).to_numpy(float),
        x=nothing if x is None else rows[x].astype(float).to_numpy(float, na_value=np.nan),
        is_easy=np.zeros(len(rows), bool) if x is None else no_retrieval.is_easy(rows).to_numpy(bool),
    )


def samples_or_bound(lanes: pd.DataFrame) -> pd.Series:
    """Samples to the threshold of each lane, or the bound where a lane is censored; NaN where a lane diverged."""
    bounds = {'reached': 'samples_to_threshold', 'censored': 'max_samples', 'outraced': 'num_samples',
              'censored_below': 'min_samples', erms.AT_MOST: 'samples_to_threshold',
              erms.UNFITTED: 'max_samples'}  # fmt: skip
    found = pd.Series(np.nan, lanes.index)
    for outcome, column in bounds.items():
        if column in lanes.columns:
            numbers = pd.to_numeric(lanes[column]).astype('Float64').astype(float)
            found = found.where(lanes['outcome'] != outcome, numbers)
    return lanes[resolution.CROSSING].fillna(found) if resolution.CROSSING in lanes.columns else found
