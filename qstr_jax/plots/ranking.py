"""Many architectures at a few points: a line each, sorted, and a panel for each task."""

import collections
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from qstr_jax import analysis
from qstr_jax.analysis.exponents import MIN_LANES
from qstr_jax.analysis.measured import samples_or_bound
from qstr_jax.analysis.names import value_text
from qstr_jax.analysis.summary import LEARNED
from qstr_jax.plots.labels import aim, display, thousands
from qstr_jax.plots.panels import log_ticks
from qstr_jax.plots.style import HEIGHT, LETTER, STYLE, Look, frame, legend_line, looks

_PANEL_WIDTH, _LINE_HEIGHT = 1.75, 0.17  # Inches.
# The share of an architecture's height that its values take; a line of small type needs a tenth of an inch.
_SPREAD = 0.8
_MARKERS = 'osDPX'


def samples_ranked(
    panels: Mapping[str, pd.DataFrame], by: str = 'seq_len', *, notes: Sequence[str] = (), highlight: str = ''
) -> Figure:
    """Samples to the threshold of many architectures, a line each; those that do best on the first task are on top.

    The order is that of `ranked`. A point with fewer than three lanes that learn has no mean, unless no point has three
    lanes. A mean is open if less than half of its point's lanes learn.

    Args:
        panels: by title the rows of a panel, one per lane, as for `analysis.summarize`.
        by: the setting whose values are told apart by colour and marker.
        notes: small, under the figure.
        highlight: an architecture whose name is bold and whose line is shaded.

    Raises:
        ValueError: as `analysis.summarize`, or no panels.
    """
    if not panels:
        raise ValueError('panels: give at least one')
    means = {name: analysis.summarize(rows, ['model', by]) for name, rows in panels.items()}
    points = pd.concat(means.values(), ignore_index=True)
    order, least = ranked(points, by), min(MIN_LANES, points['num_lanes'].max())
    rows = pd.concat(panels.values(), ignore_index=True)
    values = sorted(rows[by].unique())
    heights, lines = _heights(points, by, order)
    colours = [colour for colour, _, _ in looks(f'{by}={value}' for value in values).values()]
    look: dict[Any, Look] = {
        value: (colour, marker, '') for value, colour, marker in zip(values, colours, itertools.cycle(_MARKERS))
    }
    with matplotlib.rc_context(STYLE):
        key = _key(rows, points, least)
        figure, axes = frame(len(panels), '', notes, sharex=True, sharey=True, key=key, panel_width=_PANEL_WIDTH)
        figure.set_figheight(figure.get_figheight() - HEIGHT + 0.75 + _LINE_HEIGHT * max(6, lines))  # room for the axis
        axes[0].set_xscale('log')
        for axis, (name, own) in zip(axes, panels.items(), strict=True):
            axis.set_title(f'{display(name)}\n{aim(own)}'.strip(), loc='left')
            for value in values:
                some, cells = own[own[by] == value], means[name][means[name][by] == value]
                _draw(axis, some, cells, heights[value], (look[value], least))
            _mark_missing(axis, own.groupby('model')[by].unique(), order)
            axis.set_xlabel(_unit(rows))
        _finish(axes, order, highlight)
        if len(values) > 1:
            _legend(figure, {analysis.setting_text(by, value): look[value] for value in values})
    return figure


def _finish(axes: Sequence[Axes], order: Sequence[str], highlight: str) -> None:
    """Limits and ticks, which the panels share, and the shade of the highlighted line."""
    low, high = axes[0].get_xlim()
    if high < 5 * low:  # A narrower axis may have one tick of 1, 2, 5.
        low, high = axes[0].set_xlim((low * high / 5) ** 0.5, (low * high * 5) ** 0.5)
    log_ticks(axes[0].xaxis, thousands, (1,) if high > 100 * low else (1, 3) if high > 10 * low else (1, 2, 5))
    axes[0].set_yticks(range(len(order)), labels=[display(model) for model in order])
    axes[0].set_ylim(len(order) - 0.4, -0.6)
    if highlight in order:
        place = order.index(highlight)
        axes[0].get_yticklabels()[place].set_fontweight('bold')
        for axis in axes:
            axis.axhspan(place - 0.5, place + 0.5, color='0.93', linewidth=0, zorder=0)


def _legend(figure: Figure, entries: Mapping[str, Look]) -> None:
    """A legend above the panels, in as many columns as the figure is wide."""
    entry_width = LETTER * (9 + max(map(len, entries)))  # with its mark and gaps
    num_columns = min(len(entries), max(1, int(figure.get_figwidth() / entry_width)))
    handles = [legend_line(look, label) for label, look in entries.items()]
    figure.legend(handles=handles, loc='outside upper right', ncols=num_columns)


def ranked(means: pd.DataFrame, by: str) -> list[str]:
    """Architectures, best first: by the share of lanes that learn, and from how many samples, at the largest `by`.

    Architectures that were not run there, or have no lane that learns there, come after them, in the order of the next
    smaller value. If there are several tasks, only the first counts.
    """
    first = means.drop_duplicates(['model', by])
    places: dict[str, list[tuple[int, float]]] = {model: [] for model in first['model']}
    learned = first[first['num_learn'] > 0]
    for value in sorted(learned[by].unique(), reverse=True):
        points = learned[learned[by] == value].to_dict('records')
        found = {line['model']: (-line['num_learn'] / line['num_judged'], line['mean']) for line in points}
        for model, place in places.items():
            place.append(found.get(model, (0, 0.0)))
    return sorted(places, key=places.__getitem__)


def _mark_missing(axis: Axes, values: pd.Series, order: list[str]) -> None:
    """Writes 'not run' where an architecture lacks values of a panel that half of the architectures have."""
    counts = collections.Counter(itertools.chain(*values))
    every = {value for value, count in counts.items() if count >= len(values) / 2}
    for place, model in enumerate(order):
        missing = sorted(every - set(values.get(model, ())))
        if missing:
            which = '' if len(missing) == len(every) else f' at {", ".join(map(value_text, missing))}'
            axis.annotate(
                f'not run{which}', (0.98, place + (0.35 if which else 0)), xycoords=('axes fraction', 'data'),
                ha='right', va='center', fontsize=7, color='0.4',
            )  # fmt: skip


def _heights(points: pd.DataFrame, by: str, order: list[str]) -> tuple[dict[Any, dict[str, float]], float]:
    """The height of each architecture by value, and how many lines of type all architectures take.

    The values of an architecture that has more of them than most stand nearer to each other.
    """
    own = points.groupby('model')[by].agg(lambda some: sorted(some.unique()))
    usual = int(own.map(len).median())
    heights: dict[Any, dict[str, float]] = {value: {} for value in points[by].unique()}
    for i, model in enumerate(order):
        count = max(usual, len(own[model]))
        for place, value in enumerate(own[model]):
            heights[value][model] = i + _SPREAD * (place - (count - 1) / 2) / count
    return heights, len(order) * (0.4 + 0.6 * usual)


def _unit(rows: pd.DataFrame) -> str:
    """'labels' where a prompt has one, else 'samples'."""
    return 'labels' if 'risk' in rows.columns and rows['risk'].eq('pointwise').all() else 'samples'


def _key(rows: pd.DataFrame, points: pd.DataFrame, least: int) -> str:
    """What the marks are; only what is drawn."""
    is_fewer = points['num_learn'] < points['num_judged']
    is_open = points['num_learn'].ge(least) & (2 * points['num_learn'] < points['num_judged'])
    budgets = rows['max_samples'].unique()
    budget = f'the budget of {budgets[0]:,} {_unit(rows)}' if len(budgets) == 1 else 'their budget'
    fewer = [f'open triangles: lanes that do not learn within {budget}', 'k/n: k of n lanes learn, where some do not']
    means = f'large marks: geometric means of at least {least} lanes that learn' if least > 1 else 'large marks: lanes'
    opened = ', open where less than half do' if is_open.any() else ''
    return '; '.join(['dots: lanes', means + opened, *(fewer if is_fewer.any() else [])])


def _draw(axis: Axes, rows: pd.DataFrame, means: pd.DataFrame, height: dict[str, float], how: tuple[Look, int]) -> None:
    """The lanes and the mean of each architecture at one value."""
    (colour, marker, _), least = how
    rows = rows[rows['outcome'].ne('outraced')]  # which says nothing of whether they learn
    y = rows['model'].map(height).to_numpy(float)
    bound, learns = samples_or_bound(rows).to_numpy(float), rows['outcome'].isin(LEARNED).to_numpy()
    look: dict[str, Any] = {'linestyle': 'none', 'color': colour}
    axis.plot(bound[learns], y[learns], '.', markersize=3.5, alpha=0.7, gid='reached', **look)
    axis.plot(bound[~learns], y[~learns], '>', markersize=3.5, alpha=0.7, fillstyle='none', gid='censored', **look)
    is_half = 2 * means['num_learn'] >= means['num_judged']
    for fill, is_so in (('full', is_half), ('none', ~is_half)):
        some = means[is_so & (means['num_learn'] >= least)]
        axis.plot(some['mean'], some['model'].map(height), marker, markersize=5, fillstyle=fill, gid='mean', **look)
    for line in means[means['num_learn'] < means['num_judged']].to_dict('records'):
        axis.annotate(
            f'{line["num_learn"]}/{line["num_judged"]}', (1.0, height[line['model']]), (2, 0),
            xycoords=('axes fraction', 'data'), textcoords='offset points', va='center', fontsize=7, color=colour,
        )  # fmt: skip
