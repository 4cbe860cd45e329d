"""Mean samples to the threshold against N, q or any other setting, on linear axes: Figures 1 and 3 of the paper."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib import lines
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from qstr_jax import analysis
from qstr_jax.analysis import Curve
from qstr_jax.analysis.summary import NEED_MORE, samples_or_bound
from qstr_jax.plots.labels import coarse_key, display, point_text, power, samples_to_threshold, thousands
from qstr_jax.plots.panels import XAxis, by_panel, mark_means, mark_no_retrieval, no_retrieval_key
from qstr_jax.plots.style import STYLE, Look, frame, legend_line, looks, make_room

_MARKS: dict[str, dict[str, Any]] = {
    'reached': {'marker': '.', 'markersize': 4, 'alpha': 0.6, 'mew': 0, 'linestyle': 'none'},
    'censored': {'marker': '^', 'markersize': 5, 'fillstyle': 'none', 'linestyle': 'none'},
    'outraced': {'marker': '^', 'markersize': 5, 'linestyle': 'none'},
    'censored_below': {'marker': 'v', 'markersize': 5, 'fillstyle': 'none', 'linestyle': 'none'},
    'diverged': {'marker': 'x', 'markersize': 4.5, 'linestyle': 'none'},
    'published': {'markersize': 6, 'alpha': 0.5, 'fillstyle': 'none', 'linestyle': 'none'},
}
# A budget so many times above all that was measured would flatten the curves.
_OFF_SCALE = 2.5
_KEY = 'dots: lanes; lines: geometric means of those that learn; bands: 95 % t intervals of the mean'
# Marks at the top stand at this share of the samples axis.
_EDGE = 0.965

Reference = Mapping[str, Mapping[Any, float]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Panel:
    """What the parts of one panel share."""

    axis: Axes
    x: XAxis
    rows: pd.DataFrame
    top: float
    is_off_scale: bool


def samples_against(
    rows: pd.DataFrame,
    x: str = 'seq_len',
    *,
    reference: Reference | None = None,
    title: str = '',
    notes: Sequence[str] = (),
) -> Figure:
    """Samples to the threshold as in Figure 1, with every lane, intervals and exponents.

    A curve is the geometric mean of the lanes that learn, with Student's 95% interval of the log mean as a band; the
    legend has its exponent. A dotted line and '≥' lead to a mean that is a lower bound, 'k of n' stands at one of which
    some lanes never learn, and a ring is around one of one to three checks. Lanes are dots beside the mean: one that
    did not reach is an open triangle at its budget or, off scale, at the top edge; one that was outraced has a full one
    where it was stopped, and one that diverged is a cross at the top. Curves differ in any setting but those that
    follow from `x`; settings of the task make panels.

    Args:
        rows: one row per lane, as for `analysis.summarize`.
        x: the setting on the x axis; names stand side by side.
        reference: published values, model -> {value of x: samples}, drawn as open faint markers.
        title: above the figure.
        notes: small, under the figure, such as '1,000 test prompts'.

    Returns:
        The figure. The samples axis starts at 0, and so does the other unless all values lie in its upper half.

    Raises:
        ValueError: as `analysis.summarize`, or a reference for more than one panel.
    """
    means = analysis.summarize(rows)  # Checks the rows before anything is drawn.
    panels = by_panel(analysis.split_curves(rows, x))
    reference = reference or {}
    if reference and len(panels) > 1:
        raise ValueError(f'reference values belong to one panel, rows make {len(panels)}')
    look = looks(sorted({*(curve.key for curves in panels for curve in curves), *reference}))
    with matplotlib.rc_context(STYLE):
        figure, axes = frame(
            len(panels), title, notes, key='; '.join([_KEY, *coarse_key(rows, means), *no_retrieval_key(rows)])
        )
        entries = [_fill(axis, curves, x, look, reference) for axis, curves in zip(axes, panels, strict=True)]
        axes[0].set_ylabel(samples_to_threshold(rows))
        make_room(figure, axes, max(entries) + (len(panels) > 1))
    return figure


def _fill(axis: Axes, curves: list[Curve], x: str, look: dict[str, Look], reference: Reference) -> int:
    """Draws one panel; returns how many entries its legend has."""
    panel = _panel(axis, curves, x, reference)
    _draw_panel(panel, curves, look, reference)
    return _legend(panel, curves, look, bool(reference))


def _panel(axis: Axes, curves: list[Curve], x: str, reference: Reference) -> _Panel:
    """The axes of a panel and their limits."""
    rows = pd.concat([curve.lanes for curve in curves])
    published = [samples for points in reference.values() for samples in points.values()]
    means = [analysis.summarize(curve.lanes, [x]) for curve in curves]
    shown = [value for summary in means for value in summary['mean'][summary['num_reached'] > 0]]
    top, is_off_scale = _top(rows, [*shown, *published])
    values = [*rows[x], *(value for points in reference.values() for value in points)]
    return _Panel(axis=axis, x=XAxis.of(x, values), rows=rows, top=top, is_off_scale=is_off_scale)


def _draw_panel(panel: _Panel, curves: list[Curve], look: dict[str, Look], reference: Reference) -> None:
    """Curves, lanes, published values, limits and ticks."""
    step = min(0.013, 0.05 / len(curves))
    for place, curve in enumerate(curves):
        _draw_mean(panel, curve, look[curve.key])
        # Right of the mean, which would hide the dots.
        _draw_lanes(panel, curve, look[curve.key], 0.02 + step * place)
    for model, points in reference.items():
        colour, marker, _ = look[model]
        panel.axis.plot(
            panel.x.place(points), list(points.values()), color=colour, marker=marker, zorder=2,
            gid=f'reference {model}', **_MARKS['published'],
        )  # fmt: skip
    panel.x.draw(panel.axis)
    mark_no_retrieval(panel.axis, panel.x, panel.rows)
    panel.axis.set_ylim(0, panel.top)
    panel.axis.yaxis.set_major_formatter(thousands)


def _draw_mean(panel: _Panel, curve: Curve, look: Look) -> None:
    """The mean with its band; a thin dotted line to an open marker and '≥' for a lower bound."""
    axis, (colour, marker, style) = panel.axis, look
    cells = analysis.summarize(curve.lanes, [panel.x.column])
    cells = cells[cells['mean'].notna()]
    place, mean = panel.x.place(cells[panel.x.column]), cells['mean'].to_numpy(float)
    order = np.argsort(place)
    cells, place, mean = cells.iloc[order], place[order], mean[order]
    bound, reached = cells['lower_bound'].to_numpy(bool), cells['num_reached'].to_numpy() > 0
    mark_means(axis, place, cells, colour)
    axis.fill_between(
        place, cells['low'].mask(bound), cells['high'], color=colour, alpha=0.18, linewidth=0, zorder=1.5,
        gid=f'interval {curve.key}',
    )  # fmt: skip
    axis.plot(
        place, np.where(bound, np.nan, mean), color=colour, linestyle=style, marker=marker, zorder=3,
        gid=f'mean {curve.key}',
    )  # fmt: skip
    if reached.any():  # Otherwise there is no curve, and triangles at the budget say it all.
        near = bound | np.append(bound[1:], False) | np.append(False, bound[:-1])
        dotted = np.where(near, mean, np.nan)
        axis.plot(place, dotted, ':', color=colour, linewidth=0.8, zorder=2, gid=f'bound line {curve.key}')
    for at, value in zip(place[bound & reached], mean[bound & reached], strict=True):
        axis.plot(at, value, marker, color=colour, markerfacecolor='white', zorder=3, gid=f'bound {curve.key}')
        axis.annotate(
            '≥', (at, value), (0, 4), textcoords='offset points', ha='center', va='bottom', color=colour,
            annotation_clip=True,
        )  # fmt: skip


def _draw_lanes(panel: _Panel, curve: Curve, look: Look, shift: float) -> None:
    """Every lane: a dot where it reached, a mark at its bound where not, a cross if it diverged."""
    edge = _EDGE * panel.top
    for outcome, lanes in curve.lanes.groupby('outcome', observed=True):
        samples = samples_or_bound(lanes).fillna(edge)
        if outcome in NEED_MORE:
            samples = samples.clip(upper=edge)
        panel.axis.plot(
            panel.x.place(lanes[panel.x.column], shift), samples,
            color=look[0], zorder=4, gid=f'{outcome} {curve.key}', **_MARKS[str(outcome)],
        )  # fmt: skip


def _top(rows: pd.DataFrame, shown: list[float]) -> tuple[float, bool]:
    """Upper end of the samples axis, and whether the budget of a censored lane lies above it."""
    reached = rows['samples_to_threshold'][rows['outcome'] == 'reached'].astype(float)
    budget = max([1.0, *samples_or_bound(rows[rows['outcome'].isin(NEED_MORE)])])
    highest = max([0.0, *reached, *shown])
    if highest and budget > _OFF_SCALE * highest:
        return 1.2 * highest, True
    return 1.08 * max(highest, budget), False


def _legend(panel: _Panel, curves: list[Curve], look: dict[str, Look], has_reference: bool) -> int:
    """Curves with their exponents, then what the other marks mean, above the panel, where it hides no lane."""
    x, rows = panel.x.column, panel.rows
    entries = []
    for curve in curves:
        exponent = power(analysis.exponent(curve.lanes, x), x)
        entries.append(legend_line(look[curve.key], f'{display(curve.name)}  {exponent}, {_num_lanes(curve.lanes, x)}'))
    budgets = sorted(set(rows['max_samples'][rows['outcome'] == 'censored'].astype(float)))
    within = ', '.join(map(thousands, budgets)) + (' (off scale)' if panel.is_off_scale else '')
    labels = {
        'published': 'published',
        'censored': f'not reached within {within}',
        'outraced': 'stopped here, since a rival needs fewer',
        'censored_below': 'the smallest n tried was enough',
        'diverged': 'diverged',
    }
    seen = {*rows['outcome'], *(['published'] if has_reference else [])}
    entries += [
        lines.Line2D([], [], color='0.4', label=label, **{'marker': 'o'} | _MARKS[mark])
        for mark, label in labels.items()
        if mark in seen
    ]
    panel.axis.legend(
        handles=entries, loc='lower left', bbox_to_anchor=(0, 1.0), borderaxespad=0.2, alignment='left',
        title=point_text(curves[0]) or None,
    )  # fmt: skip
    return len(entries)


def _num_lanes(lanes: pd.DataFrame, x: str) -> str:
    """'5 lanes' behind every mean of a curve, or '1–5 lanes'."""
    counts = lanes.groupby(x).size()
    few, most = counts.min(), counts.max()
    return f'{few if few == most else f"{few}–{most}"} lane{"s" if most > 1 else ""}'
