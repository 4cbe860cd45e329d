"""Samples to the threshold as a table for readers: a line per curve, a column per N."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from qstr_jax.analysis.curves import Curve, point_columns, require, split_curves
from qstr_jax.analysis.exponents import Exponent, fits
from qstr_jax.analysis.measured import measured
from qstr_jax.analysis.names import display, heading, headings, ordered, value_text
from qstr_jax.analysis.summary import MEASURED, check, point_of


def samples_table(rows: pd.DataFrame, x: str = 'seq_len') -> pd.DataFrame:
    """Mean samples with intervals and exponents, as texts: a line per curve, a column per value of `x`.

    An entry is the geometric mean of the lanes that learn with its 95% interval, unless all agree, and how many learn
    where some do not; '≥ 1M' where lanes were outraced or none learns, '≤ 900' where samples of lanes are upper
    bounds, and '–' where there are no lanes. 'unfitted' are searches that ended without fitting their training set,
    which say nothing of n*; '~' marks a mean of one to three checks. The last column is the exponent, or why there is
    none. Settings in which curves differ get columns of their own.

    Args:
        rows: one row per lane, as for `summarize`.
        x: the setting that the columns run over: 'seq_len', 'sparsity' or any other.

    Returns:
        The table; `formats.markdown` prints it.

    Raises:
        ValueError: as `summarize`.
    """
    require(rows, ('model', *MEASURED))
    check(rows, point_columns(rows))
    curves, lanes, at, names = split_curves(rows, x), measured(rows), rows[x].tolist(), _lanes(rows)
    named = headings(dict.fromkeys(name for curve in curves for name in (*curve.task, *curve.settings)))
    values, lines = ordered(at), []
    for curve, power in zip(curves, fits(curves, rows, x), strict=True):
        places: dict[Any, list[int]] = {}
        for place in curve.places.tolist():
            places.setdefault(at[place], []).append(place)
        if any(len(set(names[own])) < len(own) for own in places.values()):
            check(curve.lanes, (x,))  # whose error says which lane is there twice
        points = {value: point_of(lanes.at(own)) for value, own in places.items()}
        lines.append(_line(curve, named, {value: points.get(value) for value in values}, power, x))
    return pd.DataFrame(lines)


def short_number(value: float) -> str:
    """Samples to three digits: 17234 -> '17.2k', 1260400 -> '1.26M', 640 -> '640', NaN -> '–'.

    A number that is exact in these digits, as a budget often is, has no zeros at its end: 64000 -> '64k'.

    Args:
        value: a number of samples.
    """
    if np.isnan(value):
        return '–'
    rounded = float(f'{value:.3g}')
    unit, letter = (1e6, 'M') if rounded >= 1e6 else (1e3, 'k') if rounded >= 1e3 else (1, '')
    if not letter or np.isclose(value, rounded, rtol=1e-9, atol=0):
        return f'{rounded / unit:g}{letter}'
    return f'{rounded / unit:#.3g}'.removesuffix('.') + letter


def _lanes(rows: pd.DataFrame) -> np.ndarray:
    """A number for each pair of a seed and a draw of the task."""
    return rows.groupby(list(rows.columns.intersection(['seed', 'task_seed'])), dropna=False).ngroup().to_numpy()


def _line(
    curve: Curve, named: dict[str, str], points: Mapping[Any, dict | None], power: Exponent, x: str
) -> dict[str, str]:
    """One line of the table: of a curve, its points by value of `x`, and its exponent."""
    point = {**curve.task, **curve.settings}
    return {
        'model': display(curve.model),
        **{text: value_text(point[name]) if name in point else '–' for name, text in named.items()},
        **{f'{heading(x)} = {value_text(v)}': _cell_text(cell) if cell else '–' for v, cell in points.items()},
        f'exponent of {heading(x)}': power.with_note,
    }


def mean_text(cell: Mapping[str, Any]) -> str:
    """'17.2k', '≥ 1M', '≤ 900', '~ 1.28k': the mean of a point and what it is."""
    marks = {'≥ ': cell['lower_bound'], '≤ ': cell['upper_bound'], '~ ': cell['is_coarse']}
    return ''.join(mark for mark, holds in marks.items() if holds) + short_number(cell['mean'])


def learn_text(cell: Mapping[str, Any]) -> str:
    """'3 of 5 learn', or '' where all do; '0 of 5 learn, 5 unfitted'."""
    if cell['num_learn'] == cell['num_judged']:
        return ''
    unfitted = f', {cell["num_unfitted"]} unfitted' if cell['num_unfitted'] else ''
    return f'{cell["num_learn"]} of {cell["num_judged"]} learn{unfitted}'


def mean_and_share(cell: Mapping[str, Any]) -> str:
    """'17.2k', or '28.5k, 3 of 5 learn' where some do not."""
    return ', '.join(filter(None, (mean_text(cell), learn_text(cell))))


def _cell_text(cell: Mapping[str, Any]) -> str:
    """'17.2k (16.1k–18.0k)', '28.5k (22.7k–35.8k), 3 of 5 learn', '≥ 1M, 0 of 5 learn', '–'."""
    text = mean_text(cell)
    has_interval = not np.isnan([cell['low'], cell['high']]).any()
    if has_interval and cell['min'] < cell['max']:  # Lanes that agree, as on a search's grid, show no spread.
        text += f' ({short_number(cell["low"])}–{short_number(cell["high"])})'
    num_short = cell['num_short']
    no_erms = 'lane that is no ERM' if num_short == 1 else 'lanes that are no ERMs'
    short = f'without {num_short} {no_erms}' if num_short else ''
    diverged = f'{cell["num_diverged"]} diverged' if cell['num_diverged'] else ''
    return ', '.join(part for part in (text, learn_text(cell), short, diverged) if part)
