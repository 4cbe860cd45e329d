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
from qstr_jax.analysis.summary import LEARNED, samples_or_bound
from qstr_jax.plots import ends
from qstr_jax.plots.labels import coarse_key, display, point_text, power, samples_to_threshold, thousands
from qstr_jax.plots.panels import by_panel, common_values, log_ticks, mark_coarse, mark_no_retrieval, no_retrieval_key
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
    'short': '▽ the same of fits that are no ERMs, in no exponent',
    'diverged': '× diverged',
    erms.UNFITTED: '+ did not fit its training set, which says nothing of n*',
}
# Words that say how many lanes learn, fit or are ERMs, at points where not all do.
_COUNTS = ('learn', 'none learn', 'fit')
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

    A curve is the geometric mean of the lanes that learn, with Student's 95% interval of the log mean as a band, or as
    a bar at a point without neighbours; its name and exponent stand at its end. Where it is a bound it is dotted and
    its mark is half full. A mean of fewer than three lanes is open, has no interval and is not joined to others, unless
    no point of the figure has three. 'k of n' stands at points of which some lanes never learn, 'k of n fit' or 'k of n
    ERMs' where others do not count, and means of one to three checks have a ring. Every lane is a dot, or a ring if it
    is known to be no ERM (`analysis.erms`). A lane that needs more than its budget is a triangle at the budget, or a +
    if it did not fit its training set. A lane that needs less than the smallest n tried is a triangle that points down,
    and a lane that diverged is a cross at the top. Curves differ in any setting except those that follow from `x`;
    settings of the task make panels, and so do more than six curves.

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
    words, least = curve_texts(split, rows, x), least_lanes(rows)
    others = [value for own in (*reference.values(), *(() if lines is None else (lines[x],))) for value in own]
    across = XAxis.of(x, [*rows[x], *others])
    published = ['faint open: published'] if reference else []
    with matplotlib.rc_context(STYLE):
        key = '; '.join([
            marks_text(rows, words), *coarse_key(rows, means), *no_retrieval_key(rows), *published,
        ])  # fmt: skip
        figure, axes = frame(len(panels), title, notes, sharey=True, key=key, beside=words)
        axes[0].set_yscale('log')
        left = iter(words)
        named = [
            _draw_panel(axis, [(curve, next(left)) for curve in curves], look, across, (reference, lines, least))
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
    others: tuple[Reference, pd.DataFrame | None, int],
) -> list[ends.Words]:
    """Draws curves with their words, published values and further lines; returns the words for their ends."""
    reference, lines, least = others
    named, values = [], common_values([curve for curve, _ in curves], x.column)
    for place, (curve, words) in enumerate(curves):
        shift = 0.006 * (place - (len(curves) - 1) / 2)
        named += draw_means(axis, curve, look[curve.key], x, shift, text=words, values=values, least=least)
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


def least_lanes(rows: pd.DataFrame) -> int:
    """The fewest lanes of a mean that is joined to others: three, or fewer if no point of the table has three."""
    return min(MIN_LANES, int(rows.groupby(analysis.point_columns(rows), dropna=False, observed=True).size().max()))


def marks_text(rows: pd.DataFrame, words: Sequence[str] = ()) -> str:
    """What the marks of `draw_means` are, and what stands behind exponents; only what is drawn."""
    rows, least = _judged(rows), least_lanes(rows)
    outcomes = {*rows['end'], *(['short'] if _has(rows, erms.AT_MOST, is_short=True) else [])}
    lanes = ['dots: ERMs' if erms.is_known(rows).any() else 'dots: lanes']
    rings = ['small rings: fits that are no ERMs, in no exponent'] if _has(rows, 'reached', is_short=True) else []
    marks = [text for outcome, text in _MARK_WORDS.items() if outcome in outcomes]
    fails = rows['counts'] & ~rows['learns'] & rows['outcome'].ne('outraced')
    means = ['lines: single lanes' if least == 1 else 'lines: geometric means']
    means[0] += (' of lanes that learn' if fails.any() else '') + (' (of two lanes at most)' if least == 2 else '')
    means += ['95\u00a0% intervals'] if least > 1 else []
    is_bound = any(_has(rows, outcome, is_short=False) for outcome in ('outraced', 'censored_below', erms.AT_MOST))
    bounds = ['dotted, with half-filled marks: bounds'] if is_bound else []
    few = [f'open large marks: fewer than {MIN_LANES} lanes'] if least == MIN_LANES and _has_few(rows) else []
    counts = ['k of n: lanes that learn, where some do not'] if fails.any() else []
    by_noise = [f'*: by {line_fit.BY_NOISE}'] if any('*' in text for text in words) else []
    is_bare = least > 1 and any('^{' in text and '[' not in text for text in words)
    none = ['no interval: means off a line'] if is_bare else []
    return '; '.join([*lanes, *rings, *marks, ', with '.join(means), *bounds, *few, *counts, *by_noise, *none])


def _judged(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with the lanes' ends, bounds included, and whether a lane is no ERM, fits, learns and counts."""
    end, is_short = erms.with_bounds(rows)['outcome'], erms.is_short(rows)
    is_fitted = end.ne(erms.UNFITTED)
    return rows.assign(
        end=end, is_short=is_short, is_fitted=is_fitted, learns=end.isin(LEARNED), counts=~is_short & is_fitted
    )


def _has(rows: pd.DataFrame, outcome: str, *, is_short: bool) -> bool:
    """Whether a lane has an outcome and is, or is not, known to be no ERM."""
    return bool((rows['end'].eq(outcome) & rows['is_short'].eq(is_short)).any())


def _has_few(rows: pd.DataFrame) -> bool:
    """Whether some mean is of fewer than three lanes."""
    point = [rows[name] for name in analysis.point_columns(rows)]
    is_used = rows['counts'] & (rows['learns'] | rows['outcome'].eq('outraced')) & ~_is_thin(rows, point)
    return is_used.groupby(point, dropna=False, observed=True).sum().between(1, MIN_LANES - 1).any()


def _is_thin(rows: pd.DataFrame, point: Any) -> pd.Series:
    """Which lanes belong to a point that has lanes that are no ERMs, and too few others for a mean."""
    by = rows['is_short'].groupby(point, dropna=False, observed=True)
    return by.transform('any') & (by.transform('size') - by.transform('sum') < MIN_LANES)


def draw_means(
    axis: Axes, curve: Curve, look: Look, x: XAxis, shift: float = 0.0, *,
    text: str = '', values: Iterable[Any] = (), least: int = MIN_LANES,
) -> list[ends.Words]:  # fmt: skip
    """Draws one curve: the line of means with its interval, and every lane; returns words for its means and its end.

    The line has a gap where the panel's curves have `values` at which this curve has no mean, and at means of fewer
    than `least` lanes.
    """
    colour = look[0]
    lanes = _judged(curve.lanes).assign(bound=samples_or_bound(curve.lanes))
    means = _means(lanes, x, values)
    named = [] if means.empty else [_draw_line(axis, curve, look, x, (means, shift, text, least))]
    for (outcome, is_short), own in lanes.groupby(['end', 'is_short'], observed=True):
        samples, is_open = own['bound'], outcome in ('censored', 'censored_below')
        transform: dict[str, Any] = {'transform': axis.get_xaxis_transform()} if samples.isna().all() else {}
        axis.plot(
            x.place(own[x.column], shift + _BESIDE), samples.fillna(_TOP).to_numpy(), _LANE_MARKS[str(outcome)],
            color=colour, markersize=4, alpha=0.7, fillstyle='none' if is_short or is_open else 'full',
            gid=f'{outcome} {curve.key}', **transform,
        )  # fmt: skip
    if not named and lanes['bound'].notna().any():
        last = lanes.assign(place=x.place(lanes[x.column])).sort_values(['place', 'bound']).iloc[-1]
        named.append(ends.Words(last['place'], last['bound'], text, colour, f'end {curve.key}'))
    return [*_shares(lanes, means, x, (shift, colour)), *named]


def _means(lanes: pd.DataFrame, x: XAxis, values: Iterable[Any]) -> pd.DataFrame:
    """The means against x, without lanes that are no ERMs, and without the points that `_is_thin` names."""
    lanes = lanes[~lanes['is_short'] & ~_is_thin(lanes, lanes[x.column])]
    if lanes.empty:
        return lanes
    cells = analysis.summarize(lanes, [x.column])
    cells = cells[cells['num_learn'].gt(0) | cells['num_outraced'].gt(0)]
    return cells if cells.empty else _with_gaps(cells, x, values)


def _draw_line(axis: Axes, curve: Curve, look: Look, x: XAxis, how: tuple[pd.DataFrame, float, str, int]) -> ends.Words:
    """The line of means with its marks and intervals; returns the words at its end."""
    (colour, marker, style), (cells, shift, text, least) = look, how
    places, mean = x.place(cells[x.column], shift), cells['mean'].to_numpy(float)
    is_bound = (cells['lower_bound'].eq(True) | cells['upper_bound'].eq(True)).to_numpy()
    is_few = (cells['num_learn'] + cells['num_outraced'] < least).to_numpy()
    low, high = (np.where(is_bound | is_few, np.nan, cells[name].to_numpy(float)) for name in ('low', 'high'))
    _draw_intervals(axis, places, (low, high), (colour, curve.key))
    touches = pd.Series(is_bound, dtype=float).rolling(3, center=True, min_periods=1).max()  # it or a neighbour is one
    joined = np.where(is_few, np.nan, mean)
    touching = np.where(touches > 0, joined, np.nan)
    axis.plot(places, touching, color=colour, linestyle=':', linewidth=0.8, gid=f'bounds {curve.key}')
    axis.plot(places, np.where(is_bound, np.nan, joined), color=colour, linestyle=style, gid=f'mean {curve.key}')
    fills = {'full': ~is_bound & ~is_few, 'bottom': is_bound & ~is_few, 'none': is_few}
    for fill, some in fills.items():
        face: dict[str, Any] = {'fillstyle': fill, 'markerfacecoloralt': 'white', 'color': colour}
        axis.plot(places[some], mean[some], marker, linestyle='none', gid=f'{fill} {curve.key}', **face)
    is_mean = np.isfinite(mean)
    mark_coarse(axis, places[is_mean], cells[is_mean], colour)
    return ends.Words(places[-1], mean[-1], text, colour, f'end {curve.key}')


def _draw_intervals(
    axis: Axes, places: np.ndarray, interval: tuple[np.ndarray, np.ndarray], how: tuple[Any, str]
) -> None:
    """A band of the intervals of means, with a bar where neither neighbour has one."""
    (low, high), (colour, key) = interval, how
    look: dict[str, Any] = {'color': colour, 'alpha': 0.15, 'linewidth': 0, 'zorder': 1.5}
    axis.fill_between(places, low, high, gid=f'interval {key}', **look)
    has = np.isfinite(low) & np.isfinite(high)
    beside = np.concatenate([[False], has, [False]])
    for i in np.flatnonzero(has & ~beside[:-2] & ~beside[2:]):
        axis.plot(places[[i, i]], [low[i], high[i]], '_-', color=colour, linewidth=0.8, gid=f'bar {key}')


def _shares(lanes: pd.DataFrame, means: pd.DataFrame, x: XAxis, how: tuple[float, Any]) -> list[ends.Words]:
    """How many lanes of each point are ERMs or fit, and how many of these learn, where not all do."""
    shift, colour = how
    mean = {} if means.empty else means.set_index(x.column)['mean'].dropna().to_dict()
    found = []
    for value, own in lanes[lanes['bound'].notna()].groupby(x.column, sort=False):
        [place] = x.place([value], shift + (0 if value in mean else _BESIDE))
        own, height = lanes[lanes[x.column].eq(value)], mean.get(value, own['bound'].max())
        judged = own['learns'][own['counts'] & own['outcome'].ne('outraced')]
        is_good, unit = (~own['is_short'], 'ERMs') if own['is_short'].any() else (own['is_fitted'], 'fit')
        texts = [] if is_good.all() else [f'{is_good.sum()} of {len(own)} {unit}']
        gid = 'fit' if judged.all() else 'learn' if judged.any() else 'none learn'
        if not judged.all():
            texts.append(f'{judged.sum()} learn' if texts else f'{judged.sum()} of {len(judged)}')
        if texts:
            found.append(ends.Words(place, height, ', '.join(texts), colour, gid))
    return found


def _with_gaps(cells: pd.DataFrame, x: XAxis, values: Iterable[Any]) -> pd.DataFrame:
    """The means in the order of the axis, with an empty row for each value between them that has no mean."""
    panel = {*cells[x.column], *values}
    rows = cells.set_index(x.column).reindex([value for value in x.values if value in panel])
    return rows.loc[rows['mean'].first_valid_index() : rows['mean'].last_valid_index()].reset_index()


def finish_panels(axes: Sequence[Axes], named: Sequence[Sequence[ends.Words]], *, slopes: bool) -> None:
    """Limits, ticks, slopes to compare with, and the words at means and ends, of panels with one y axis."""
    counts = [[one for one in own if one.gid in _COUNTS] for own in named]
    names = [[one for one in own if one.gid not in _COUNTS] for own in named]
    early = [
        [one for one in own if ends.is_early(axis, one, own, len(marked))]
        for axis, own, marked in zip(axes, names, counts, strict=True)
    ]
    low, high = axes[0].get_ylim()
    room, above = high / low, 0.2 * any(counts) + 0.12 * any(early)
    axes[0].set_ylim(low / room ** (0.15 * slopes), max(high * room**above, 8 * low))
    for axis, own, some in zip(axes, names, early, strict=True):
        log_ticks(axis.yaxis, thousands)
        ends.at_ends(axis, [one for one in own if one not in some])
    ends.settle(axes[0])  # The words beside the panels have changed the layout.
    for axis, own, some in zip(axes, counts, early, strict=True):
        ends.at_points(axis, own, above=True)
        ends.at_points(axis, some, above=False)
        if slopes:
            _draw_slopes(axis)


def _draw_slopes(axis: Axes) -> None:
    """Grey lines x and x² from the lower left corner."""
    (left, right), (low, high) = axis.get_xlim(), axis.get_ylim()
    for slope in (1, 2):
        end = min(right, left * (high / low) ** (1 / slope))
        line = [(left, low), (end, low * (end / left) ** slope)]
        text = axis.text(0, 0, f'slope {slope}', transform=axis.transAxes, ha='center', va='center', color='0.6')
        text.set(fontsize=7, zorder=0.6)
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
