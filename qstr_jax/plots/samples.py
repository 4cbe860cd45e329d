"""Samples to the threshold, or n*, against N, q or any other setting on logarithmic axes: how the need grows."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from qstr_jax import analysis
from qstr_jax.analysis import Curve, erms, line_fit
from qstr_jax.analysis.exponents import MIN_LANES, fits
from qstr_jax.analysis.summary import samples_or_bound
from qstr_jax.plots import ends
from qstr_jax.plots.labels import coarse_key, display, point_text, power, samples_to_threshold, thousands
from qstr_jax.plots.panels import by_panel, common_values, log_ticks, mark_means, mark_no_retrieval, no_retrieval_key
from qstr_jax.plots.style import STYLE, Look, frame, looks
from qstr_jax.plots.x_axis import XAxis

_LANE_MARKS = {
    'reached': '.', 'censored': '^', 'outraced': '^', 'censored_below': 'v', erms.AT_MOST: 'v', 'diverged': 'x',
    erms.UNFITTED: '+',
}  # fmt: skip
_LINE_STYLES = ('--', '-.', (0, (8, 2)), (0, (4, 1, 1, 1, 1, 1)))
_MARK_WORDS = {
    'censored': '△ more than the budget',
    'outraced': '▲ more than this n, a rival needs less',
    'censored_below': '▽ the smallest n tried was enough',
    erms.AT_MOST: '▼ at most this: just below, the fit is no ERM',
    'diverged': '× diverged',
    erms.UNFITTED: '+ did not fit its training set, which says nothing of n*',
}
# Words that say how many lanes learn, at points where not all do.
_COUNTS = ('learn', 'none learn')
# Where lanes stand beside their mean, as a share of the panel's width.
_BESIDE = 0.012
# Where crosses of diverged lanes stand, as a share of the panel's height.
_TOP = 0.97

Reference = Mapping[str, Mapping[Any, float]]


def samples_against(
    rows: pd.DataFrame,
    x: str = 'seq_len',
    *,
    reference: Reference | None = None,
    lines: pd.DataFrame | None = None,
    title: str = '',
    notes: Sequence[str] = (),
) -> Figure:
    """Samples to the threshold on logarithmic axes, with every lane, intervals, exponents and slopes to compare with.

    A curve is the geometric mean of the lanes that learn, with Student's 95% interval of the log mean as a band; its
    name and exponent stand at its end. It is dotted where it is a bound. 'k of n' stands at means of which some lanes
    never learn, and means of one to three checks have a ring. Every lane is a dot, or a ring if it is known to be no
    ERM (`analysis.erms`). A lane that needs more than its budget is a triangle at the budget, or a + if it did not fit
    its training set. A lane that needs less than the smallest n tried is a triangle that points down, and a lane that
    diverged is a cross at the top. Curves differ in any setting except those that follow from `x`; settings of the task
    make panels, and so do more than six curves.

    Args:
        rows: one row per lane, as for `analysis.summarize`.
        x: the setting on the x axis; names stand side by side.
        reference: published values, model -> {value of x: samples}, drawn as open faint markers.
        lines: further lines, black: `name`, the column `x`, `samples`, and the settings of the task by which panels
            differ; NaN samples leave a gap.
        title: above the figure.
        notes: small, under the figure, such as '1,000 test prompts'.

    Raises:
        ValueError: as `analysis.summarize`, or a reference for more than one panel.
    """
    means = analysis.summarize(rows)  # Checks the rows before anything is drawn.
    split, reference = analysis.split_curves(rows, x), reference or {}
    panels = by_panel(split)
    if reference and len(panels) > 1:
        raise ValueError(f'reference values belong to one panel, rows make {len(panels)}')
    look = looks([*(curve.key for curves in panels for curve in curves), *reference])
    words = curve_texts(split, rows, x)
    others = [value for own in (*reference.values(), *(() if lines is None else (lines[x],))) for value in own]
    across = XAxis.of(x, [*rows[x], *others])
    published = ['open: published'] if reference else []
    with matplotlib.rc_context(STYLE):
        key = '; '.join([
            marks_text(rows, words), *coarse_key(rows, means), *no_retrieval_key(rows), *published,
        ])  # fmt: skip
        figure, axes = frame(len(panels), title, notes, sharey=True, key=key, beside=words)
        axes[0].set_yscale('log')
        left = iter(words)
        named = [
            _draw_panel(axis, [(curve, next(left)) for curve in curves], look, across, (reference, lines))
            for axis, curves in zip(axes, panels, strict=True)
        ]
        axes[0].set_ylabel(samples_to_threshold(rows))
        finish_panels(axes, named, slopes=across.is_wide)
    return figure


def _draw_panel(
    axis: Axes,
    curves: list[tuple[Curve, str]],
    look: dict[str, Look],
    x: XAxis,
    others: tuple[Reference, pd.DataFrame | None],
) -> list[ends.Words]:
    """Draws curves with their words, published values and further lines; returns what is to stand at their ends."""
    reference, lines = others
    named, values = [], common_values([curve for curve, _ in curves], x.column)
    for place, (curve, words) in enumerate(curves):
        shift = 0.006 * (place - (len(curves) - 1) / 2)
        named += draw_means(axis, curve, look[curve.key], x, shift, text=words, values=values)
    for model, points in reference.items():
        colour, marker, _ = look[model]
        style = {'linestyle': 'none', 'fillstyle': 'none', 'markersize': 6, 'alpha': 0.5, 'color': colour}
        axis.plot(x.place(points), list(points.values()), marker, gid=f'reference {model}', zorder=2, **style)
    x.draw(axis)
    mark_no_retrieval(axis, x, pd.concat([curve.lanes for curve, _ in curves]))
    first = curves[0][0]
    axis.set_title(point_text(first), loc='left')
    return [*named, *(() if lines is None else _draw_lines(axis, lines, first, x))]


def curve_texts(curves: Sequence[Curve], rows: pd.DataFrame, x: str) -> list[str]:
    """What stands at the end of each curve of a table: its name, and under it its exponent if it has one."""
    found = []
    for curve, fit in zip(curves, fits(curves, rows, x), strict=True):
        found.append(display(curve.short) if fit.value is None else f'{display(curve.short)}\n{power(fit, x)}')
    return found


def marks_text(rows: pd.DataFrame, words: Sequence[str] = ()) -> str:
    """What the marks of `draw_means` are, and what stands behind exponents."""
    outcomes = set(erms.with_bounds(rows)['outcome'])
    marks = [text for outcome, text in _MARK_WORDS.items() if outcome in outcomes]
    lanes = 'dots: ERMs; rings: fits that are no ERMs, in no exponent' if erms.is_known(rows).any() else 'dots: lanes'
    fail = {'censored', 'diverged', erms.UNFITTED}
    counts = ['k of n: lanes that learn, where some do not'] if outcomes & fail else []
    by_noise = [f'*: by {line_fit.BY_NOISE}'] if any('*' in text for text in words) else []
    who = ' of lanes that learn' if counts else ''
    means = f'lines: geometric means{who}, with 95 % intervals, dotted where they are bounds'
    return '; '.join([lanes, *marks, means, *counts, *by_noise])


def draw_means(
    axis: Axes, curve: Curve, look: Look, x: XAxis, shift: float = 0.0, *, text: str = '', values: Iterable[Any] = ()
) -> list[ends.Words]:
    """Draws one curve: the line of means with its interval, and every lane; returns words for its means and its end.

    The line has a gap at those `values`, which other curves of the panel have, at which this one has no mean.
    """
    colour = look[0]
    named = _draw_line(axis, curve, look, x, (shift, text, values))
    is_filled = ~erms.is_short(curve.lanes)
    for (outcome, filled), lanes in erms.with_bounds(curve.lanes).groupby(['outcome', is_filled], observed=True):
        samples, is_open = samples_or_bound(lanes), outcome in ('censored', 'censored_below')
        transform: dict[str, Any] = {'transform': axis.get_xaxis_transform()} if samples.isna().all() else {}
        axis.plot(
            x.place(lanes[x.column], shift + _BESIDE), samples.fillna(_TOP).to_numpy(), _LANE_MARKS[str(outcome)],
            color=colour, markersize=4, alpha=0.7, fillstyle='full' if filled and not is_open else 'none',
            gid=f'{outcome} {curve.key}', **transform,
        )  # fmt: skip
    ends_at = curve.lanes.assign(bound=samples_or_bound(curve.lanes), place=x.place(curve.lanes[x.column]))
    if not any(one.gid.startswith('end') for one in named) and ends_at['bound'].notna().any():
        last = ends_at.sort_values(['place', 'bound']).iloc[-1]
        named.append(ends.Words(last['place'], last['bound'], text, colour, f'end {curve.key}'))
    return named


def _draw_line(
    axis: Axes, curve: Curve, look: Look, x: XAxis, how: tuple[float, str, Iterable[Any]]
) -> list[ends.Words]:
    """The line of means, without lanes that are no ERMs and without N at which these leave too few others."""
    (colour, marker, style), (shift, text, values) = look, how
    is_short, at = erms.is_short(curve.lanes), curve.lanes[x.column]
    is_thin = is_short.groupby(at).transform('any') & ((~is_short).groupby(at).transform('sum') < MIN_LANES)
    lanes = curve.lanes[~is_short & ~is_thin]
    if lanes.empty:
        return []
    cells = analysis.summarize(lanes, [x.column])
    has_mean = cells['num_learn'].gt(0) | cells['num_outraced'].gt(0)
    none = _none_learn(cells[~has_mean & cells['lower_bound'].eq(True)], x, colour, shift)
    cells = cells[has_mean]
    if cells.empty:
        return none
    cells = _with_gaps(cells, x, values)
    places, mean = x.place(cells[x.column], shift), cells['mean'].to_numpy(float)
    is_bound = (cells['lower_bound'].eq(True) | cells['upper_bound'].eq(True)).to_numpy()
    axis.fill_between(
        places, cells['low'].mask(is_bound), cells['high'], color=colour, alpha=0.15, linewidth=0, zorder=1.5,
        gid=f'interval {curve.key}',
    )  # fmt: skip
    touches = pd.Series(is_bound, dtype=float).rolling(3, center=True, min_periods=1).max()  # it or a neighbour is one
    touching = np.where(touches > 0, mean, np.nan)
    axis.plot(places, touching, color=colour, linestyle=':', linewidth=0.8, gid=f'bounds {curve.key}')
    axis.plot(places, np.where(is_bound, np.nan, mean), color=colour, linestyle=style, gid=f'mean {curve.key}')
    for some, face in ((~is_bound, colour), (is_bound, 'white')):
        axis.plot(places[some], mean[some], marker, color=colour, markerfacecolor=face, linestyle='none')
    end = ends.Words(places[-1], mean[-1], text, colour, f'end {curve.key}')
    is_mean = np.isfinite(mean)
    return [*mark_means(axis, places[is_mean], cells[is_mean], colour), *none, end]


def _none_learn(cells: pd.DataFrame, x: XAxis, colour: Any, shift: float) -> list[ends.Words]:
    """'0 of n' at the budget of points at which no lane learns."""
    places = x.place(cells[x.column], shift + _BESIDE)
    return [
        ends.Words(place, cell['mean'], f'0 of {cell["num_judged"]}', colour, 'none learn')
        for place, cell in zip(places, cells.to_dict('records'), strict=True)
    ]


def _with_gaps(cells: pd.DataFrame, x: XAxis, values: Iterable[Any]) -> pd.DataFrame:
    """The means in the order of the axis, with an empty row for each value between them that has no mean."""
    panel = {*cells[x.column], *values}
    rows = cells.set_index(x.column).reindex([value for value in x.values if value in panel])
    return rows.loc[rows['mean'].first_valid_index() : rows['mean'].last_valid_index()].reset_index()


def finish_panels(axes: Sequence[Axes], named: Sequence[Sequence[ends.Words]], *, slopes: bool) -> None:
    """Limits, ticks, slopes to compare with, and the words at means and ends, of panels with one y axis."""
    has_counts = any(one.gid in _COUNTS for own in named for one in own)
    low, high = axes[0].get_ylim()
    room = high / low
    axes[0].set_ylim(low / room ** (0.15 * slopes), max(high * room ** (0.12 * has_counts), 8 * low))
    early = []
    for axis, own in zip(axes, named, strict=True):
        log_ticks(axis.yaxis, thousands)
        early.append([one for one in own if one.gid not in _COUNTS and ends.is_early(axis, one)])
        ends.at_ends(axis, [one for one in own if one.gid not in _COUNTS and one not in early[-1]])
    ends.settle(axes[0])  # The words beside the panels have changed the layout.
    for axis, own, some in zip(axes, named, early, strict=True):
        ends.at_points(axis, some, above=False)
        ends.at_points(axis, [one for one in own if one.gid in _COUNTS], above=True)
        if slopes:
            _draw_slopes(axis)


def _draw_slopes(axis: Axes) -> None:
    """Grey lines x and x² from the lower left corner."""
    (left, right), (low, high) = axis.get_xlim(), axis.get_ylim()
    for slope in (1, 2):
        end = min(right, left * (high / low) ** (1 / slope))
        line = [(left, low), (end, low * (end / left) ** slope)]
        text = axis.text(0, 0, f'slope {slope}', transform=axis.transAxes, ha='center', va='center', color='0.6')
        text.set(fontsize=6, zorder=0.6)
        ends.along(axis, line, text)  # Before the line is drawn, since texts keep clear of lines.
        axis.plot(*zip(*line, strict=True), color='0.75', linewidth=0.7, zorder=0.6, gid=f'slope {slope}')
    axis.set(xlim=(left, right), ylim=(low, high))


def _draw_lines(axis: Axes, lines: pd.DataFrame, curve: Curve, x: XAxis) -> list[ends.Words]:
    """Draws the further lines of a curve's panel, and returns their names for their ends."""
    named, styles = [], dict(zip(lines['name'].unique(), itertools.cycle(_LINE_STYLES), strict=False))
    for name, value in curve.task.items():
        if name in lines.columns:
            lines = lines[lines[name].isna() if pd.isna(value) else lines[name].eq(value)]
    for name, style in styles.items():
        points = lines[lines['name'] == name]
        points = points[points[x.column].isin(x.values)].sort_values(x.column)
        if points['samples'].isna().all():
            continue
        look: dict[str, Any] = {'color': '0.25', 'linestyle': style, 'marker': '.', 'markersize': 3, 'linewidth': 1.0}
        places, samples = x.place(points[x.column]), points['samples'].to_numpy(float)
        axis.plot(places, samples, gid=f'line {name}', **look)
        last = np.flatnonzero(np.isfinite(samples))[-1]
        named.append(ends.Words(places[last], samples[last], display(name), '0.25', f'end {name}'))
    return named
