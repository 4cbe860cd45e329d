"""How curves spread over panels, and the marks and ticks that panels share."""

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import ticker
from matplotlib.axes import Axes

from qstr_jax import analysis
from qstr_jax.analysis import no_retrieval
from qstr_jax.analysis.names import is_number, value_text
from qstr_jax.plots.x_axis import XAxis

_MOST_CURVES = 6
_MOST_VALUES = 6


def by_panel(curves: Iterable[analysis.Curve]) -> list[list[analysis.Curve]]:
    """The curves of each panel: those whose tasks have the same settings, at most six."""
    tasks = [list(same) for _, same in itertools.groupby(curves, key=lambda curve: str(dict(curve.task)))]
    return [same[i : i + _MOST_CURVES] for same in tasks for i in range(0, len(same), _MOST_CURVES)]


def common_values(curves: Sequence[analysis.Curve], x: str) -> list[Any]:
    """The values of x that more than half of some curves have."""
    own = [set(curve.lanes[x]) for curve in curves]
    return [value for value in set().union(*own) if 2 * sum(value in values for values in own) > len(own)]


def some_values(values: Sequence[Any]) -> list[Any]:
    """At most six values, the first and the last among them: more could not be told apart.

    Those of a logarithmic axis are spread over it.
    """
    if len(values) <= _MOST_VALUES:
        return list(values)
    is_log = all(is_number(value) and value > 0 for value in values)
    at = np.log(np.asarray(values, float)) if is_log else np.arange(len(values))
    nearest = (np.abs(at - place).argmin() for place in np.linspace(at[0], at[-1], _MOST_VALUES))
    return [values[place] for place in dict.fromkeys(nearest)]


def some_values_key(setting: str, values: Sequence[Any]) -> list[str]:
    """'drawn: N = 4, 8, 16, 64, 128, 256 of 10 values'; empty if all are drawn."""
    first, *others = some_values(values)
    texts = [analysis.setting_text(setting, first), *map(value_text, others)]
    return [f'drawn: {", ".join(texts)} of {len(values)} values'] if len(texts) < len(values) else []


def mark_coarse(axis: Axes, places: np.ndarray, cells: pd.DataFrame, colour: str) -> None:
    """Draws rings around means of one to three checks."""
    some = cells['is_coarse'].eq(True).to_numpy()
    for at, mean in zip(places[some], cells['mean'][some], strict=True):
        axis.plot(at, mean, 'o', color=colour, markersize=9, fillstyle='none', mew=0.7, gid='coarse')


def mark_no_retrieval(axis: Axes, x: XAxis, rows: pd.DataFrame) -> None:
    """Grey behind values at which a predictor that ignores t is below the threshold: exponents leave these out."""
    is_easy = no_retrieval.is_easy(rows).groupby(rows[x.column]).min()
    for value, place in zip(is_easy[is_easy].index, x.place(is_easy[is_easy].index), strict=True):
        axis.axvline(place, color='0.9', linewidth=9, zorder=0.5, gid=f'no retrieval {value}')


def no_retrieval_key(rows: pd.DataFrame) -> list[str]:
    """What the grey of `mark_no_retrieval` means, if there is any."""
    return ['grey: ignoring t is enough, in no exponent'] if no_retrieval.is_easy(rows).any() else []


def log_ticks(axis: Any, form: Any = '{x:g}', subs: tuple[int, ...] = (1, 2, 5), count: int | None = None) -> None:
    """Plain numbers such as 0.05 and 200 on a logarithmic axis, instead of powers of ten."""
    axis.set_major_locator(ticker.LogLocator(subs=subs, numticks=count))
    axis.set_major_formatter(form)
    axis.set_minor_locator(ticker.NullLocator())
