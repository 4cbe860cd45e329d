"""Samples and seconds side by side, on logarithmic axes."""

from collections.abc import Sequence

import matplotlib
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from qstr_jax import analysis
from qstr_jax.analysis import Curve
from qstr_jax.analysis.summary import NEED_MORE, samples_or_bound
from qstr_jax.plots.labels import coarse_key, display, power, samples_to_threshold, thousands
from qstr_jax.plots.panels import XAxis, by_panel, log_ticks, mark_means
from qstr_jax.plots.style import STYLE, Look, frame, looks, make_room


def samples_and_seconds(
    rows: pd.DataFrame,
    seconds: pd.DataFrame,
    x: str = 'seq_len',
    *,
    title: str = '',
    notes: Sequence[str] = (),
) -> Figure:
    """What a curve costs. Left: samples to threshold of every lane, and the means. Right: seconds of training per lane.

    Means are geometric, of the lanes that learn. A lane that is censored or outraced is an open triangle at its last
    samples; a mean that is a bound is left out.

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
    look, across = looks(curve.key for curve in curves), XAxis.of(x, rows[x], prefer_log=True)
    with matplotlib.rc_context(STYLE):
        key = '; '.join(['lines: geometric means of lanes that learn', *coarse_key(rows, analysis.summarize(rows))])
        figure, (left, right) = frame(2, title, notes, key=key)
        for curve in curves:
            _draw_samples(left, curve, look[curve.key], across)
            _draw_seconds(right, curve, look[curve.key], (across, seconds))
        if rows['outcome'].isin(NEED_MORE).any():
            left.plot([], [], '^', color='0.4', fillstyle='none', label='not reached within so many')
        left.set(yscale='log', ylabel=samples_to_threshold(rows))
        right.set(yscale='log', ylabel='seconds per lane')
        log_ticks(left.yaxis, thousands)
        log_ticks(right.yaxis)
        for axis in (left, right):
            across.draw(axis)
        legend = left.legend(loc='lower left', bbox_to_anchor=(0, 1.0), borderaxespad=0.2)
        make_room(figure, (left, right), len(legend.get_texts()))
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


def _draw_samples(axis: Axes, curve: Curve, look: Look, x: XAxis) -> None:
    """Means and lanes of one curve."""
    colour, marker, style = look
    cells = analysis.summarize(curve.lanes, [x.column])
    cells = cells[~cells['lower_bound']]
    label = f'{display(curve.name)}  {power(analysis.exponent(curve.lanes, x.column), x.column)}'
    axis.plot(
        x.place(cells[x.column]), cells['mean'], color=colour, marker=marker, linestyle=style, label=label,
        gid=f'mean {curve.key}',
    )  # fmt: skip
    reached, censored = (curve.lanes[curve.lanes['outcome'].isin(some)] for some in (('reached',), NEED_MORE))
    mark_means(axis, x.place(cells[x.column]), cells, colour)
    samples = samples_or_bound(reached)
    places = x.place(reached[x.column])
    axis.plot(places, samples, '.', color=colour, markersize=3, alpha=0.6, gid=f'lanes {curve.key}')
    bounds = samples_or_bound(censored)
    axis.plot(x.place(censored[x.column]), bounds, '^', color=colour, fillstyle='none', gid=f'censored {curve.key}')


def _draw_seconds(axis: Axes, curve: Curve, look: Look, where: tuple[XAxis, pd.DataFrame]) -> None:
    """Seconds per lane of one curve."""
    (colour, marker, style), (x, seconds) = look, where
    cells = curve.lanes[['cell', x.column]].drop_duplicates()
    taken = cells.merge(seconds, on='cell', suffixes=('', ' of seconds')).groupby(x.column)['seconds_per_lane'].mean()
    places = x.place(taken.index)
    axis.plot(places, taken, color=colour, marker=marker, linestyle=style, gid=f'seconds {curve.key}')
