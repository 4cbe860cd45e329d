"""Test loss against the samples that online training has used: a line per lane, or per value of a setting."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib import colormaps, ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from qstr_jax import analysis, columns
from qstr_jax.plots.labels import display, thousands
from qstr_jax.plots.panels import log_ticks, some_values, some_values_key
from qstr_jax.plots.style import STYLE, Look, frame, value_looks

_LEGEND_COLUMNS = 3
# The axis ends a little above this share of the losses, where the largest one is much higher.
_SHOWN, _ROOM = 0.995, 1.15
_MARKERS = 'osD^vP*X'
_ESTIMATES = 'on the way estimates from a part of the test prompts, at the end all of them'


def training_curves(
    curves: pd.DataFrame, *, by: str = 'seq_len', threshold: float | None = None, title: str = ''
) -> Figure:
    """One thin line per lane, a panel per model; the colour and the mark at its end are those of a setting's value.

    At most six values are drawn, the same in all panels. The axis leaves out the few largest losses.

    Args:
        curves: one row per check of a lane, with model, seed, samples, test_loss and settings. Where screening
            skipped the full evaluation, test_loss is its estimate.
        by: the setting that the colours tell apart.
        threshold: a test loss that is drawn as a horizontal line.
        title: above the figure.

    Raises:
        ValueError: no rows, or missing columns.
    """
    analysis.require(curves, ('model', by, 'seed', 'samples', 'test_loss'))
    models, values = analysis.model_order(curves), analysis.ordered(curves[by])
    look, top = value_looks(some_values(values)), _top(curves['test_loss'], threshold)
    highest = curves['test_loss'].max()
    is_estimate = 'is_due' in curves.columns and (curves['is_due'].eq(False) & curves['test_loss'].notna()).any()
    notes = some_values_key(by, values)
    notes += [_ESTIMATES] if is_estimate else []
    notes += [f'losses above the panels: up to {highest:.2g}'] if highest > top else []
    with matplotlib.rc_context(STYLE):
        figure, axes = frame(len(models), title, notes, sharey=True)
        entries = len(look) + (threshold is not None)
        figure.set_figheight(figure.get_figheight() + 0.14 * -(-entries // _LEGEND_COLUMNS))
        for axis, model in zip(axes, models, strict=True):
            _draw_lanes(axis, curves[curves['model'] == model], look, by)
            _finish(axis, display(model), threshold)
        losses = [loss for loss in [*curves['test_loss'].clip(upper=top), threshold or 0.0] if 0 < loss < np.inf]
        if losses and max(losses) > 20 * min(losses):
            axes[0].set_yscale('log')  # The panels share their axis.
            log_ticks(axes[0].yaxis)
        axes[0].set_ylabel(columns.label('test_loss'))
        if highest > top:
            axes[0].set_ylim(0.9 * min(losses), top)
    return figure


def _top(losses: pd.Series, threshold: float | None) -> float:
    """The end of the axis: just above nearly all losses if the largest are much higher, otherwise infinity."""
    finite = losses[np.isfinite(losses)]
    top = _ROOM * max(finite.quantile(_SHOWN), threshold or 0.0) if len(finite) else np.inf
    return float(top) if finite.max() > _ROOM * top else np.inf


def training_curves_by_setting(
    curves: pd.DataFrame,
    setting: str,
    *,
    floors: Mapping[Any, float] | None = None,
    title: str = '',
    notes: Sequence[str] = (),
) -> Figure:
    """A line per value of a setting, such as the number of heads: the mean over lanes, with their range as a band.

    Args:
        curves: one row per check of a lane, with model, seed, samples, test_loss and settings. The rows differ in no
            setting but this one, and in those that follow from it.
        setting: the setting that tells the lines apart.
        floors: value of the setting → a loss that no lane may fall below, drawn dashed in the line's colour, or once
            if all have the same.
        title: above the figure.
        notes: small, under the figure.

    Raises:
        ValueError: no rows, missing columns, or rows that differ in other settings.
    """
    analysis.require(curves, ('model', setting, 'seed', 'samples', 'test_loss'))
    lines = analysis.split_curves(curves, setting)
    if len(lines) > 1:
        names = [', '.join([line.name, *map(str, line.task.values())]) for line in lines]
        raise ValueError(f'rows differ in more than {setting}: {"; ".join(names)}')
    with matplotlib.rc_context(STYLE):
        figure, (axis,) = frame(1, title, notes, key='lines: means over lanes; bands: their range')
        _draw_means(axis, curves, setting, floors or {})
        axis.set(ylim=(0, None), ylabel=columns.label('test_loss'))
        _samples_axis(axis)
        # Beside the lines, where it hides none.
        axis.legend(loc='upper left', bbox_to_anchor=(1.0, 1.0), borderaxespad=0.2)
        figure.set_figwidth(figure.get_figwidth() + 1.2)
    return figure


def _draw_lanes(axis: Axes, rows: pd.DataFrame, look: Mapping[Any, tuple[Any, str]], by: str) -> None:
    """Draws the lanes of one model, those of each value in the look of that value."""
    lane = ['seed', *(name for name in ('task_seed', *analysis.setting_columns(rows)) if name in rows.columns)]
    for value in (value for value in look if rows[by].eq(value).any()):
        colour, marker = look[value]
        mine = rows[(rows[by] == value) & rows['test_loss'].notna()].sort_values('samples')
        # The mark is where a lane stopped.
        own: dict[str, Any] = {'color': colour, 'linewidth': 0.7, 'marker': marker, 'markersize': 3, 'markevery': [-1]}
        for (seed, *_), checks in mine.groupby(lane, dropna=False):
            axis.plot(checks['samples'], checks['test_loss'], gid=f'lane {value} {seed}', **own)
        axis.plot([], [], color=colour, marker=marker, markersize=3, label=display(analysis.setting_text(by, value)))


def _finish(axis: Axes, model: str, threshold: float | None) -> None:
    """Threshold, x axis and legend of one panel."""
    if threshold is not None:
        axis.axhline(
            threshold, color='0.2', linestyle='--', linewidth=0.8, gid='threshold', label=f'threshold {threshold:g}'
        )
    _samples_axis(axis)
    # Above the panel, where it hides no lane.
    axis.legend(
        loc='lower center',
        bbox_to_anchor=(0.5, 1.0),
        borderaxespad=0.2,
        ncols=_LEGEND_COLUMNS,
        handlelength=1.6,
        columnspacing=1.0,
        title=model,
    )


def _draw_means(axis: Axes, curves: pd.DataFrame, setting: str, floors: Mapping[Any, float]) -> None:
    """A line per value of a setting, and their floors."""
    values = analysis.ordered(curves[setting])
    common = floors.get(values[0]) if len(values) > 1 and len({floors.get(value) for value in values}) == 1 else None
    for place, value in enumerate(values):
        colour = colormaps['viridis'](0.92 * place / max(1, len(values) - 1))
        label = analysis.setting_text(setting, value)
        _draw_mean(axis, curves[curves[setting] == value], (colour, _MARKERS[place % len(_MARKERS)], '-'), label)
        if not common and floors.get(value):
            _draw_floor(axis, floors[value], colour, label)
    if common:
        _draw_floor(axis, common, '0.3', 'of all')


def _draw_mean(axis: Axes, lanes: pd.DataFrame, look: Look, label: str) -> None:
    """Mean and range over the lanes of one value."""
    colour, marker, style = look
    seeds = [name for name in ('seed', 'task_seed') if name in lanes.columns]
    table = lanes.pivot_table(index='samples', columns=seeds, values='test_loss', aggfunc='mean')
    samples, losses = table.index.to_numpy(), table.to_numpy()
    low, high = np.nanmin(losses, axis=1), np.nanmax(losses, axis=1)
    axis.fill_between(samples, low, high, color=colour, alpha=0.15, linewidth=0, gid=f'range {label}')
    every = max(1, len(samples) // 8)
    own: dict[str, Any] = {'color': colour, 'linestyle': style, 'marker': marker, 'markevery': every, 'markersize': 3.5}
    axis.plot(samples, np.nanmean(losses, axis=1), label=display(label), gid=f'mean {label}', **own)


def _draw_floor(axis: Axes, floor: float, colour: Any, label: str) -> None:
    axis.axhline(
        floor, color=colour, linestyle=(0, (4, 2)), linewidth=0.9, gid=f'floor {label}', label=f'  floor {floor:.3g}'
    )


def _samples_axis(axis: Axes) -> None:
    axis.set_xlim(0, None)
    axis.set_xlabel(columns.label('samples'))
    axis.xaxis.set_major_locator(ticker.MaxNLocator(5))
    axis.xaxis.set_major_formatter(thousands)
