"""Theorem 6's floor under trained networks."""

from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib import lines, patches, ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from qstr_jax import analysis, columns
from qstr_jax.analysis.floors import NUM_SE, VARIANCE, theorem6_floor
from qstr_jax.plots.labels import display
from qstr_jax.plots.panels import log_ticks
from qstr_jax.plots.style import STYLE, Look, frame, legend_above, legend_line, looks

# Ticks of distances in standard errors; of those that are larger, powers of ten.
_MARGINS = (-100, -30, -10, -3, -1, 0, 1, 3, 10, 30, 100, 300)
_LARGE_MARGINS = (-10_000, -1000, -100, -10, -1, 0, 1, 10, 100, 1000, 10_000)
# Lanes whose losses differ by more than this factor have no mean: it would show only the largest.
_MOST_SPREAD = 10
# Losses below this are zero in the figure.
_LEAST_LOSS = 0.02


def loss_against_floor(rows: pd.DataFrame, *, title: str = '', notes: Sequence[str] = ()) -> Figure:
    """Test loss against n/(Nd) with the line 1 − n/(Nd), and how far each run lies above its own floor.

    The left panel shows every run, and means where the losses of the runs are of similar size; elsewhere every run is
    drawn with the mark of a mean. The right panel shows, for n < N d, the test loss minus the floor of the run's own u
    and training set, in standard errors of the test loss; models that the theorem is not about have open marks there,
    and those without training are left out. FFNs that err by 1 or more are in neither: they are as far above any floor
    as a network that predicts nothing, so they say nothing about this floor.

    Args:
        rows: of `analysis.floors.with_floor`.
        title: above the figure.
        notes: small, under the figure.

    Raises:
        ValueError: no rows, or missing columns.
    """
    analysis.require(
        rows, ('model', 'learner', 'num_samples', 'test_loss', 'test_loss_se', 'floor', 'load', 'is_bound')
    )
    is_lost = rows['is_bound'] & (rows['test_loss'] >= VARIANCE)
    if is_lost.any():
        left_out = f'not drawn: runs that err by 1 or more, as predicting nothing does: {is_lost.sum()}'
        rows, notes = rows[~is_lost], (*notes, left_out)
    curves = analysis.split_curves(rows, 'num_samples')
    labels = {curve.key: display(curve.name) for curve in curves}
    # All N together: they share the axis n/(Nd).
    together = {key: pd.concat([curve.lanes for curve in curves if curve.key == key]) for key in labels}
    if any(_is_wide(runs).any() for runs in together.values()):
        notes = (
            *notes,
            f'left, large marks: means; the runs themselves where they differ more than {_MOST_SPREAD}-fold',
        )
    look = looks(labels)
    with matplotlib.rc_context(STYLE):
        figure, (left, right) = frame(2, title, notes)
        for place, (key, runs) in enumerate(together.items()):
            shift = 1 + 0.01 * (place - (len(labels) - 1) / 2)  # Side by side, not on top of each other.
            _draw_losses(left, runs, (key, look[key], shift))
            _draw_margins(right, runs, (key, look[key], shift))
        _draw_line(left, rows)
        left.set(xscale='log', ylabel=columns.label('test_loss'), ylim=(-0.05, None))
        right.axhline(0, color='0.2', linewidth=1)
        right.axhspan(-NUM_SE, NUM_SE, color='0.9', linewidth=0, zorder=0.5)
        right.set(xscale='log', yscale='symlog', ylabel='(test MSE − own floor) / s.e.')
        is_large = np.abs(right.dataLim.intervaly).max() > max(_MARGINS)
        right.yaxis.set_major_locator(ticker.FixedLocator(_LARGE_MARGINS if is_large else _MARGINS))
        right.yaxis.set_major_formatter('{x:g}')
        right.yaxis.set_minor_locator(ticker.NullLocator())
        right.set_ylim(min(-3.0, 1.5 * right.dataLim.y0), max(5.0, 1.5 * right.dataLim.y1))
        for axis in (left, right):
            axis.set_xlabel('n / (Nd)')
            log_ticks(axis.xaxis)
        _legend(figure, (left, right), labels, look)
    return figure


def _is_wide(runs: pd.DataFrame) -> pd.Series:
    """Which runs have an n at which losses differ too much for a mean."""
    by_load = runs.groupby('load')['test_loss']
    return by_load.transform('max') > np.maximum(_MOST_SPREAD * by_load.transform('min'), _LEAST_LOSS)


def _draw_losses(axis: Axes, runs: pd.DataFrame, curve: tuple[str, Look, float]) -> None:
    """The losses of the runs of one curve, and their means."""
    key, (colour, marker, _), shift = curve
    is_wide = _is_wide(runs)
    for some, look in ((~is_wide, {'marker': '.', 'markersize': 2.5, 'alpha': 0.5}), (is_wide, {'marker': marker})):
        own: dict[str, Any] = {'linestyle': 'none', 'color': colour, 'markersize': 4, **look}
        axis.plot(runs.loc[some, 'load'] * shift, runs.loc[some, 'test_loss'], gid=f'runs {key}', **own)
    mean = runs[~is_wide].groupby('load')['test_loss'].mean()
    axis.plot(mean.index * shift, mean, marker, color=colour, markersize=4, gid=f'mean {key}')


def _draw_margins(axis: Axes, runs: pd.DataFrame, curve: tuple[str, Look, float]) -> None:
    """How far the runs of one curve are from their own floors; from n = N d on these are 0."""
    key, (colour, marker, _), shift = curve
    is_trained = runs['is_bound'] | runs['learner'].ne('closed_form')
    shown = runs[is_trained & (runs['load'] < 1)]
    if not shown.empty:
        distance = (shown['test_loss'] - shown['floor']) / shown['test_loss_se']
        face = 'full' if shown['is_bound'].all() else 'none'
        look: dict[str, Any] = {'color': colour, 'markersize': 3, 'fillstyle': face, 'gid': f'margin {key}'}
        axis.plot(shown['load'] * shift, distance, marker, linestyle='none', **look)


def _draw_line(axis: Axes, rows: pd.DataFrame) -> None:
    """The floor as printed. It depends on n, N and d through n/(Nd) alone, so any N and d will do."""
    loads = np.geomspace(rows['load'].min(), rows['load'].max(), 200)
    axis.plot(loads, [theorem6_floor(float(load), 1, 1) for load in loads], color='0.2', linewidth=1, gid='floor')


def _legend(figure: Figure, axes: tuple[Axes, Axes], labels: dict[str, str], look: dict[str, Look]) -> None:
    """A legend over the first panel."""
    left, right = axes
    has_open = any(mark.get_fillstyle() == 'none' for mark in right.lines)
    entries = [
        *(legend_line((look[key][0], look[key][1], 'none'), label) for key, label in labels.items()),
        lines.Line2D([], [], color='0.2', linewidth=1, label="1 − n/(Nd); right: the run's own floor"),
        *([lines.Line2D([], [], linestyle='none', label='right, open marks: no FFNs')] if has_open else []),
        patches.Patch(color='0.9', label=f'{NUM_SE} standard errors'),
    ]
    legend_above(figure, left, entries)
