"""Samples and seconds side by side, on logarithmic axes."""

from collections.abc import Sequence

import matplotlib
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from qstr_jax import analysis
from qstr_jax.analysis import Curve
from qstr_jax.plots import ends
from qstr_jax.plots.labels import coarse_key, display, samples_to_threshold
from qstr_jax.plots.panels import by_panel, common_values
from qstr_jax.plots.samples import curve_texts, draw_means, finish_panels, least_lanes, marks_text
from qstr_jax.plots.style import STYLE, Look, frame, looks
from qstr_jax.plots.x_axis import XAxis


def samples_and_seconds(
    rows: pd.DataFrame, seconds: pd.DataFrame, x: str = 'seq_len', *, title: str = '', notes: Sequence[str] = ()
) -> Figure:
    """What a curve costs. Left: samples to threshold of every lane, and the means. Right: seconds of training per lane.

    The left panel is that of `samples_against`.

    Args:
        rows: one row per lane, as for `analysis.summarize`, with the column `cell`; curves of one task.
        seconds: of `analysis.seconds_per_cell`, or any table with `cell` and `seconds_per_lane`.
        x: the setting on the x axis.
        title: above the figure.
        notes: small, under the figure.

    Raises:
        ValueError: as `analysis.summarize`, no seconds, or rows of several tasks.
    """
    curves = _checked_curves(rows, seconds, x)
    look, across = looks(curve.key for curve in curves), XAxis.of(x, rows[x])
    words, values, least = curve_texts(curves, rows, x), common_values(curves, x), least_lanes(rows)
    with matplotlib.rc_context(STYLE):
        key = '; '.join([marks_text(rows, words), *coarse_key(rows, analysis.summarize(rows))])
        figure, (left, right) = frame(2, title, notes, key=key, beside=words)
        for axis in (left, right):
            axis.set_yscale('log')
        named, taken = [], []
        for curve, text in zip(curves, words, strict=True):
            named += draw_means(left, curve, look[curve.key], across, text=text, values=values, least=least)
            taken.append(_draw_seconds(right, curve, look[curve.key], (across, seconds)))
        left.set_ylabel(samples_to_threshold(rows))
        right.set_ylabel('seconds per lane')
        for axis, own in ((left, named), (right, taken)):
            across.draw(axis)
            finish_panels([axis], [own], slopes=across.is_wide)
    return figure


def _checked_curves(rows: pd.DataFrame, seconds: pd.DataFrame, x: str) -> list[Curve]:
    """The curves of the rows; an error before anything is drawn."""
    analysis.require(rows, ('cell',))
    analysis.require(seconds, ('cell', 'seconds_per_lane'))
    analysis.summarize(rows)
    curves = analysis.split_curves(rows, x)
    if len(by_panel(curves)) > 1:
        raise ValueError(f'rows of several tasks differ in {", ".join(curves[0].task)}: choose one')
    return curves


def _draw_seconds(axis: Axes, curve: Curve, look: Look, where: tuple[XAxis, pd.DataFrame]) -> ends.Words:
    """Seconds per lane of one curve; returns its name for its end."""
    (colour, marker, style), (x, seconds) = look, where
    cells = curve.lanes[['cell', x.column]].drop_duplicates()
    taken = cells.merge(seconds, on='cell', suffixes=('', ' of seconds')).groupby(x.column)['seconds_per_lane'].mean()
    places = x.place(taken.index)
    axis.plot(places, taken, color=colour, marker=marker, linestyle=style, gid=f'seconds {curve.key}')
    return ends.Words(places[-1], taken.iloc[-1], display(curve.short), colour, f'end {curve.key}')
