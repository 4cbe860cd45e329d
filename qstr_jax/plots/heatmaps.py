"""Samples to a threshold over two settings: heat maps with the published setting marked."""

from collections.abc import Mapping, Sequence

import matplotlib
import numpy as np
import pandas as pd
from matplotlib import colormaps, colors, patches
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from qstr_jax import analysis
from qstr_jax.plots.style import STYLE, display, frame

_NAMES = {'learning_rate': 'learning rate', 'weight_decay': 'weight decay', 'encoding_dim': '$d_e$',
          'encoding_scale': 'encodings', 'transformer_mlp_width': 'width', 'rnn_width': 'width', 'ffn_widths': 'widths',
          'encoding_coherence': 'mean largest coherence'}  # fmt: skip
_CELL = 0.34  # Inches of a row.


def samples_heatmap(
    rows: pd.DataFrame,
    x: str,
    y: str,
    panels: str | None = None,
    published: Mapping | None = None,
    top: str | None = None,
    title: str = '',
    notes: Sequence[str] = (),
) -> Figure:
    """Mean samples to threshold of one architecture, a cell per (x, y), a panel per value of `panels`.

    A cell with censored lanes is a lower bound, '≥', and hatched; one without a lane that reached is grey and says
    why; one without lanes is empty. Colours are logarithmic and shared by the panels.

    Args:
        rows: one row per lane, as for `analysis.summarize`, of one architecture.
        x, y, panels: columns of `rows`.
        published: column → value of the published setting; the cells that have all of it get a frame.
        top: a numeric column whose mean over the lanes of each x stands at the top, such as the coherence.
        title, notes: above the figure, and small under it.

    Returns:
        The figure.

    Raises:
        ValueError: as `analysis.summarize`, or rows of several architectures.
    """
    settings = [x, y, *([panels] if panels else [])]
    analysis.require(rows, settings)
    if rows['model'].nunique() > 1:
        raise ValueError(f'rows of several architectures: {", ".join(analysis.model_order(rows))}')
    summary = analysis.summarize(rows, settings)
    keys = order(summary[panels]) if panels else [None]
    seen = summary['mean'][summary['num_reached'] > 0]
    norm = colors.LogNorm(seen.min(), max(seen.max(), 1.01 * seen.min())) if len(seen) else colors.LogNorm(1, 10)
    with matplotlib.rc_context(STYLE):
        figure, axes = frame(len(keys), title, notes, sharey=True)
        height = _CELL * summary[y].nunique() + (1.0 if top else 0.75)
        figure.set_figheight(figure.get_figheight() - 2.2 + height)
        for axis, key in zip(axes, keys, strict=True):
            mine = summary if key is None else summary[summary[panels] == key]
            _draw_panel(axis, mine, x, y, norm, (order(summary[x]), order(summary[y])))
            _mark(axis, published or {}, x, y, panels, key, (order(summary[x]), order(summary[y])))
            if key is not None:
                axis.set_title(f'{_NAMES.get(panels, display(panels))} {key}')
            if top:
                _top_axis(axis, rows if key is None else rows[rows[panels] == key], x, top, order(summary[x]))
        axes[0].set_ylabel(_NAMES.get(y, display(y)))
    return figure


def order(values) -> list:
    """Distinct values as the axis shows them: numbers by size, '60,1000' by its numbers, names by alphabet."""

    def key(value):
        parts = [float(part) if part.replace('.', '').isdigit() else part for part in str(value).split(',')]
        return parts if not isinstance(value, (int, float, np.number)) else [float(value)]

    return sorted(set(values), key=key)


def _draw_panel(axis: Axes, summary: pd.DataFrame, x: str, y: str, norm, ticks) -> None:
    xs, ys = ticks
    colour_of = colormaps['viridis_r']
    for _, cell in summary.iterrows():
        column, row = xs.index(cell[x]), ys.index(cell[y])
        reached = cell['num_reached'] > 0
        face = colour_of(norm(cell['mean'])) if reached else '0.85'
        hatch = '////' if reached and cell['lower_bound'] else None
        axis.add_patch(
            patches.Rectangle(
                (column - 0.5, row - 0.5),
                1,
                1,
                facecolor=face,
                edgecolor='white',
                linewidth=0.8,
                hatch=hatch,
                gid=f'cell {column} {row}',
            )
        )
        is_dark = reached and colors.rgb_to_hsv(face[:3])[2] < 0.62
        axis.text(
            column, row, cell_text(cell), ha='center', va='center', fontsize=6, color='white' if is_dark else 'black'
        )
    axis.set(xlim=(-0.5, len(xs) - 0.5), ylim=(-0.5, len(ys) - 0.5), xlabel=_NAMES.get(x, display(x)))
    axis.set_xticks(range(len(xs)), [_tick(value) for value in xs])
    axis.set_yticks(range(len(ys)), [_tick(value) for value in ys])
    axis.grid(False)
    axis.tick_params(length=0)


def cell_text(cell: pd.Series) -> str:
    """'13.6k', '≥ 200k', 'diverged' or '> budget' for one row of `analysis.summarize`."""
    if cell['num_reached'] == 0:
        return f'> {analysis.short_number(cell["mean"])}' if cell['num_censored'] else 'diverged'
    text = analysis.short_number(cell['mean'])
    return f'≥ {text}' if cell['lower_bound'] else text + ('*' if cell['num_diverged'] else '')


def _mark(axis: Axes, published: Mapping, x, y, panels, key, ticks) -> None:
    """A frame around the cells of the published setting."""
    if panels in published and published[panels] != key:
        return
    columns = [i for i, value in enumerate(ticks[0]) if x not in published or value == published[x]]
    lines = [i for i, value in enumerate(ticks[1]) if y not in published or value == published[y]]
    if not {x, y} & set(published):
        return
    for column in columns:
        for row in lines:
            axis.add_patch(
                patches.Rectangle(
                    (column - 0.46, row - 0.46),
                    0.92,
                    0.92,
                    fill=False,
                    edgecolor='#D55E00',
                    linewidth=2.0,
                    zorder=3,
                    gid=f'published {column} {row}',
                )
            )


def _top_axis(axis: Axes, rows: pd.DataFrame, x: str, top: str, xs: list) -> None:
    means = rows.groupby(x)[top].mean()
    twin = axis.secondary_xaxis('top')
    twin.set_xticks(range(len(xs)), [f'{means[value]:.2f}' if value in means else '' for value in xs])
    twin.set_xlabel(_NAMES.get(top, display(top)))
    twin.tick_params(length=0)
    twin.spines['top'].set_visible(False)


def _tick(value) -> str:
    return f'{value:g}' if isinstance(value, (int, float, np.number)) else str(value)
