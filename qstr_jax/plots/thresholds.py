"""Samples against the threshold of the test loss: at which loss do the architectures part?"""

from collections.abc import Sequence

import matplotlib
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from qstr_jax import analysis
from qstr_jax.analysis import no_retrieval
from qstr_jax.plots.labels import display, point_text
from qstr_jax.plots.n_star import draw_means, marks_text
from qstr_jax.plots.panels import XAxis, by_panel, log_ticks
from qstr_jax.plots.style import STYLE, Look, frame, legend_line, looks, make_room

_KEY = 'dashed: the loss of a predictor that ignores t'


def samples_against_threshold(rows: pd.DataFrame, *, title: str = '', notes: Sequence[str] = ()) -> Figure:
    """Mean samples to each threshold, one line per architecture, a panel per N; lower losses stand to the right.

    Lanes are drawn as by `n_star_against`. A dashed line is at the loss of the best predictor that ignores t.

    Args:
        rows: of `analysis.crossings.at_thresholds`.
        title: above the figure.
        notes: small, under the figure.

    Raises:
        ValueError: as `analysis.summarize`.
    """
    analysis.summarize(rows)  # Checks the rows before anything is drawn.
    curves = analysis.split_curves(rows, 'threshold')
    panels = by_panel(curves)
    look = looks(curve.key for curve in curves)
    with matplotlib.rc_context(STYLE):
        key = '; '.join([marks_text(rows), *([_KEY] if no_retrieval.losses(rows).notna().any() else [])])
        figure, axes = frame(len(panels), title, notes, sharey=True, key=key)
        for axis, mine in zip(axes, panels, strict=True):
            _draw_panel(axis, mine, look, XAxis.of('threshold', rows['threshold'], prefer_log=True))
        axes[0].set_ylabel('samples to the threshold')
        make_room(figure, axes, max(map(len, panels)) + 1 + (len(panels) > 1))
    return figure


def _draw_panel(axis: Axes, curves: list[analysis.Curve], look: dict[str, Look], x: XAxis) -> None:
    """The curves of one panel."""
    for place, curve in enumerate(curves):
        draw_means(axis, curve, look[curve.key], x, 0.006 * (place - len(curves) / 2))
    axis.set_yscale('log')
    x.draw(axis)
    for loss in no_retrieval.losses(pd.concat([curve.lanes for curve in curves])).dropna().unique():
        axis.axvline(loss, color='0.5', linestyle='--', linewidth=0.8, zorder=0.5, gid=f'no retrieval {loss:g}')
        axis.set_xlim(right=max(axis.get_xlim()[1], 1.05 * loss))
    axis.invert_xaxis()
    axis.set_xlabel('threshold of the test MSE')
    log_ticks(axis.yaxis)
    entries = [legend_line(look[curve.key], display(curve.name)) for curve in curves]
    axis.legend(
        handles=entries, loc='lower left', bbox_to_anchor=(0, 1.0), borderaxespad=0.2, alignment='left',
        title=point_text(curves[0]) or None,
    )  # fmt: skip
