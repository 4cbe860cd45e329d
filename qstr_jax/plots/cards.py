"""The figure of a card: claim, setting, points with error bars, the theorem's lines, verdict."""

from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from qstr_jax.analysis.card import Card, Panel
from qstr_jax.analysis.names import MODELS
from qstr_jax.plots.labels import display, thousands, wrap
from qstr_jax.plots.style import STYLE, Look, grid, looks

# The looks of series that are no architecture: black is for lines.
_COLOURS = (
    '#CC79A7', '#56B4E9', '#E69F00', '#7F3C8D', '#4B6A00', '#8C564B', '#7F7F7F', '#117777', '#A50026', '#8DA800',
    '#1F1F8F', '#C9A0DC',
)  # fmt: skip
_MARKERS = 'vPp^X<>*'
# The paper's architectures by their names in figures.
_KINDS = {display(model): model for model in MODELS}
_BARS = 'Bars: one standard error, of a mean over lanes or of the test loss of one network.'
# On a logarithmic axis a point at zero would vanish; errors of the size of rounding count as zero.
_ZERO = 1e-18
# A card is as wide as a page, and its smallest letters have eight points.
_PAGE, _COLUMNS = 6.8, 2
_SIZES = ('legend.fontsize', 'xtick.labelsize', 'ytick.labelsize', 'figure.labelsize')
_STYLE = {**STYLE, **dict.fromkeys(_SIZES, 8)}
_DASHES: tuple[Any, ...] = ('--', ':', '-.', (0, (5, 1, 1, 1, 1, 1)))


def card_figure(card: Card) -> Figure:
    """The figure of a card: a panel each, the theorem's lines dashed, the verdict below.

    Args:
        card: freshly made, or read from its card.json.
    """
    notes = [
        f'Setting: {card.setting}',
        f'Verdict: {card.conclusion}. The nearest point of each check:',
        *map(str, card.checks),
        card.finding,
        *_key(card),
    ]
    with matplotlib.rc_context(_STYLE):
        rows = -(-len(card.panels) // _COLUMNS)
        title = wrap(f'{card.statement}. {card.claim}', 95)
        text = [line for note in notes if note for line in wrap(display(note), 105)]
        figure = Figure(figsize=(_PAGE, 1.0), layout='constrained')
        FigureCanvasAgg(figure)
        figure.suptitle(display('\n'.join(title)), x=0.02, ha='left')
        colour = '0.35' if card.holds else '#B00020'
        figure.supxlabel('\n'.join(text), x=0.02, ha='left', color=colour)
        axes = grid(figure, len(card.panels), _COLUMNS)
        look = _looks(card.points)
        entries = [_draw_panel(axis, card, i, look) for i, axis in enumerate(axes)]
        legends = sum(max(entries[i : i + _COLUMNS]) for i in range(0, len(entries), _COLUMNS))
        figure.set_figheight(0.2 + 2.1 * rows + 0.16 * len(title) + 0.14 * len(text) + 0.16 * legends)
    return figure


def _key(card: Card) -> list[str]:
    """What error bars mean, and which points are zeros; only what is drawn."""
    is_log = card.points['panel'].map([panel.log_y for panel in card.panels].__getitem__)
    has_zeros = (is_log & card.points['y'].eq(0)).any()
    zeros = [f'Points at {_ZERO:g} are exact zeros.'] if has_zeros else []
    return [*([_BARS] if card.points['error'].gt(0).any() else []), *zeros]


def _looks(points: pd.DataFrame) -> dict[str, Look]:
    """A look for each series, the same in all panels; an architecture with one series a panel looks as in all figures.

    'RNN' and 'RNN, N = 16' name an architecture.
    """
    series = points[['panel', 'series']].drop_duplicates()
    series = series.assign(kind=[_KINDS.get(name.partition(',')[0], '') for name in series['series']])
    is_several = series['kind'].ne('') & series.duplicated(['panel', 'kind'], keep=False)
    several = set(series['series'][is_several | series['kind'].eq('')])
    kinds, count = dict(zip(series['series'], series['kind'], strict=True)), len(_COLOURS)
    others = [name for name in kinds if name in several]
    return {name: looks([kind])[kind] for name, kind in kinds.items() if name not in several} | {
        name: (_COLOURS[i % count], _MARKERS[(i + i // count) % len(_MARKERS)], '-') for i, name in enumerate(others)
    }


def _draw_panel(axis: Axes, card: Card, number: int, look: dict[str, Look]) -> int:
    """One panel; returns how many lines its legend takes."""
    panel = card.panels[number]
    points, lines = (table[table['panel'] == number] for table in (card.points, card.lines))
    series = list(dict.fromkeys(points['series']))
    if panel.log_x:
        axis.set_xscale('log')
    if panel.log_y:
        axis.set_yscale('log')
    for i, name in enumerate(series):  # The first one on top.
        _draw_points(axis, points[points['series'] == name], look[name], panel, 4 - 0.1 * i)
    _draw_lines(axis, lines, {name: look[name] for name in series})
    _ticks(axis, panel, points, lines)
    axis.set(xlabel=panel.x, ylabel=panel.y)
    return _legend(axis, panel)


def _draw_lines(axis: Axes, lines: pd.DataFrame, look: dict[str, Look]) -> None:
    """The theorem's lines: dashed in the colour of their series, or dark in one dash pattern each."""
    plain = 0
    for (label, of), chosen in lines.groupby(['label', 'of'], sort=False):
        style = '--' if of in look else _DASHES[plain % len(_DASHES)]
        plain += of not in look
        chosen, colour = chosen.sort_values('x'), look[of][0] if of in look else '0.2'
        own: dict[str, Any] = {'color': colour, 'linestyle': style, 'linewidth': 0.9, 'zorder': 2}
        axis.plot(chosen['x'], chosen['y'], gid=f'line {label} {of}', label=display(label) if label else None, **own)


def _draw_points(axis: Axes, rows: pd.DataFrame, look: Look, panel: Panel, zorder: float) -> None:
    """Points of one series with error bars of one standard error; joined if each x stands once."""
    rows, name = rows.sort_values('x'), rows['series'].iloc[0]
    colour, marker, _ = look
    joined = '-' if panel.join and rows['x'].is_unique and len(rows) > 1 else 'none'
    y = rows['y'].to_numpy(float)
    if panel.log_y:
        y = np.maximum(y, _ZERO)
    line: dict[str, Any] = {'color': colour, 'linestyle': joined, 'linewidth': 0.7, 'elinewidth': 0.8}
    face = 'white' if joined == 'none' else colour
    marks: dict[str, Any] = {'marker': marker, 'markersize': 3.5, 'markerfacecolor': face, 'zorder': zorder}
    if len(rows) == 1:  # a ring, which shows what is under it
        marks |= {'markersize': 7, 'markerfacecolor': 'none', 'zorder': 5}
    error = rows['error'].to_numpy(float)
    bars = error if (error > 0).any() else None
    axis.errorbar(rows['x'], y, yerr=bars, label=display(name), gid=f'points {name}', **line, **marks)


def _ticks(axis: Axes, panel: Panel, points: pd.DataFrame, lines: pd.DataFrame) -> None:
    """A tick for each x where they are few; otherwise powers of ten."""
    places = sorted(set(points['x']))
    if len(places) <= 8 and all(float(x).is_integer() for x in places):
        axis.set_xticks(places, labels=[f'{x:g}' for x in places])
        axis.xaxis.set_minor_locator(ticker.NullLocator())
    elif not panel.log_x and max(places) >= 10_000:
        axis.xaxis.set(major_locator=ticker.MaxNLocator(5), major_formatter=thousands)
    if not panel.log_y:
        error = points['error'].fillna(0.0)
        highest = max([*(points['y'] + error), *lines['y'], 0.0])
        lowest = min([*(points['y'] - error), *lines['y'], 0.0])
        axis.set_ylim(lowest - 0.03 * (highest - lowest), highest + 0.08 * (highest - lowest) or 1.0)


def _legend(axis: Axes, panel: Panel) -> int:
    """A legend above the panel, where it hides nothing; returns how many lines it takes with its title."""
    entries = [label for label in axis.get_legend_handles_labels()[1] if not label.startswith('_')]
    columns = 2 if len(entries) > 4 and max(map(len, entries)) < 20 else 1
    axis.legend(
        loc='lower left',
        bbox_to_anchor=(0, 1.0),
        borderaxespad=0.2,
        alignment='left',
        ncols=columns,
        columnspacing=1.0,
        title=display(panel.title),
    )
    return -(-len(entries) // columns) + 1
