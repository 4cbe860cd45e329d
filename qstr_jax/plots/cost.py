"""Samples and seconds side by side against N, on logarithmic axes."""

from collections.abc import Callable, Sequence

import matplotlib
import pandas as pd
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from qstr_jax import analysis
from qstr_jax.plots.style import AXIS_NAMES, STYLE, display, frame, looks, thousands


def cost(rows: pd.DataFrame, seconds: pd.DataFrame, title: str = '', notes: Sequence[str] = ()) -> Figure:
    """Left: samples to threshold, every lane (an open triangle at its budget if censored) and the mean where none is.

    Right: seconds of training per lane.

    Args:
        rows: one row per lane, as for `analysis.summarize`; several tasks or thresholds are not told apart.
        seconds: as of `studies.seconds`.
        title, notes: above the figure, and small under it.

    Raises:
        ValueError: as `analysis.summarize`, or no seconds.
    """
    analysis.require(seconds, ('model', 'seq_len', 'seconds_per_lane'))
    summary = analysis.summarize(rows)
    models = analysis.model_order(rows)
    look = looks(models)
    with matplotlib.rc_context(STYLE):
        figure, (left, right) = frame(2, title, notes)
        for model in models:
            colour, marker, style = look[model]
            mine = rows[rows['model'] == model]
            cells = summary[(summary['model'] == model) & ~summary['lower_bound']].sort_values('seq_len')
            fit = analysis.exponent(mine)
            left.plot(
                cells['seq_len'],
                cells['mean'],
                color=colour,
                marker=marker,
                linestyle=style,
                label=f'{display(model)}  {_power(fit)}',
                gid=f'mean {model}',
            )
            reached, censored = (mine[mine['outcome'] == outcome] for outcome in ('reached', 'censored'))
            left.plot(
                reached['seq_len'],
                reached['samples_to_threshold'].astype(float),
                '.',
                color=colour,
                markersize=3,
                alpha=0.6,
                gid=f'lanes {model}',
            )
            left.plot(
                censored['seq_len'],
                censored['max_samples'].astype(float),
                '^',
                color=colour,
                fillstyle='none',
                gid=f'censored {model}',
            )
            taken = seconds[seconds['model'] == model].groupby('seq_len')['seconds_per_lane'].mean()
            right.plot(
                taken.index.astype(int), taken, color=colour, marker=marker, linestyle=style, gid=f'seconds {model}'
            )
        if (rows['outcome'] == 'censored').any():
            left.plot([], [], '^', color='0.4', fillstyle='none', label='not reached within the budget')
        thresholds = set(rows.get('threshold', ()))
        quantity = f'test MSE < {thresholds.pop():g}' if len(thresholds) == 1 else 'threshold'
        left.set_ylabel(f'samples to {quantity}')
        right.set_ylabel('seconds per lane')
        for axis, form in ((left, thousands), (right, '{x:g}')):
            _log_axes(axis, sorted(set(rows['seq_len'])), form)
        left.legend(loc='lower left', bbox_to_anchor=(0, 1.0), borderaxespad=0.2)
        figure.set_figheight(figure.get_figheight() + 0.15 * len(left.get_legend().get_texts()))
    return figure


def _log_axes(axis: Axes, lengths: list[int], form: str | Callable) -> None:
    axis.set(xscale='log', yscale='log', xlabel=AXIS_NAMES['seq_len'])
    axis.xaxis.set(
        major_locator=ticker.FixedLocator(lengths), major_formatter='{x:g}', minor_locator=ticker.NullLocator()
    )
    axis.yaxis.set(
        major_locator=ticker.LogLocator(subs=(1, 2, 5)), major_formatter=form, minor_locator=ticker.NullLocator()
    )


def _power(fit: analysis.Exponent) -> str:
    """'N^0.62 [0.55, 0.70]' as mathtext, or why there is no exponent."""
    if fit.value is None:
        return f'({fit.note})'
    value, *interval = str(fit).split(maxsplit=1)
    return ' '.join([f'$N^{{{value}}}$', *interval])
