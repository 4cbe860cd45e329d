"""Small panels in a grid, one for each task or size: samples to the threshold, or a measure, against a setting."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from qstr_jax import analysis, columns
from qstr_jax.plots import ends
from qstr_jax.plots.labels import coarse_key, display, thousands
from qstr_jax.plots.panels import common_values, log_ticks
from qstr_jax.plots.samples import draw_means, marks_text
from qstr_jax.plots.style import HEIGHT, STYLE, Look, frame, grid, legend_line, looks
from qstr_jax.plots.x_axis import XAxis

Panels = Mapping[str, pd.DataFrame]
_PANEL_WIDTH, _PANEL_HEIGHT, _LEGEND_HEIGHT = 2.2, 1.4, 0.35  # Inches.
_COLUMNS = 3  # most panels in a row


def samples_in_panels(panels: Panels, x: str = 'seq_len', *, title: str = '', notes: Sequence[str] = ()) -> Figure:
    """Samples to the threshold against a setting, a panel for each table of rows; all share their axes.

    Lanes, means and marks are those of `samples_against`; one legend names the architectures, and 'k of n' stands where
    some lanes never learn. There are no exponents, for which the panels are too small.

    Args:
        panels: by title the rows of a panel, one per lane, as for `analysis.summarize`.
        x: the setting on the x axis.
        title: above the figure.
        notes: small, under the figure.

    Raises:
        ValueError: as `analysis.summarize`, or no panels.
    """
    _check(panels, ('model', x))
    rows = pd.concat(panels.values(), ignore_index=True)
    means = pd.concat([analysis.summarize(own, ['model', x]) for own in panels.values()], ignore_index=True)
    key = '; '.join([marks_text(rows), *coarse_key(rows, means)])
    with matplotlib.rc_context(STYLE):
        figure, axes, look = _grid(panels, (title, notes, key))
        across = XAxis.of(x, rows[x])
        named = [_draw_samples(axis, own, look, across) for axis, own in zip(axes, panels.values(), strict=True)]
        low, high = axes[0].get_ylim()
        axes[0].set_ylim(low, high * (high / low) ** 0.1)
        log_ticks(axes[0].yaxis, thousands)
        _label_below(axes)
        figure.supylabel('samples', fontsize=STYLE['axes.labelsize'])
        ends.settle(axes[0])
        for axis, words in zip(axes, named, strict=True):
            ends.at_points(axis, words, above=True)
    return figure


def _check(panels: Panels, needed: Sequence[str]) -> None:
    if not panels:
        raise ValueError('panels: give at least one')
    for rows in panels.values():
        analysis.require(rows, needed)


def _draw_samples(axis: Axes, rows: pd.DataFrame, look: Mapping[str, Look], across: XAxis) -> list[ends.Words]:
    """The curves of a panel; returns how many lanes learn where some do not."""
    models = analysis.model_order(rows)
    axis.set_yscale('log')
    found, curves = [], [_curve(rows, model) for model in models]
    for place, curve in enumerate(curves):
        shift, values = 0.03 * (place - (len(models) - 1) / 2), common_values(curves, across.column)
        found += draw_means(axis, curve, look[curve.model], across, shift, values=values)
    across.draw(axis)
    return [words for words in found if words.gid == 'learn']


def _curve(rows: pd.DataFrame, model: str) -> analysis.Curve:
    places = np.flatnonzero(rows['model'] == model)
    return analysis.Curve(model=model, task={}, settings={}, lanes=rows.iloc[places], places=places)


def measure_in_panels(
    panels: Panels,
    x: str,
    y: str,
    *,
    references: Mapping[str, Mapping[str, pd.Series]] | None = None,
    title: str = '',
    notes: Sequence[str] = (),
) -> Figure:
    """A measure of trained lanes, such as the accuracy, against a setting: lanes, their means and their range.

    Args:
        panels: by title the rows of a panel, one per lane.
        x: the setting on the x axis.
        y: the measure.
        references: grey lines, by the line's name and the panel's title: values of `y` by values of `x`.
        title: above the figure.
        notes: small, under the figure.

    Raises:
        ValueError: no panels, or rows lack columns.
    """
    _check(panels, ('model', x, y))
    key = 'dots: lanes; lines: their means; bands: their range'
    with matplotlib.rc_context(STYLE):
        figure, axes, look = _grid(panels, (title, notes, key))
        values = pd.concat([own[x] for own in panels.values()])
        across = XAxis.of(x, values)
        for axis, (name, own) in zip(axes, panels.items(), strict=True):
            for model in analysis.model_order(own):
                _draw_measure(axis, own[own['model'] == model], look[model], across, y)
            for (label, lines), style in zip((references or {}).items(), ('--', ':', '-.'), strict=False):
                if name in lines:
                    line = lines[name]
                    axis.plot(across.place(line.index), line, color='0.4', linestyle=style, label=label, zorder=1)
            across.draw(axis)
        _label_below(axes)
        if references:
            handles = [line for line in axes[0].get_lines() if line.get_label() in references]
            axes[0].legend(handles=handles, loc='best')
        figure.supylabel(columns.label(y), fontsize=STYLE['axes.labelsize'])
    return figure


def _draw_measure(axis: Axes, lanes: pd.DataFrame, look: Look, x: XAxis, y: str) -> None:
    """The lanes of one architecture, and their means."""
    colour, marker, style = look
    points = lanes.groupby(x.column)[y].agg(['mean', 'min', 'max'])
    places, mean = x.place(points.index), points['mean']
    axis.fill_between(places, points['min'], points['max'], color=colour, alpha=0.15, linewidth=0, zorder=1.5)
    # The first value may stand on the axis, so that it is not clipped.
    line: dict[str, Any] = {'color': colour, 'marker': marker, 'linestyle': style, 'clip_on': False, 'zorder': 3}
    axis.plot(places, mean, gid=f'mean {lanes["model"].iloc[0]}', **line)
    axis.plot(x.place(lanes[x.column], 0.02), lanes[y], '.', color=colour, markersize=3, alpha=0.6, gid='lanes')


def _grid(panels: Panels, words: tuple) -> tuple[Figure, list[Axes], Mapping[str, Look]]:
    """Panels in rows that share their y axis, with a legend of architectures above them."""
    title, notes, key = words
    lines = -(-len(panels) // _COLUMNS)
    figure, _ = frame(min(_COLUMNS, len(panels)), title, notes, key=key, panel_width=_PANEL_WIDTH)
    figure.set_figheight(figure.get_figheight() - HEIGHT + _LEGEND_HEIGHT + _PANEL_HEIGHT * lines)
    axes = grid(figure, len(panels), _COLUMNS, sharey=True)
    for axis, name in zip(axes, panels, strict=True):
        axis.set_title(display(name), loc='left')
    models = analysis.model_order(pd.concat([rows[['model']] for rows in panels.values()]))
    look = looks(models)
    handles = [legend_line(look[model], display(model)) for model in models]
    figure.legend(handles=handles, loc='outside upper center', ncols=len(models))
    return figure, axes, look


def _label_below(axes: Sequence[Axes]) -> None:
    """The x axis has its name once in each column of panels."""
    for axis in axes[:-_COLUMNS]:
        axis.set_xlabel('')
