"""Samples to a threshold against length: the paper's Figure 1, and Figure 3 against q."""

from collections.abc import Mapping, Sequence

import matplotlib
import numpy as np
import pandas as pd
from matplotlib import lines
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from qstr_jax import analysis
from qstr_jax.plots.style import AXIS_NAMES, STYLE, display, frame, looks, spaced, thousands

_MARKS = {
    'reached': {'marker': '.', 'markersize': 4, 'alpha': 0.6, 'mew': 0, 'linestyle': 'none'},
    'censored': {'marker': '^', 'markersize': 5, 'fillstyle': 'none', 'linestyle': 'none'},
    'diverged': {'marker': 'x', 'markersize': 4.5, 'linestyle': 'none'},
    'published': {'markersize': 6, 'alpha': 0.5, 'fillstyle': 'none', 'linestyle': 'none'},
}
_OFF_SCALE = 2.5  # A budget so many times above all that was measured would flatten the curves.
_KEY = 'dots: lanes; lines: their means; bands: 95 % bootstrap intervals'
_EDGE = 0.965  # Of the samples axis: where marks at the top stand.


def samples_against_length(
    rows: pd.DataFrame, title: str = '', notes: Sequence[str] = (), reference: Mapping | None = None, x: str = 'seq_len'
) -> Figure:
    """Samples to threshold against N as in Figure 1, with every lane, intervals and exponents.

    Per model: the mean over lanes (a dotted line and '≥' lead to a lower bound) with its bootstrap
    95% interval (band), each lane (dots, beside the mean), lanes that did not reach (open triangle
    at the budget, or at the top edge and said to be off scale), lanes that diverged (cross at the
    top), and the exponent in the legend. One panel per task and sparsity.

    Args:
        rows: one row per lane, as for `analysis.summarize`.
        title, notes: above the figure, and small under it, such as '1,000 test prompts'.
        reference: published values, model -> {N: samples}, drawn as open faint markers.
        x: 'seq_len', or 'sparsity' for samples against q with one panel per N.

    Returns:
        The figure. Linear axes from 0, but for N where all lengths lie in the upper half.

    Raises:
        ValueError: as `analysis.summarize`, or a reference for more than one panel.
    """
    analysis.summarize(rows)  # Checks the rows before anything is drawn.
    columns = analysis.panel_columns(rows, x)
    panels = list(rows.groupby(columns, observed=True)) if columns else [((), rows)]
    if reference and len(panels) > 1:
        raise ValueError(f'reference values belong to one panel, rows make {len(panels)}')
    look = looks(sorted({*rows['model'], *(reference or {})}))
    with matplotlib.rc_context(STYLE):
        figure, axes = frame(len(panels), title, notes, key=_KEY)
        for axis, (key, lanes) in zip(axes, panels, strict=True):
            off_scale = _draw_panel(axis, lanes, look, reference or {}, x)
            _legend(axis, lanes, look, bool(reference), off_scale, x)
            axis.get_legend().set_title(', '.join(map(_setting, columns, key)) or None)
        thresholds = set(rows.get('threshold', ()))
        quantity = f'test MSE < {thresholds.pop():g}' if len(thresholds) == 1 else 'threshold'
        axes[0].set_ylabel(f'samples to {quantity}')
        # The legends stand above the panels, where they hide no lane, and get their own height.
        entries = max(len(axis.get_legend().get_texts()) for axis in axes)
        figure.set_figheight(figure.get_figheight() + 0.14 * (entries + bool(columns)))
    return figure


def _draw_panel(axis: Axes, rows: pd.DataFrame, look: dict, reference: Mapping, x: str) -> bool:
    """Data, limits and ticks of one panel; returns whether censored lanes are off scale."""
    summary, lengths = analysis.summarize(rows), sorted(set(rows[x]))
    top, off_scale = _top(
        rows,
        [*summary['mean'][summary['num_reached'] > 0], *(y for points in reference.values() for y in points.values())],
    )
    span = max(lengths) - min(lengths) or max(lengths)
    for place, model in enumerate(analysis.model_order(rows)):
        _draw_mean(axis, summary[summary['model'] == model], look[model], x)
        shift = (0.02 + 0.013 * place) * span  # Right of the mean, which would hide the dots.
        _draw_lanes(axis, rows[rows['model'] == model], look[model], shift, top, x)
    for model, points in reference.items():
        axis.plot(
            points.keys(),
            points.values(),
            color=look[model][0],
            marker=look[model][1],
            zorder=2,
            gid=f'reference {model}',
            **_MARKS['published'],
        )
    start = 0 if min(lengths) <= max(span, max(lengths) / 2) else min(lengths) - 0.06 * span
    axis.set(
        ylim=(0, top),
        xlim=(start, max(lengths) + 0.08 * span),
        xlabel=AXIS_NAMES.get(x, x),
        xticks=spaced(lengths, max(lengths) - start),
    )
    axis.yaxis.set_major_formatter(thousands)
    return off_scale


def _draw_mean(axis: Axes, cells: pd.DataFrame, look: tuple, x: str) -> None:
    """The mean with its band; a thin dotted line to an open marker and '≥' for a lower bound."""
    colour, marker, style = look
    cells = cells[cells['mean'].notna()].sort_values(x)
    bound, reached = cells['lower_bound'].to_numpy(bool), cells['num_reached'].to_numpy() > 0
    length, mean = cells[x].to_numpy(), cells['mean'].to_numpy()
    name = ' '.join(cells['model'].head(1))
    axis.fill_between(
        length,
        cells['low'].mask(bound),
        cells['high'],
        color=colour,
        alpha=0.18,
        linewidth=0,
        zorder=1.5,
        gid=f'interval {name}',
    )
    axis.plot(
        length,
        np.where(bound, np.nan, mean),
        color=colour,
        linestyle=style,
        marker=marker,
        zorder=3,
        gid=f'mean {name}',
    )
    if reached.any():  # Else there is no curve, triangles at the budget say it all.
        near = bound | np.append(bound[1:], False) | np.append(False, bound[:-1])
        axis.plot(
            length, np.where(near, mean, np.nan), ':', color=colour, linewidth=0.8, zorder=2, gid=f'bound line {name}'
        )
    for place in np.flatnonzero(bound & reached):
        axis.plot(
            length[place], mean[place], marker, color=colour, markerfacecolor='white', zorder=3, gid=f'bound {name}'
        )
        axis.annotate(
            '≥',
            (length[place], mean[place]),
            (0, 4),
            textcoords='offset points',
            ha='center',
            va='bottom',
            color=colour,
            annotation_clip=True,
        )


def _draw_lanes(axis: Axes, rows: pd.DataFrame, look: tuple, shift: float, top: float, x: str) -> None:
    """Every lane: a dot where it reached, a triangle at its budget, a cross if it diverged."""
    for outcome, lanes in rows.groupby('outcome', observed=True):
        samples = {
            'reached': lanes['samples_to_threshold'],
            'diverged': _EDGE * top,
            'censored': lanes['max_samples'].clip(upper=_EDGE * top),
        }[outcome]
        axis.plot(
            lanes[x] + shift,
            np.broadcast_to(np.asarray(samples, float), len(lanes)),
            color=look[0],
            zorder=4,
            gid=f'{outcome} {lanes["model"].iloc[0]}',
            **_MARKS[outcome],
        )


def _top(rows: pd.DataFrame, shown: list[float]) -> tuple[float, bool]:
    """Upper end of the samples axis, and whether the budget of a censored lane lies above it."""
    reached = rows['samples_to_threshold'][rows['outcome'] == 'reached'].astype(float)
    budget = max([1.0, *rows['max_samples'][rows['outcome'] == 'censored'].astype(float)])
    highest = max([0.0, *reached, *shown])
    if highest and budget > _OFF_SCALE * highest:
        return 1.2 * highest, True
    return 1.08 * max(highest, budget), False


def _legend(axis: Axes, rows: pd.DataFrame, look: dict, has_reference: bool, off_scale: bool, x: str) -> None:
    """Models with their exponents, then what the other marks in the panel mean."""
    entries = []
    for model in analysis.model_order(rows):
        colour, marker, style = look[model]
        own = rows[rows['model'] == model]
        label = f'{display(model)}  {_power(analysis.exponent(own, x), x)}, {_num_lanes(own, x)}'
        entries.append(lines.Line2D([], [], color=colour, marker=marker, linestyle=style, label=label))
    budgets = sorted(set(rows['max_samples'][rows['outcome'] == 'censored'].astype(float)))
    within = ', '.join(map(thousands, budgets)) + (' (off scale)' if off_scale else '')
    labels = {'published': 'published', 'censored': f'not reached within {within}', 'diverged': 'diverged'}
    seen = {*rows['outcome'], *(['published'] if has_reference else [])}
    entries += [
        lines.Line2D([], [], color='0.4', label=label, **{'marker': 'o'} | _MARKS[mark])
        for mark, label in labels.items()
        if mark in seen
    ]
    axis.legend(handles=entries, loc='lower left', bbox_to_anchor=(0, 1.0), borderaxespad=0.2, alignment='left')


def _num_lanes(rows: pd.DataFrame, x: str) -> str:
    """'5 lanes' behind every mean of a curve, or '1–5 lanes'."""
    counts = rows.groupby(x).size()
    few, most = counts.min(), counts.max()
    return f'{few if few == most else f"{few}–{most}"} lane{"s" if most > 1 else ""}'


def _power(fit: analysis.Exponent, x: str) -> str:
    """'N^0.62 [0.55, 0.70]' as mathtext, or why there is no exponent."""
    if fit.value is None:
        return f'({fit.note})'
    symbol, (value, *interval) = analysis.SYMBOLS.get(x, x), str(fit).split(maxsplit=1)
    total = fit.num_lengths + len(fit.left_out)
    part = f' ({fit.num_lengths} of {total} {symbol})' if fit.left_out else ''
    return ' '.join([f'${symbol}^{{{value}}}$', *interval]) + part


def _setting(column: str, value: object) -> str:
    symbol = analysis.SYMBOLS.get(column)
    return f'{symbol} = {value}' if symbol else display(value)
