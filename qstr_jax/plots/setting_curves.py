"""Test loss against samples for several values of one setting, such as the number of heads."""

from collections.abc import Mapping, Sequence

import matplotlib
import numpy as np
import pandas as pd
from matplotlib import colormaps, ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from qstr_jax import analysis
from qstr_jax.plots.style import STYLE, display, frame, thousands

_MARKERS = 'osD^vP*X'


def loss_by_setting(
    curves: pd.DataFrame,
    setting: str,
    floors: Mapping | None = None,
    title: str = '',
    notes: Sequence[str] = (),
    symbol: str = '',
) -> Figure:
    """Test loss against samples: a line per value of `setting`, the mean over lanes with its range as a band.

    Args:
        curves: columns `setting`, seed, samples and test_loss, one row per check of a lane.
        setting: the column that tells the lines apart.
        floors: value of the setting → a loss that no lane may fall below, drawn dashed in the line's colour, or once
            if all have the same.
        title, notes: above the figure, and small under it.
        symbol: what the legend calls the setting, such as 'H'; its name by default.

    Raises:
        ValueError: no rows, or missing columns.
    """
    analysis.require(curves, (setting, 'seed', 'samples', 'test_loss'))
    values = sorted(set(curves[setting]))
    floors = floors or {}
    common = floors.get(values[0]) if len(values) > 1 and len({floors.get(value) for value in values}) == 1 else None
    with matplotlib.rc_context(STYLE):
        figure, (axis,) = frame(1, title, notes, key='lines: means over lanes; bands: their range')
        for place, value in enumerate(values):
            colour = colormaps['viridis'](0.92 * place / max(1, len(values) - 1))
            _draw_line(
                axis,
                curves[curves[setting] == value],
                colour,
                _MARKERS[place % 8],
                f'{symbol or display(setting)} = {value}',
                None if common else floors.get(value),
            )
        if common:
            _draw_floor(axis, common, '0.3', 'of all')
        axis.set(xlim=(0, None), ylim=(0, None), xlabel='training samples', ylabel='test MSE')
        axis.xaxis.set(major_locator=ticker.MaxNLocator(5), major_formatter=thousands)
        # Beside the lines, where it hides none.
        axis.legend(loc='upper left', bbox_to_anchor=(1.0, 1.0), borderaxespad=0.2)
        figure.set_figwidth(figure.get_figwidth() + 1.2)
    return figure


def _draw_line(axis: Axes, lanes: pd.DataFrame, colour, marker: str, label: str, floor: float | None) -> None:
    """Mean and range over the lanes of one value, and its floor."""
    table = lanes.pivot_table(index='samples', columns=['seed'], values='test_loss', aggfunc='mean')
    samples, losses = table.index.to_numpy(), table.to_numpy()
    axis.fill_between(
        samples,
        np.nanmin(losses, axis=1),
        np.nanmax(losses, axis=1),
        color=colour,
        alpha=0.15,
        linewidth=0,
        gid=f'range {label}',
    )
    every = max(1, len(samples) // 8)
    axis.plot(
        samples,
        np.nanmean(losses, axis=1),
        color=colour,
        marker=marker,
        markevery=every,
        markersize=3.5,
        label=label,
        gid=f'mean {label}',
    )
    if floor:
        _draw_floor(axis, floor, colour, label)


def _draw_floor(axis: Axes, floor: float, colour, label: str) -> None:
    axis.axhline(
        floor, color=colour, linestyle=(0, (4, 2)), linewidth=0.9, gid=f'floor {label}', label=f'  floor {floor:.3g}'
    )
