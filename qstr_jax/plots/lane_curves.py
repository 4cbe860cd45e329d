"""Loss curves of single lanes."""

import matplotlib
import numpy as np
import pandas as pd
from matplotlib import colors, ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from qstr_jax import analysis
from qstr_jax.plots.style import STYLE, display, frame, looks, thousands

_COLUMNS = 3  # Of a legend.


def curves(curves: pd.DataFrame, threshold: float | None = None, title: str = '') -> Figure:
    """Test loss against samples: one thin line per lane, darker for longer N, a panel per model.

    Args:
        curves: columns model, seq_len, seed, samples and test_loss, one row per check; test_loss is
            NaN where the check was screened, and the line joins its neighbours.
        threshold, title: test MSE, drawn as a horizontal line; above the figure.

    Raises:
        ValueError: no rows, or missing columns.
    """
    analysis.require(curves, ('model', 'seq_len', 'seed', 'samples', 'test_loss'))
    models = analysis.model_order(curves)
    with matplotlib.rc_context(STYLE):
        figure, axes = frame(len(models), title, (), sharey=True)
        entries = curves['seq_len'].nunique() + (threshold is not None)
        figure.set_figheight(figure.get_figheight() + 0.14 * -(-entries // _COLUMNS))
        for axis, model in zip(axes, models, strict=True):
            _draw_curves(axis, curves[curves['model'] == model], looks(models)[model], threshold)
        losses = [loss for loss in [*curves['test_loss'], threshold or 0.0] if 0 < loss < np.inf]
        if losses and max(losses) > 20 * min(losses):
            axes[0].set_yscale('log')  # The panels share their axis.
            axes[0].yaxis.set(
                major_locator=ticker.LogLocator(subs=(1, 2, 5)),
                major_formatter='{x:g}',
                minor_locator=ticker.NullLocator(),
            )
        axes[0].set_ylabel('test MSE')
    return figure


def _draw_curves(axis: Axes, rows: pd.DataFrame, look: tuple, threshold: float | None) -> None:
    """The lanes of one model, from a light tint for the shortest length to full colour."""
    lengths = sorted(set(rows['seq_len']))
    tints = np.linspace(0.35 if len(lengths) > 1 else 1.0, 1.0, len(lengths))
    for length, tint in zip(lengths, tints, strict=True):
        colour = 1 - tint * (1 - np.asarray(colors.to_rgb(look[0])))
        mine = rows[(rows['seq_len'] == length) & rows['test_loss'].notna()]
        for seed, lane in mine.sort_values('samples').groupby('seed'):
            axis.plot(
                lane['samples'],
                lane['test_loss'],
                color=colour,
                linewidth=0.7,
                marker='.',
                markersize=3,
                markevery=[-1],  # Where it stopped.
                gid=f'lane {length} {seed}',
            )
        axis.plot([], [], color=colour, label=f'N = {length}')
    if threshold is not None:
        axis.axhline(
            threshold, color='0.2', linestyle='--', linewidth=0.8, gid='threshold', label=f'threshold {threshold:g}'
        )
    axis.set(xlim=(0, None), xlabel='training samples')
    axis.xaxis.set(major_locator=ticker.MaxNLocator(5), major_formatter=thousands)
    # Above the panel, where it hides no lane.
    axis.legend(
        loc='lower center',
        bbox_to_anchor=(0.5, 1.0),
        borderaxespad=0.2,
        ncols=_COLUMNS,
        handlelength=1.6,
        columnspacing=1.0,
        title=display(rows['model'].iloc[0]),
    )
