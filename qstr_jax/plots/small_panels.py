"""Small panels in a grid, one for each task or size: samples to the threshold, or a measure, against a setting."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from qstr_jax import analysis, columns
from qstr_jax.plots import ends
from qstr_jax.plots.labels import coarse_key, display, thousands, wrap
from qstr_jax.plots.panels import common_values, log_ticks
from qstr_jax.plots.samples import draw_means, least_lanes, marks_text
from qstr_jax.plots.style import HEIGHT, LETTER, STYLE, Look, frame, grid, legend_line, looks
from qstr_jax.plots.x_axis import XAxis

Panels = Mapping[str, pd.DataFrame]
_PANEL_WIDTH, _PANEL_HEIGHT, _LEGEND_HEIGHT = 2.2, 1.4, 0.35  # Inches.
_COLUMNS = 3  # most panels in a row
_REFERENCES: tuple[Any, ...] = ('--', ':', '-.')
# Nearer to a side than this share of the panel, words begin or end there.
_EDGE = 0.15
_SMALL: dict[str, Any] = {'fontsize': 7, 'color': '0.3'}
_LETTERS = 'letters: initials of architectures of which no lane learns'


def samples_in_panels(
    panels: Panels,
    x: str = 'seq_len',
    *,
    remarks: Mapping[str, str] | None = None,
    title: str = '',
    notes: Sequence[str] = (),
) -> Figure:
    """Samples to the threshold against a setting, a panel for each table of rows; all share their axes.

    Lanes, means and marks are those of `samples_against`; one legend names the architectures. 'k of n' stands where
    some lanes never learn, at the top with the initials of the architectures that have no lane that learns. There
    are no exponents, for which the panels are too small.

    Args:
        panels: by title the rows of a panel, one per lane, as for `analysis.summarize`.
        x: the setting on the x axis.
        remarks: words in the corner of a panel, by its title.
        title: above the figure.
        notes: small, under the figure.

    Raises:
        ValueError: as `analysis.summarize`, or no panels.
    """
    _check(panels, ('model', x))
    rows = pd.concat(panels.values(), ignore_index=True)
    means = pd.concat([analysis.summarize(own, ['model', x]) for own in panels.values()], ignore_index=True)
    letters = [_LETTERS] if _none_learns(means).any() else []
    key = '; '.join([marks_text(rows), *letters, *coarse_key(rows, means)])
    with matplotlib.rc_context(STYLE):
        figure, axes, look = _grid(panels, (title, notes, key))
        across = XAxis.of(x, rows[x])
        least = least_lanes(rows)
        named = [_draw_samples(axis, own, look, across, least) for axis, own in zip(axes, panels.values(), strict=True)]
        low, high = axes[0].get_ylim()
        axes[0].set_ylim(low, high * (high / low) ** 0.15)  # Room for words.
        log_ticks(axes[0].yaxis, thousands)
        _label_below(axes)
        figure.supylabel('samples', fontsize=STYLE['axes.labelsize'])
        for axis, own in zip(axes, panels.values(), strict=True):
            _write_none(axis, own, across)
        ends.settle(axes[0])
        for axis, (name, words) in zip(axes, zip(panels, named, strict=True), strict=True):
            ends.at_points(axis, words, above=True)
            axis.text(0.03, 0.97, (remarks or {}).get(name, ''), transform=axis.transAxes, va='top', **_SMALL)
    return figure


def _check(panels: Panels, needed: Sequence[str]) -> None:
    if not panels:
        raise ValueError('panels: give at least one')
    for rows in panels.values():
        analysis.require(rows, needed)


def _draw_samples(
    axis: Axes, rows: pd.DataFrame, look: Mapping[str, Look], across: XAxis, least: int
) -> list[ends.Words]:
    """The curves of a panel; returns how many lanes learn where some do not."""
    models = analysis.model_order(rows)
    axis.set_yscale('log')
    found, curves = [], [_curve(rows, model) for model in models]
    for place, curve in enumerate(curves):
        shift, values = 0.03 * (place - (len(models) - 1) / 2), common_values(curves, across.column)
        found += draw_means(axis, curve, look[curve.model], across, shift, values=values, least=least)
    across.draw(axis)
    return [words for words in found if words.gid == 'learn']


def _write_none(axis: Axes, rows: pd.DataFrame, across: XAxis) -> None:
    """'RF: 0/5' at the top, over the values at which no lane of these architectures learns."""
    cells = analysis.summarize(rows, ['model', across.column])
    for (value, count), own in cells[_none_learns(cells)].groupby([across.column, 'num_judged']):
        at = (axis.transScale + axis.transLimits).transform((across.place([value])[0], 1.0))[0]
        side = 'left' if at < _EDGE else 'right' if at > 1 - _EDGE else 'center'
        text = f'{_initials(analysis.model_order(own))}: 0/{count}'
        at = {'left': 0.02, 'right': 1.0}.get(side, at)
        axis.text(at, 1.0, text, transform=axis.transAxes, va='top', ha=side, gid='none learn', **_SMALL)


def _none_learns(cells: pd.DataFrame) -> pd.Series:
    """At which points all lanes need more than the budget."""
    return cells['num_learn'].eq(0) & cells['num_outraced'].eq(0) & cells['lower_bound'].eq(True)


def _initials(models: Iterable[str]) -> str:
    return ''.join(display(model)[0].upper() for model in models)


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
        figure, axes, look = _grid(panels, (title, notes, key), list(references or {}))
        values = pd.concat([own[x] for own in panels.values()])
        across = XAxis.of(x, values)
        for axis, (name, own) in zip(axes, panels.items(), strict=True):
            for model in analysis.model_order(own):
                _draw_measure(axis, own[own['model'] == model], look[model], across, y)
            for (label, lines), style in zip((references or {}).items(), _REFERENCES, strict=False):
                if name in lines:
                    line = lines[name]
                    axis.plot(
                        across.place(line.index), line, color='0.4', linestyle=style, gid=f'reference {label}', zorder=1
                    )
            across.draw(axis)
        _label_below(axes)
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


def _grid(
    panels: Panels, words: tuple, references: Sequence[str] = ()
) -> tuple[Figure, list[Axes], Mapping[str, Look]]:
    """Panels in rows that share their y axis, with a legend of architectures and grey lines above them."""
    title, notes, key = words
    lines = -(-len(panels) // _COLUMNS)
    figure, _ = frame(min(_COLUMNS, len(panels)), '', notes, key=key, panel_width=_PANEL_WIDTH)
    figure.set_figheight(figure.get_figheight() - HEIGHT + _LEGEND_HEIGHT + _PANEL_HEIGHT * lines)
    axes = grid(figure, len(panels), _COLUMNS, sharey=True)
    for axis, name in zip(axes, panels, strict=True):
        axis.set_title(display(name), loc='left')
    models = analysis.model_order(pd.concat([rows[['model']] for rows in panels.values()]))
    look = looks(models)
    greys = zip(references, _REFERENCES, strict=False)
    handles = [legend_line(look[model], display(model)) for model in models]
    _legend(figure, title, [*handles, *(Line2D([], [], color='0.4', linestyle=s, label=name) for name, s in greys)])
    return figure, axes, look


def _legend(figure: Figure, title: str, handles: Sequence[Line2D]) -> None:
    """The title and the legend above the panels, in a column where a line would be too long."""
    width = figure.get_figwidth()
    letters = sum(len(str(handle.get_label())) + 8 for handle in handles)
    num_columns = len(handles) if letters * LETTER < width else 1
    lines = wrap(display(title), int(15.5 * width))
    rows = len(handles) // num_columns - 1 + len(lines)
    figure.set_figheight(figure.get_figheight() + 0.15 * rows + 0.05 * bool(lines))
    size = STYLE['figure.titlesize']
    figure.legend(
        handles=handles, loc='outside upper center', ncols=num_columns, title='\n'.join(lines), title_fontsize=size
    )


def _label_below(axes: Sequence[Axes]) -> None:
    """Names the x axis once in each column of panels."""
    for axis in axes[:-_COLUMNS]:
        axis.set_xlabel('')
