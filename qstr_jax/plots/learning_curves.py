"""Test loss against the number of training prompts n, for learners on a fixed sample."""

from collections.abc import Sequence

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from qstr_jax import analysis, columns
from qstr_jax.analysis import Curve
from qstr_jax.plots.labels import display, point_text
from qstr_jax.plots.panels import by_panel, log_ticks
from qstr_jax.plots.style import STYLE, Look, frame, legend_above, legend_line, looks

# An exact baseline or a diverging run would stretch a logarithmic axis without end.
_LEAST_LOSS, _MOST_LOSS = 1e-3, 10.0
# An axis of at most this many decades has ticks at 1, 2 and 5; a longer one has a tick for each decade.
_FINE_DECADES = 3.8


def learning_curves(
    rows: pd.DataFrame, *, threshold: float | None = None, title: str = '', notes: Sequence[str] = ()
) -> Figure:
    """Test loss against n: the median over lanes, their range as a band, and every lane as a dot.

    Curves differ in any setting but those that follow from n; settings of the task make panels.

    Args:
        rows: rows of learners on a fixed sample, with one lane per curve, n and seed (see `selection.select`).
        threshold: a test loss that is drawn as a horizontal line.
        title: above the figure.
        notes: small, under the figure.

    Returns:
        The figure, both axes logarithmic; losses below 0.001 are drawn at 0.001, those above 10 at 10.

    Raises:
        ValueError: no rows, or missing columns.
    """
    analysis.require(rows, ('model', 'seed', 'num_samples', 'test_loss'))
    curves = analysis.split_curves(rows, 'num_samples')
    panels, look = by_panel(curves), looks(curve.key for curve in curves)
    with matplotlib.rc_context(STYLE):
        key = 'lines: medians over lanes; bands: their range'
        figure, axes = frame(len(panels), title, notes, sharey=True, key=key)
        for axis, mine in zip(axes, panels, strict=True):
            for curve in mine:
                _draw(axis, curve, look[curve.key])
            if threshold is not None:
                axis.axhline(threshold, color='0.2', linestyle='--', linewidth=0.8, gid='threshold')
            axis.set(xscale='log', yscale='log', xlabel='training prompts $n$', title=point_text(mine[0]))
            _ticks(axis, len(panels))
        _name_limits(axes[0], rows['test_loss'])
        axes[0].set_ylabel(columns.label('test_loss'))
        labels = {curve.key: display(curve.name) for curve in curves}
        entries = [legend_line(look[key], label) for key, label in labels.items()]
        legend_above(figure, axes[0], entries, 2 if len(panels) == 1 else 1)  # no wider than the panel
    return figure


def _draw(axis: Axes, curve: Curve, look: Look) -> None:
    """One curve in one panel."""
    colour, marker, style = look
    loss = curve.lanes['test_loss'].clip(_LEAST_LOSS, _MOST_LOSS)
    by_n = loss.groupby(curve.lanes['num_samples'])
    low, median, high = by_n.min(), by_n.median(), by_n.max()
    axis.fill_between(low.index, low, high, color=colour, alpha=0.15, linewidth=0)
    axis.plot(median.index, median, color=colour, marker=marker, linestyle=style, gid=f'median {curve.key}')
    axis.plot(curve.lanes['num_samples'], loss, '.', color=colour, markersize=2.5, alpha=0.6, gid=f'lanes {curve.key}')


def _ticks(axis: Axes, num_panels: int) -> None:
    """As many ticks of n as there is room for."""
    low, high = axis.get_xlim()
    has_room = 3 * np.log10(high / low) <= (9.5 if num_panels == 1 else 7.5)
    log_ticks(axis.xaxis, subs=(1, 2, 5) if has_room else (1,), count=30)
    low, high = axis.get_ylim()
    log_ticks(axis.yaxis, subs=(1, 2, 5) if np.log10(high / low) <= _FINE_DECADES else (1,), count=30)


def _name_limits(axis: Axes, losses: pd.Series) -> None:
    """'≤ 0.001' and '≥ 10' at the heights at which smaller and larger losses are drawn."""
    limits = {_LEAST_LOSS: ('≤', losses < _LEAST_LOSS), _MOST_LOSS: ('≥', losses > _MOST_LOSS)}
    signs = {limit: sign for limit, (sign, beyond) in limits.items() if beyond.any()}

    def name(loss: float, _: float) -> str:
        return ' '.join([*(sign for limit, sign in signs.items() if np.isclose(loss, limit)), f'{loss:g}'])

    axis.yaxis.set_major_formatter(name)
