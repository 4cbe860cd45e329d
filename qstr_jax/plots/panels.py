"""How curves spread over panels, and the x axis that they share: any setting, numbers or names."""

import dataclasses
import itertools
import numbers
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import ticker
from matplotlib.axes import Axes

from qstr_jax import analysis, columns
from qstr_jax.analysis import no_retrieval
from qstr_jax.plots import ends

# Numbers that spread over more than this factor get a logarithmic axis, unless they are integers such as N.
_WIDE = 20
_MOST_CURVES = 6


def by_panel(curves: Iterable[analysis.Curve]) -> list[list[analysis.Curve]]:
    """The curves of each panel: those whose tasks have the same settings, at most six."""
    tasks = [list(same) for _, same in itertools.groupby(curves, key=lambda curve: str(dict(curve.task)))]
    return [same[i : i + _MOST_CURVES] for same in tasks for i in range(0, len(same), _MOST_CURVES)]


@dataclasses.dataclass(frozen=True, kw_only=True)
class XAxis:
    """An axis over the values of one setting. Numbers stand where they belong, names side by side.

    Attributes:
        column: the setting.
        values: its distinct values, in order.
        is_log: whether the axis is logarithmic.
    """

    column: str
    values: tuple
    is_log: bool

    @classmethod
    def of(cls, column: str, values: Iterable[Any], prefer_log: bool = False) -> 'XAxis':
        """The axis of some values."""
        distinct = tuple(analysis.ordered(values))
        is_positive = all(_is_number(value) and value > 0 for value in distinct)
        is_wide = is_positive and distinct[-1] > _WIDE * distinct[0] and any(value % 1 for value in distinct)
        return cls(column=column, values=distinct, is_log=is_positive and (prefer_log or is_wide))

    @property
    def has_numbers(self) -> bool:
        """Whether all values are numbers."""
        return all(map(_is_number, self.values))

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
        labels = [f'{value:g}' if _is_number(value) else str(value) for value in self.values]
        axis.xaxis.set_major_locator(ticker.FixedLocator([float(places[i]) for i in shown]))
        axis.xaxis.set_major_formatter(ticker.FixedFormatter([labels[i] for i in shown]))
        axis.xaxis.set_minor_locator(ticker.NullLocator())

    @property
    def _span(self) -> float:
        places = self.places
        return float(places[-1] - places[0]) or abs(float(places[-1])) or 1.0


def mark_means(axis: Axes, places: np.ndarray, cells: pd.DataFrame, colour: str) -> list[ends.Words]:
    """Draws a ring around a mean of one to three checks; returns 'k of n' for one of which some lanes never learn."""
    shares = []
    for at, cell in zip(places, cells.to_dict('records'), strict=True):
        if cell['is_coarse']:
            axis.plot(at, cell['mean'], 'o', color=colour, markersize=9, fillstyle='none', mew=0.7, gid='coarse')
        if 0 < cell['num_learn'] < cell['num_judged']:
            share = f'{cell["num_learn"]} of {cell["num_judged"]}'
            shares.append(ends.Words(at, cell['mean'], share, colour, 'learn'))
    return shares


def mark_no_retrieval(axis: Axes, x: XAxis, rows: pd.DataFrame) -> None:
    """Grey behind those values at which a predictor that ignores t is below the threshold: no exponent knows them."""
    is_easy = no_retrieval.is_easy(rows).groupby(rows[x.column]).min()
    for value, place in zip(is_easy[is_easy].index, x.place(is_easy[is_easy].index), strict=True):
        axis.axvline(place, color='0.9', linewidth=9, zorder=0.5, gid=f'no retrieval {value}')


def no_retrieval_key(rows: pd.DataFrame) -> list[str]:
    """What the grey of `mark_no_retrieval` means, if there is any."""
    return ['grey: ignoring t is enough, in no exponent'] if no_retrieval.is_easy(rows).any() else []


def with_room(places: np.ndarray, width: float) -> list[int]:
    """The indices of those ticks that have room for a label; the last one has the first claim."""
    kept: list[int] = []
    for index in reversed(range(len(places))):
        if not kept or places[kept[0]] - places[index] >= 0.07 * width:
            kept.insert(0, index)
    return kept


def log_ticks(axis: Any, form: Any = '{x:g}', subs: tuple[int, ...] = (1, 2, 5), count: int | None = None) -> None:
    """Plain numbers such as 0.05 and 200 on a logarithmic axis, instead of powers of ten."""
    axis.set_major_locator(ticker.LogLocator(subs=subs, numticks=count))
    axis.set_major_formatter(form)
    axis.set_minor_locator(ticker.NullLocator())


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Number) and not isinstance(value, (bool, np.bool_))
