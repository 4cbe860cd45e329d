"""Test loss against the number of training prompts: learning curves, and Theorem 6's floor under them."""

from collections.abc import Sequence

import matplotlib
import numpy as np
import pandas as pd
from matplotlib import lines, patches, ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from qstr_jax import analysis
from qstr_jax.plots.style import STYLE, display, frame, looks

# Losses of a baseline that is exact would stretch a logarithmic axis without end.
_LEAST_LOSS = 1e-3
# Ticks of distances in standard errors.
_MARGINS = (-100, -30, -10, -3, -1, 0, 1, 3, 10, 30, 100, 300)


def learning_curves(
    rows: pd.DataFrame,
    title: str = '',
    notes: Sequence[str] = (),
    threshold: float | None = None,
) -> Figure:
    """Test loss against n: the median over lanes, their range as a band, every lane as a dot; a panel per N.

    Args:
        rows: rows of fixed-sample learners with one lane per model, N, n and seed (see `selection.select`).
        title, notes: above and under the figure.
        threshold: drawn as a horizontal line.

    Returns:
        The figure, both axes logarithmic; losses below 0.001 are drawn at 0.001.

    Raises:
        ValueError: no rows, or missing columns.
    """
    analysis.require(rows, ('model', 'task', 'seq_len', 'seed', 'num_samples', 'test_loss'))
    panels = list(rows.groupby(['task', 'seq_len'], observed=True))
    models = analysis.model_order(rows)
    look = looks(models)
    with matplotlib.rc_context(STYLE):
        figure, axes = frame(
            len(panels), title, notes, sharey=True, key='lines: medians over lanes; bands: their range'
        )
        for axis, ((task, seq_len), lanes) in zip(axes, panels, strict=True):
            for model in models:
                _draw_curve(axis, lanes[lanes['model'] == model], look[model], model)
            if threshold is not None:
                axis.axhline(threshold, color='0.2', linestyle='--', linewidth=0.8, gid='threshold')
            axis.set(xscale='log', yscale='log', xlabel='training prompts n')
            if len(panels) > 1:
                axis.set_title(f'{display(task)}, N = {seq_len}')
            _plain_ticks(axis, len(panels))
        if (rows['test_loss'] < _LEAST_LOSS).any():
            axes[0].yaxis.set_major_formatter(lambda y, _: f'≤ {y:g}' if np.isclose(y, _LEAST_LOSS) else f'{y:g}')
        axes[0].set_ylabel('test MSE')
        _legend_above(figure, axes[0], _entries(models, look), len(panels))
    return figure


def _draw_curve(axis: Axes, lanes: pd.DataFrame, look: tuple, model: str) -> None:
    """One model in one panel."""
    if lanes.empty:
        return
    colour, marker, style = look
    loss = lanes['test_loss'].clip(lower=_LEAST_LOSS)
    by_n = loss.groupby(lanes['num_samples'])
    axis.fill_between(by_n.min().index, by_n.min(), by_n.max(), color=colour, alpha=0.15, linewidth=0)
    axis.plot(by_n.median().index, by_n.median(), color=colour, marker=marker, linestyle=style, gid=f'median {model}')
    axis.plot(lanes['num_samples'], loss, '.', color=colour, markersize=2.5, alpha=0.6, gid=f'lanes {model}')


def _plain_ticks(axis: Axes, num_panels: int) -> None:
    """0.05 and 200 instead of powers of ten, and of n as many as there is room for."""
    low, high = axis.get_xlim()
    has_room = 3 * np.log10(high / low) <= (9.5 if num_panels == 1 else 7.5)
    for one, subs in (axis.xaxis, (1, 2, 5) if has_room else (1,)), (axis.yaxis, (1, 2, 5)):
        one.set(
            major_locator=ticker.LogLocator(subs=subs, numticks=30),
            major_formatter='{x:g}',
            minor_locator=ticker.NullLocator(),
        )


def _entries(models: list[str], look: dict) -> list:
    """A legend line per model."""
    return [
        lines.Line2D([], [], color=look[m][0], marker=look[m][1], linestyle=look[m][2], label=display(m))
        for m in models
    ]


def _legend_above(figure: Figure, axis: Axes, entries: list, num_panels: int) -> None:
    """A legend over the first panel, no wider than it, with height of its own."""
    columns = 2 if num_panels == 1 else 1
    axis.legend(handles=entries, loc='lower left', bbox_to_anchor=(0, 1.08), borderaxespad=0.2, ncols=columns)
    figure.set_figheight(figure.get_figheight() + 0.15 * -(-len(entries) // columns) + 0.35)


def against_floor(rows: pd.DataFrame, title: str = '', notes: Sequence[str] = ()) -> Figure:
    """Theorem 6: test loss against n/(Nd) with the line 1 − n/(Nd), and how far each run lies above its own floor.

    Left panel: every run, and the means. Right panel: test loss minus the floor of the run's own u and training set
    in standard errors of the test loss, for n < N d; runs of a model that the theorem is not about are left out there.

    Args:
        rows: of `comparison.with_floor`.
        title, notes: above and under the figure.

    Raises:
        ValueError: no rows, or missing columns.
    """
    analysis.require(rows, ('model', 'test_loss', 'test_loss_se', 'floor', 'load', 'is_bound'))
    models = analysis.model_order(rows)
    look = looks(models)
    with matplotlib.rc_context(STYLE):
        figure, (left, right) = frame(2, title, notes)
        for place, model in enumerate(models):
            runs = rows[rows['model'] == model]
            colour, marker, _ = look[model]
            shift = 1 + 0.03 * (place - len(models) / 2)  # Side by side, not on top of each other.
            left.plot(runs['load'] * shift, runs['test_loss'], '.', color=colour, markersize=2.5, alpha=0.5)
            mean = runs.groupby('load')['test_loss'].mean()
            left.plot(mean.index * shift, mean, marker, color=colour, markersize=4, gid=f'mean {model}')
            bound = runs[runs['is_bound'] & (runs['load'] < 1)]  # From n = N d on the floor is 0.
            if not bound.empty:
                distance = (bound['test_loss'] - bound['floor']) / bound['test_loss_se']
                right.plot(bound['load'] * shift, distance, marker, color=colour, markersize=3, gid=f'margin {model}')
        load = np.geomspace(rows['load'].min(), rows['load'].max(), 200)
        left.plot(load, np.maximum(0, 1 - load), color='0.2', linewidth=1, gid='floor')
        left.set(xscale='log', xlabel='n / (Nd)', ylabel='test MSE', ylim=(-0.05, None))
        right.axhline(0, color='0.2', linewidth=1)
        right.axhspan(-3, 3, color='0.9', linewidth=0, zorder=0.5)
        right.set(xscale='log', yscale='symlog', xlabel='n / (Nd)', ylabel='(test MSE − own floor) / s.e.')
        right.yaxis.set(
            major_locator=ticker.FixedLocator(_MARGINS), major_formatter='{x:g}', minor_locator=ticker.NullLocator()
        )
        right.set_ylim(top=max(5.0, 1.5 * right.dataLim.y1))
        for axis in (left, right):
            axis.xaxis.set(
                major_locator=ticker.LogLocator(subs=(1, 2, 5)),
                major_formatter='{x:g}',
                minor_locator=ticker.NullLocator(),
            )
        floor = [
            lines.Line2D([], [], color='0.2', linewidth=1, label="1 − n/(Nd); right: the run's own floor"),
            patches.Patch(color='0.9', label='3 standard errors'),
        ]
        entries = _entries(models, {m: (*look[m][:2], 'none') for m in models})
        _legend_above(figure, left, [*entries, *floor], 2)
    return figure
