"""n* against N, q or any other setting on logarithmic axes: how the samples that are needed grow over a wide range."""

import itertools
from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from qstr_jax import analysis
from qstr_jax.analysis import Curve, erms
from qstr_jax.analysis.summary import samples_or_bound
from qstr_jax.plots.labels import coarse_key, display, point_text, power, samples_to_threshold
from qstr_jax.plots.panels import XAxis, by_panel, log_ticks, mark_means, mark_no_retrieval, no_retrieval_key
from qstr_jax.plots.style import STYLE, Look, frame, legend_line, looks, make_room

_LANE_MARKS = {
    'reached': '.', 'censored': '^', 'outraced': '^', 'censored_below': 'v', erms.AT_MOST: 'v', 'diverged': 'x',
}  # fmt: skip
_LINE_STYLES = ('--', ':', '-.', (0, (1, 3)), (0, (4, 1, 1, 1, 1, 1)))
_MARK_WORDS = {
    'censored': '△ more than the budget',
    'outraced': '▲ more than this n, a rival needs less',
    'censored_below': '▽ the smallest n tried was enough',
    erms.AT_MOST: '▼ at most this: just below, the fit is no ERM',
    'diverged': '× diverged',
}


def n_star_against(
    rows: pd.DataFrame,
    x: str = 'seq_len',
    *,
    lines: pd.DataFrame | None = None,
    title: str = '',
    notes: Sequence[str] = (),
) -> Figure:
    """Geometric mean n* on logarithmic axes, with exponents.

    Every lane is a dot, hollow unless it is known to be an ERM (`analysis.erms`). A lane that needs more than the
    largest n of its search is a triangle up there; one that needs less than the smallest is a triangle down, and so is
    one whose n* bounds that of ERMs from above. A line joins the geometric means of the lanes that learn, dotted where
    they are bounds. Curves differ in any setting but those that follow from `x`; settings of the task make panels.

    Args:
        rows: one row per lane, as for `analysis.summarize`.
        x: the setting on the x axis.
        lines: further lines, black: `name`, the column `x`, `samples`, and the settings of the task by which panels
            differ; NaN samples leave a gap.
        title: above the figure.
        notes: small, under the figure.

    Raises:
        ValueError: as `analysis.summarize`.
    """
    means = analysis.summarize(rows)  # Checks the rows before anything is drawn.
    curves = analysis.split_curves(rows, x)
    panels = by_panel(curves)
    look = looks(curve.key for curve in curves)
    with matplotlib.rc_context(STYLE):
        key = '; '.join([marks_text(rows), *coarse_key(rows, means), *no_retrieval_key(rows)])
        figure, axes = frame(len(panels), title, notes, sharey=True, key=key)
        for axis, mine in zip(axes, panels, strict=True):
            _draw_panel(axis, mine, look, XAxis.of(x, rows[x], prefer_log=True), lines)
        axes[0].set_ylabel(samples_to_threshold(rows))
        num_lines = 0 if lines is None else lines['name'].nunique()
        make_room(figure, axes, max(map(len, panels)) + num_lines + (len(panels) > 1))
    return figure


def _draw_panel(axis: Axes, curves: list[Curve], look: dict[str, Look], x: XAxis, lines: pd.DataFrame | None) -> None:
    for place, curve in enumerate(curves):
        draw_means(axis, curve, look[curve.key], x, 0.006 * (place - len(curves) / 2))
    axis.set_yscale('log')
    x.draw(axis)
    mark_no_retrieval(axis, x, pd.concat([curve.lanes for curve in curves]))
    log_ticks(axis.yaxis)
    drawn = [] if lines is None else _draw_lines(axis, lines, curves[0], x)
    _legend(axis, curves, look, x.column, drawn)


def marks_text(rows: pd.DataFrame) -> str:
    """What the marks of `draw_means` are.

    Args:
        rows: those that are drawn.
    """
    outcomes = set(erms.with_bounds(rows)['outcome'])
    marks = [words for outcome, words in _MARK_WORDS.items() if outcome in outcomes]
    lanes = 'dots: ERMs; rings: lanes that are none, in no exponent' if erms.is_known(rows).any() else 'rings: lanes'
    return '; '.join([lanes, *marks, 'lines: geometric means of lanes that learn, dotted where they are bounds'])


def draw_means(axis: Axes, curve: Curve, look: Look, x: XAxis, shift: float) -> None:
    """Draws one curve: the line of means, and every lane.

    Args:
        axis: the panel.
        curve: of `analysis.split_curves`.
        look: of the curve.
        x: the x axis.
        shift: of the lanes to the right, as a share of the axis.
    """
    colour = look[0]
    _draw_line(axis, curve, look, x, shift)
    is_filled = erms.is_known(curve.lanes) & ~erms.is_short(curve.lanes)
    for (outcome, filled), lanes in erms.with_bounds(curve.lanes).groupby(['outcome', is_filled], observed=True):
        axis.plot(
            x.place(lanes[x.column], shift),
            samples_or_bound(lanes).to_numpy(),
            _LANE_MARKS[str(outcome)],
            color=colour,
            markersize=4,
            alpha=0.7,
            fillstyle='full' if filled or outcome == 'outraced' else 'none',
            gid=str(outcome),
        )


def _draw_line(axis: Axes, curve: Curve, look: Look, x: XAxis, shift: float) -> None:
    """The line of means, of the lanes that the exponent is of: without those that are no ERMs."""
    colour, marker, style = look
    lanes = curve.lanes[~erms.is_short(curve.lanes)]
    if lanes.empty:
        return
    cells = analysis.summarize(lanes, [x.column])
    cells = cells[cells['num_learn'].gt(0) | cells['num_outraced'].gt(0)]
    places = x.place(cells[x.column], shift)
    order = np.argsort(places)
    cells, places = cells.iloc[order], places[order]
    mean, is_bound = cells['mean'].to_numpy(), (cells['lower_bound'] | cells['upper_bound']).to_numpy(bool)
    axis.plot(places, mean, color=colour, linestyle=':', linewidth=0.8, gid=f'bounds {curve.key}')
    axis.plot(places, np.where(is_bound, np.nan, mean), color=colour, linestyle=style, gid=f'mean {curve.key}')
    for some, face in ((~is_bound, colour), (is_bound, 'white')):
        axis.plot(places[some], mean[some], marker, color=colour, markerfacecolor=face)
    mark_means(axis, places, cells, colour)


def _of_panel(lines: pd.DataFrame, curve: Curve) -> pd.DataFrame:
    """The lines that belong to the panel of a curve."""
    for name, value in curve.task.items():
        if name in lines.columns:
            lines = lines[lines[name].isna() if pd.isna(value) else lines[name].eq(value)]
    return lines


def _draw_lines(axis: Axes, lines: pd.DataFrame, curve: Curve, x: XAxis) -> list[Line2D]:
    """Draws the further lines of a curve's panel, and returns their entries of the legend."""
    entries = []
    for name, style in zip(lines['name'].unique(), itertools.cycle(_LINE_STYLES), strict=False):
        points = _of_panel(lines[lines['name'] == name], curve)
        points = points[points[x.column].isin(x.values)].sort_values(x.column)
        if points['samples'].isna().all():
            continue
        look: dict[str, Any] = {'color': '0.25', 'linestyle': style, 'marker': '.', 'markersize': 3, 'linewidth': 1.0}
        axis.plot(x.place(points[x.column]), points['samples'].to_numpy(float), gid=f'line {name}', **look)
        entries.append(Line2D([], [], label=display(name), **look))
    return entries


def _legend(axis: Axes, curves: list[Curve], look: dict[str, Look], x: str, lines: list[Line2D]) -> None:
    """A line per curve, with its exponent, and the further lines."""
    entries = [
        legend_line(look[curve.key], f'{display(curve.name)}  {power(analysis.exponent(curve.lanes, x), x)}')
        for curve in curves
    ]
    axis.legend(
        handles=[*entries, *lines], loc='lower left', bbox_to_anchor=(0, 1.0), borderaxespad=0.2, alignment='left',
        title=point_text(curves[0]) or None,
    )  # fmt: skip
