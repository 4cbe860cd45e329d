"""n* against N on logarithmic axes: how the samples that are needed grow over a wide range of lengths."""

from collections.abc import Sequence

import matplotlib
import numpy as np
import pandas as pd
from matplotlib import lines, ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from qstr_jax import analysis
from qstr_jax.plots.style import AXIS_NAMES, STYLE, display, frame, looks

_LANE_MARKS = {'reached': '.', 'censored': '^', 'censored_below': 'v', 'diverged': 'x'}

_MARK_WORDS = {
    'censored': '△ more than the largest n tried',
    'censored_below': '▽ the smallest n tried was enough',
    'diverged': '× diverged',
}


def scaling(rows: pd.DataFrame, title: str = '', notes: Sequence[str] = (), x: str = 'seq_len') -> Figure:
    """Median samples to threshold against N, both axes logarithmic, with exponents; a panel per task.

    Every lane is a dot; a lane that needs more than the search's end is a triangle up there, one that needs less
    than its beginning a triangle down. Medians are joined where more than half of the lanes reached.

    Args:
        rows: one row per lane, as for `analysis.summarize`; `selection.name_curves` tells curves of a model apart.
        title, notes: above and under the figure.
        x: 'seq_len' or 'sparsity'.

    Raises:
        ValueError: no rows, or missing columns.
    """
    analysis.require(rows, ('model', 'task', x, 'seed', 'outcome', 'samples_to_threshold', 'max_samples'))
    panels = list(rows.groupby('task', observed=True))
    models = analysis.model_order(rows)
    look = looks(models)
    with matplotlib.rc_context(STYLE):
        marks = [words for outcome, words in _MARK_WORDS.items() if (rows['outcome'] == outcome).any()]
        figure, axes = frame(
            len(panels), title, notes, sharey=True, key='; '.join(['rings: lanes', *marks, 'lines: medians over lanes'])
        )
        for axis, (task, lanes) in zip(axes, panels, strict=True):
            for place, model in enumerate(models):
                mine = lanes[lanes['model'] == model]
                if not mine.empty:
                    _draw(axis, mine, look[model], 1 + 0.015 * (place - len(models) / 2), x)
            axis.set(xscale='log', yscale='log', xlabel=AXIS_NAMES.get(x, x))
            axis.xaxis.set(
                major_locator=ticker.FixedLocator(sorted(set(rows[x]))),
                major_formatter='{x:g}',
                minor_locator=ticker.NullLocator(),
            )
            axis.yaxis.set(
                major_locator=ticker.LogLocator(subs=(1, 2, 5)),
                major_formatter='{x:g}',
                minor_locator=ticker.NullLocator(),
            )
            axis.legend(
                handles=_entries(lanes, models, look, x),
                loc='lower left',
                bbox_to_anchor=(0, 1.0),
                borderaxespad=0.2,
                title=display(task) if len(panels) > 1 else None,
                alignment='left',
            )
        thresholds = set(rows.get('threshold', ()))
        quantity = f'test MSE < {thresholds.pop():g}' if len(thresholds) == 1 else 'threshold'
        axes[0].set_ylabel(f'samples to {quantity}')
        figure.set_figheight(figure.get_figheight() + 0.14 * (len(models) + 2))
    return figure


def _draw(axis: Axes, lanes: pd.DataFrame, look: tuple, shift: float, x: str) -> None:
    """One curve: median line and lanes."""
    colour, marker, style = look
    summary = analysis.summarize(lanes)
    known = summary[summary['median'].notna()]
    axis.plot(
        known[x] * shift,
        known['median'],
        color=colour,
        marker=marker,
        linestyle=style,
        gid=f'median {lanes["model"].iloc[0]}',
    )
    for outcome, some in lanes.groupby('outcome', observed=True):
        samples = {'censored': some['max_samples'], 'censored_below': some.get('min_samples')}.get(
            outcome, some['samples_to_threshold']
        )
        if samples is not None:
            axis.plot(
                some[x] * shift,
                samples.astype('Float64').to_numpy(dtype=float, na_value=np.nan),
                _LANE_MARKS[outcome],
                color=colour,
                markersize=4,
                alpha=0.7,
                fillstyle='none',
                gid=outcome,
            )


def _entries(lanes: pd.DataFrame, models: list[str], look: dict, x: str) -> list:
    """A legend line per model, with its exponent."""
    entries = []
    for model in models:
        mine = lanes[lanes['model'] == model]
        if mine.empty:
            continue
        entries.append(
            lines.Line2D(
                [],
                [],
                color=look[model][0],
                marker=look[model][1],
                linestyle=look[model][2],
                label=f'{display(model)}  {_power(analysis.exponent(mine, x), x)}',
            )
        )
    return entries


def _power(fit: analysis.Exponent, x: str) -> str:
    """'N^1.25 [1.1, 1.4]' as mathtext, or at how many lengths all lanes reached."""
    symbol = analysis.SYMBOLS.get(x, x)
    measured = f'(known at {fit.num_lengths} of {fit.num_lengths + len(fit.left_out)} {symbol})'
    if fit.value is None:
        return measured
    interval = '' if fit.low is None else f' [{fit.low:.2f}, {fit.high:.2f}]'
    part = f' {measured}' if fit.left_out else ''
    return f'${symbol}^{{{fit.value:.2f}}}${interval}{part}'
