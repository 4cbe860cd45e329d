"""What a tuning was chosen from: samples to the threshold against the tuned setting, on the selection seeds."""

from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from qstr_jax import analysis, columns
from qstr_jax.analysis import names
from qstr_jax.plots.labels import display, samples_to_threshold, thousands
from qstr_jax.plots.panels import log_ticks, some_values, some_values_key
from qstr_jax.plots.style import STYLE, frame, value_looks

# The most of the tried values that get a tick.
_MAX_TICKS = 5


def tuning(rows: pd.DataFrame, setting: str = 'learning_rate', by: str = 'seq_len', *, title: str = '') -> Figure:
    """Samples against a tuned setting, a panel per model, a line per value of another setting.

    Each value has a colour and a marker, the same in all panels; at most six are drawn. Lanes that were stopped have
    open marks. The line goes through the slowest lane of each point at which all lanes reached, if there are several
    lanes; a ring marks the chosen value.

    Args:
        rows: of the selection lanes, as `analysis.tuning.beside` gives them.
        setting: the tuned setting; names and values that are not positive stand side by side.
        by: the setting that tells lines apart.
        title: above the figure.

    Raises:
        ValueError: no rows, or missing columns.
    """
    analysis.require(rows, ('model', setting, by, 'outcome', 'num_samples', 'samples_to_threshold', 'is_chosen'))
    models, tried, values = analysis.model_order(rows), analysis.ordered(rows[setting]), analysis.ordered(rows[by])
    look, notes = value_looks(some_values(values)), some_values_key(by, values)
    rows = rows[rows[by].isin(look)]
    is_log = pd.api.types.is_numeric_dtype(rows[setting]) and rows[setting].min() > 0
    rows = rows if is_log else rows.assign(**{setting: rows[setting].map(tried.index)})
    with matplotlib.rc_context(STYLE):
        figure, axes = frame(len(models), title, notes, sharey=True, key=_key(rows, setting, by))
        for axis, model in zip(axes, models, strict=True):
            mine = rows[rows['model'] == model]
            for value in analysis.ordered(mine[by]):
                _draw(axis, mine[mine[by] == value], setting, look[value], analysis.setting_text(by, value))
            axis.set_xscale('log' if is_log else 'linear')
            _ticks(axis, analysis.ordered(mine[setting]) if is_log else tried, is_log)
            axis.set_xlabel(columns.label(setting))
            words: dict[str, Any] = {'ncols': 3, 'columnspacing': 1.0, 'handlelength': 0.8}
            axis.legend(loc='lower left', bbox_to_anchor=(0, 1.0), title=display(model), **words)
        axes[0].set_yscale('log')
        low, high = axes[0].get_ylim()
        log_ticks(axes[0].yaxis, thousands, (1, 2, 5) if high < 1000 * low else (1, 3))
        axes[0].set_ylabel(samples_to_threshold(rows))
    return figure


def _ticks(axis: Axes, tried: list[Any], is_log: bool) -> None:
    """Ticks at the tried values: at all of them, at every second one, and so on."""
    shown = slice(None, None, -(-len(tried) // _MAX_TICKS) if is_log else 1)
    axis.set_xticks((tried if is_log else range(len(tried)))[shown], map(names.value_text, tried[shown]))
    axis.xaxis.set_minor_locator(ticker.NullLocator())


def _draw(axis: Axes, lanes: pd.DataFrame, setting: str, look: tuple[Any, str], label: str) -> None:
    """The lanes, the slowest of each point, and the chosen point of one line."""
    shown, (reached, stopped) = _slowest(lanes, setting), _kinds(lanes)
    colour, marker = look
    own: dict[str, Any] = {'color': colour, 'alpha': 0.7, 'marker': marker, 'markersize': 3.5, 'linestyle': 'none'}
    full = axis.plot(reached[setting], reached['samples_to_threshold'], mew=0, gid=f'reached {label}', **own)
    own |= {'fillstyle': 'none', 'mew': 0.7}
    hollow = axis.plot(stopped[setting], stopped['num_samples'], gid=f'stopped {label}', **own)
    if len(shown) > 1:
        axis.plot(shown.index, shown, '-', color=colour, gid=f'slowest {label}')
    chosen = _ends(lanes[lanes['is_chosen']]).groupby(lanes[setting]).max()
    axis.plot(chosen.index, chosen, 'o', color=colour, fillstyle='none', markersize=7, gid=f'chosen {label}')
    if len(reached) or len(stopped):
        (full if len(reached) else hollow)[0].set_label(display(label))


def _slowest(lanes: pd.DataFrame, setting: str) -> pd.Series:
    """Samples of the slowest lane by value of a setting, where all reached."""
    samples = lanes['samples_to_threshold'].astype(float).where(lanes['outcome'] == 'reached', np.inf)
    slowest = samples.groupby(lanes[setting]).max()
    return slowest[np.isfinite(slowest)]


def _ends(lanes: pd.DataFrame) -> pd.Series:
    """Samples to the threshold, or those after which a lane was stopped."""
    return lanes['samples_to_threshold'].astype(float).fillna(lanes['num_samples'].astype(float))


def _kinds(lanes: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The lanes that reached, and those that were stopped."""
    return lanes[lanes['outcome'] == 'reached'], lanes[~lanes['outcome'].isin(('reached', 'diverged'))]


def _key(rows: pd.DataFrame, setting: str, by: str) -> str:
    """What the drawn marks mean."""
    reached, stopped = _kinds(rows)
    counts = [len(_slowest(lanes, setting)) for _, lanes in rows.groupby(['model', by])]
    marks = {
        'marks: selection lanes': len(reached) > 0,
        'lines: the slowest': max(counts) > 1,
        'rings: the chosen values': bool(rows['is_chosen'].any()),
        'open marks: lanes that were stopped there': len(stopped) > 0,
    }
    return '; '.join(mark for mark, is_drawn in marks.items() if is_drawn)
