"""Samples against the threshold of the test loss: at which loss do the architectures part?"""

from collections.abc import Sequence

import matplotlib
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from qstr_jax import analysis
from qstr_jax.analysis import no_retrieval
from qstr_jax.plots import ends
from qstr_jax.plots.labels import display, point_text
from qstr_jax.plots.panels import by_panel, common_values
from qstr_jax.plots.samples import draw_means, finish_panels, least_lanes, marks_text
from qstr_jax.plots.style import STYLE, Look, frame, looks
from qstr_jax.plots.x_axis import XAxis

_KEY = 'dashed: the loss of a predictor that ignores t'


def samples_against_threshold(rows: pd.DataFrame, *, title: str = '', notes: Sequence[str] = ()) -> Figure:
    """Mean samples to each threshold, one line per architecture, a panel per N; lower losses stand to the right.

    Lanes are drawn as by `samples_against`. A dashed line is at the loss of the best predictor that ignores t.

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
        names = [display(curve.short) for curve in panels[0]]
        figure, axes = frame(len(panels), title, notes, sharey=True, key=key, beside=names)
        axes[0].set_yscale('log')
        across = XAxis.of('threshold', rows['threshold'])
        least = least_lanes(rows)
        named = [_draw_panel(axis, mine, look, (across, least)) for axis, mine in zip(axes, panels, strict=True)]
        axes[0].set_ylabel('samples to the threshold')
        finish_panels(axes, named, slopes=False)
    return figure


def _draw_panel(
    axis: Axes, curves: list[analysis.Curve], look: dict[str, Look], how: tuple[XAxis, int]
) -> list[ends.Words]:
    """Draws the curves of one panel; returns the words for their ends."""
    (x, least), named, values = how, [], common_values(curves, 'threshold')
    for place, curve in enumerate(curves):
        shift = 0.006 * (place - (len(curves) - 1) / 2)
        found = draw_means(axis, curve, look[curve.key], x, shift, values=values, least=least)
        named += [one for one in found if one.gid == 'learn']
        # Lower losses, where lines end, stand to the right.
        means = analysis.summarize(curve.lanes, ['threshold']).dropna(subset=['mean'])
        for end in means.head(1).to_dict('records'):
            named.append(ends.Words(end['threshold'], end['mean'], display(curve.short), look[curve.key][0], 'end'))
    x.draw(axis)
    for loss in no_retrieval.losses(pd.concat([curve.lanes for curve in curves])).dropna().unique():
        axis.axvline(loss, color='0.5', linestyle='--', linewidth=0.8, zorder=0.5, gid=f'no retrieval {loss:g}')
        axis.set_xlim(right=max(axis.get_xlim()[1], 1.05 * loss))
    axis.invert_xaxis()
    axis.set_xlabel('threshold of the test MSE')
    axis.set_title(point_text(curves[0]), loc='left')
    return named
