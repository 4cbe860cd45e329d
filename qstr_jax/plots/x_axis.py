"""The x axis that the panels of a figure share: any setting, numbers or names.

Any column can be an axis by `config.x`; its words stand in `columns.py`.
"""

import dataclasses
from collections.abc import Iterable
from typing import Any

import numpy as np
from matplotlib import ticker
from matplotlib.axes import Axes

from qstr_jax import analysis, columns
from qstr_jax.analysis.names import is_number


@dataclasses.dataclass(frozen=True, kw_only=True)
class XAxis:
    """An axis over the values of one setting. Numbers stand where they belong, names side by side."""

    column: str  # the setting
    values: tuple  # its distinct values, in order
    is_log: bool  # whether the axis is logarithmic, as for positive numbers

    @classmethod
    def of(cls, column: str, values: Iterable[Any]) -> 'XAxis':
        """The axis of some values."""
        distinct = tuple(analysis.ordered(values))
        return cls(column=column, values=distinct, is_log=all(is_number(value) and value > 0 for value in distinct))

    @property
    def has_numbers(self) -> bool:
        """Whether all values are numbers."""
        return all(map(is_number, self.values))

    @property
    def is_wide(self) -> bool:
        """Whether a slope can be seen: on a logarithmic axis whose values span a factor of two."""
        return self.is_log and self.values[-1] >= 2 * self.values[0]

    @property
    def places(self) -> np.ndarray:
        """Where the values stand."""
        return np.asarray(self.values, float) if self.has_numbers else np.arange(len(self.values), dtype=float)

    def place(self, values: Iterable[Any], shift: float = 0.0) -> np.ndarray:
        """Where some values stand."""
        at = dict(zip(self.values, self.places, strict=True))
        places = np.array([at[value] for value in values], float)
        if self.is_log:
            return places * (self.places[-1] / self.places[0]) ** shift
        return places + shift * self._span

    def draw(self, axis: Axes) -> None:
        """Sets scale, limits, ticks and label."""
        places, span = self.places, self._span
        axis.set_xlabel(columns.label(self.column))
        if self.is_log:
            axis.set_xscale('log')
            factor = (places[-1] / places[0]) ** 0.08 if places[-1] > places[0] else 1.5
            axis.set_xlim(places[0] / factor, places[-1] * factor)
            shown = with_room(np.log(places), np.log(places[-1] / places[0]) * 1.16)
        else:
            near_zero = self.has_numbers and places[0] <= max(span, places[-1] / 2)
            start = 0.0 if near_zero and places[0] >= 0 else places[0] - 0.06 * span
            axis.set_xlim(start, places[-1] + 0.08 * span)
            shown = with_room(places, places[-1] - start)
        labels = [f'{value:,g}' if is_number(value) else str(value) for value in self.values]
        axis.xaxis.set_major_locator(ticker.FixedLocator([float(places[i]) for i in shown]))
        axis.xaxis.set_major_formatter(ticker.FixedFormatter([labels[i] for i in shown]))
        axis.xaxis.set_minor_locator(ticker.NullLocator())

    @property
    def _span(self) -> float:
        places = self.places
        return float(places[-1] - places[0]) or abs(float(places[-1])) or 1.0


def with_room(places: np.ndarray, width: float) -> list[int]:
    """The indices of those ticks that have room for a label; the last one has the first claim, then the first one."""
    kept: list[int] = []
    for index in reversed(range(len(places))):
        if not kept or places[kept[0]] - places[index] >= 0.07 * width:
            kept.insert(0, index)
    if len(kept) > 1:
        kept[0] = 0  # the first is kept already, or stands too near for both
    return kept
