"""Samples to a threshold over two settings: heat maps with the published setting framed."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import pandas as pd
from matplotlib import colormaps, colors, patches
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from qstr_jax import analysis, columns
from qstr_jax.analysis import resolution
from qstr_jax.analysis.names import value_text
from qstr_jax.analysis.samples_table import mean_text
from qstr_jax.plots.labels import display
from qstr_jax.plots.style import HEIGHT, STYLE, frame

_ROW_HEIGHT = 0.34  # Inches.
_KEY = (
    'means of the lanes that learn, the lighter the fewer samples; k of n: lanes that learn, where some do not; pale: '
    'fewer than half'
)
_FRAME_KEY = 'orange frame: the published setting'


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Grid:
    """What the panels share: the settings on both axes, their values in order, and the colours."""

    x: str
    y: str
    xs: list[Any]
    ys: list[Any]
    norm: colors.LogNorm


def samples_heatmap(
    rows: pd.DataFrame,
    x: str,
    y: str,
    *,
    panels: str | None = None,
    published: Mapping[str, Any] | None = None,
    top: str | None = None,
    title: str = '',
    notes: Sequence[str] = (),
) -> Figure:
    """Mean samples to threshold, a cell per (x, y), a panel per value of a third setting.

    The rows are of one architecture, unless y is 'model': then the architecture with most lanes that learn is on top.

    A mean is over the lanes that learn; where some do not, the number of those that do stands below it. A cell with
    outraced lanes is hatched and has '≥'. A cell in which no lane learns is grey and says why; a cell without lanes is
    empty. The panels share their colours.

    Args:
        rows: one row per lane, as for `analysis.summarize`.
        x: the setting on the x axis.
        y: the setting on the y axis.
        panels: the setting that makes panels.
        published: column → value of the published setting; the cells that have all of it get a frame.
        top: a numeric column whose mean over the lanes of each x stands at the top, such as the coherence.
        title: above the figure.
        notes: small, under the figure.

    Raises:
        ValueError: as `analysis.summarize`, or rows of several architectures that are not an axis.
    """
    settings = [x, y, *([panels] if panels else [])]
    analysis.require(rows, ('model', *settings, *([top] if top else [])))
    rows = rows.dropna(subset=settings)
    grid = _grid(rows, x, y, settings)
    keys = analysis.ordered(rows[panels]) if panels else [None]
    with matplotlib.rc_context(STYLE):
        coarse = [resolution.note(rows)] if analysis.summarize(rows, settings)['is_coarse'].any() else []
        key = '; '.join([_KEY, *([_FRAME_KEY] if _framed(grid, published or {}) else []), *coarse])
        names = map(value_text, grid.ys) if y == 'model' else ()
        figure, axes = frame(len(keys), title, notes, sharey=True, key=key, beside=names)
        figure.set_figheight(figure.get_figheight() - HEIGHT + _ROW_HEIGHT * len(grid.ys) + (1.0 if top else 0.75))
        for axis, key in zip(axes, keys, strict=True):
            lanes = rows[rows[panels] == key] if panels else rows
            if panels:
                axis.set_title(display(analysis.setting_text(panels, key)))
            is_published = published and published.get(panels or '', key) == key
            _draw_panel(axis, lanes, grid, published if is_published else None, top)
        axes[0].set_ylabel(columns.label(y))
    return figure


def _grid(rows: pd.DataFrame, x: str, y: str, settings: list[str]) -> _Grid:
    """What the panels share."""
    if y != 'model' and rows['model'].nunique() > 1:
        raise ValueError(f'rows of several architectures: {", ".join(analysis.model_order(rows))}')
    summary = analysis.summarize(rows, settings)
    seen = summary['mean'][summary['num_learn'] > 0]
    norm = colors.LogNorm(seen.min(), max(seen.max(), 1.01 * seen.min())) if len(seen) else colors.LogNorm(1, 10)
    learn = summary.groupby(y)['num_learn'].sum()
    ys = list(learn.sort_values(kind='stable').index) if y == 'model' else analysis.ordered(summary[y])
    return _Grid(x=x, y=y, xs=analysis.ordered(summary[x]), ys=ys, norm=norm)


def _draw_panel(
    axis: Axes, lanes: pd.DataFrame, grid: _Grid, published: Mapping[str, Any] | None, top: str | None
) -> None:
    """Cells, ticks and labels of one panel, the frame of the published setting and the means at the top."""
    for _, cell in analysis.summarize(lanes, [grid.x, grid.y]).iterrows():
        _draw_cell(axis, cell, grid)
    axis.set(xlim=(-0.5, len(grid.xs) - 0.5), ylim=(-0.5, len(grid.ys) - 0.5), xlabel=columns.label(grid.x))
    axis.set_xticks(range(len(grid.xs)), map(value_text, grid.xs))
    axis.set_yticks(range(len(grid.ys)), map(value_text, grid.ys))
    axis.grid(False)
    axis.tick_params(length=0)
    if published:
        _mark(axis, published, grid)
    if top:
        _top_axis(axis, lanes, top, grid)


def _draw_cell(axis: Axes, cell: pd.Series, grid: _Grid) -> None:
    column, row = grid.xs.index(cell[grid.x]), grid.ys.index(cell[grid.y])
    reached = cell['num_learn'] > 0
    face: tuple[float, ...] = colors.to_rgb(colormaps['viridis_r'](grid.norm(cell['mean'])) if reached else '0.85')
    if reached and cell['num_learn'] < cell['num_judged'] / 2:
        face = tuple(0.4 * part + 0.6 * 0.85 for part in face)
    is_dark = reached and colors.rgb_to_hsv(face)[2] < 0.62
    square = patches.Rectangle((column - 0.5, row - 0.5), 1, 1, facecolor=face, edgecolor='white', linewidth=0.8)
    square.set(hatch='////' if reached and cell['lower_bound'] else None, gid=f'cell {column} {row}')
    axis.add_patch(square)
    colour = 'white' if is_dark else 'black'
    axis.text(column, row, _cell_text(cell), ha='center', va='center', fontsize=7, color=colour)


def _cell_text(cell: pd.Series) -> str:
    """'13.6k', '13.6k 3 of 5', '~ 1.28k', '≥ 200k', 'diverged', 'not fitted' or '> 200k' for a row of `summarize`."""
    if cell['num_learn'] == 0:
        ended = 'not fitted' if cell['num_unfitted'] else 'diverged'
        return f'> {analysis.short_number(cell["mean"])}' if cell['lower_bound'] else ended
    some = f'\n{cell["num_learn"]} of {cell["num_judged"]}' if cell['num_learn'] < cell['num_judged'] else ''
    return mean_text(cell) + some


def _mark(axis: Axes, published: Mapping[str, Any], grid: _Grid) -> None:
    """A frame around the cells of the published setting."""
    for column, row in _framed(grid, published):
        square = patches.Rectangle((column - 0.46, row - 0.46), 0.92, 0.92, fill=False, edgecolor='#D55E00')
        square.set(linewidth=2.0, zorder=3, gid=f'published {column} {row}')
        axis.add_patch(square)


def _framed(grid: _Grid, published: Mapping[str, Any]) -> list[tuple[int, int]]:
    """Column and row of the cells of the published setting."""
    if not {grid.x, grid.y} & set(published):
        return []
    return [
        (column, row)
        for column, x in enumerate(grid.xs)
        for row, y in enumerate(grid.ys)
        if published.get(grid.x, x) == x and published.get(grid.y, y) == y
    ]


def _top_axis(axis: Axes, rows: pd.DataFrame, top: str, grid: _Grid) -> None:
    """The mean of a column at each x, above the panel."""
    means = rows.groupby(grid.x)[top].mean()
    twin = axis.secondary_xaxis('top')
    twin.set_xticks(range(len(grid.xs)), [f'{means[x]:.2f}' if x in means else '' for x in grid.xs])
    twin.set_xlabel(columns.label(top))
    twin.tick_params(length=0)
    twin.spines['top'].set_visible(False)
