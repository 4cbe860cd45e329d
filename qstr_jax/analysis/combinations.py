"""Rows of one directory that belong into figures of their own: a group per combination of the settings that vary."""

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd

from qstr_jax import columns
from qstr_jax.analysis.curves import curve_columns
from qstr_jax.analysis.names import display, is_number, setting_text, value_text

Point = Mapping[str, Any]


def combinations(
    rows: pd.DataFrame, axes: Sequence[str], together: Sequence[str] = ()
) -> list[tuple[Point, pd.DataFrame]]:
    """Groups of rows by the settings in which they differ, except those that a figure shows itself."""
    rows = rows.dropna(subset=list(axes))
    if rows.empty:
        return []
    x, *others = axes
    apart = [
        name
        for name in curve_columns(rows, x, leave_out=others)
        if name not in together and rows[name].nunique(dropna=False) > 1 and not _follows(rows, name, axes)
    ]
    if not apart:
        return [({}, rows)]
    groups = rows.groupby(apart, dropna=False, sort=True)
    return [
        ({name: value for name, value in zip(apart, values, strict=True) if not pd.isna(value)}, mine)
        for values, mine in groups
    ]


def matches(rows: pd.DataFrame, point: Point) -> pd.Series:
    """Which rows of a table have the settings of a combination; a setting that the table lacks counts as equal."""
    found = pd.Series(True, rows.index)
    for name, value in point.items():
        if name in rows.columns:
            found &= rows[name] == value
    return found


def model_settings(rows: pd.DataFrame) -> list[str]:
    """The column `model` and those of the models' own settings: a figure shows them as lines."""
    return ['model', *(name for name in rows.columns if columns.get(name).role == 'model')]


def suffix(point: Point) -> str:
    """A part of a file's name that tells a combination apart, such as '_q2_learning_rate0.001'; '' for an empty one."""
    texts = {name: _text(value).replace(',', '') if is_number(value) else value for name, value in point.items()}
    parts = [f'{_short(name)}{text}' for name, text in texts.items()]
    return re.sub(r'[^\w.+-]', '_', ''.join(f'_{part}' for part in parts))


def title(text: str, rows: pd.DataFrame, point: Point | None = None) -> str:
    """A title that says what is drawn: 'N = {seq_len}' becomes 'N = 4, 8', and the combination follows behind it."""
    parts = [setting_text(*item) for item in (point or {}).items() if f'{{{item[0]}}}' not in text]
    return ', '.join(part for part in (_filled(text, rows, _text), *parts) if part)


def _filled(text: str, rows: pd.DataFrame, text_of: Callable[[Any], str], last: str = ', ') -> str:
    """A text with the values of columns in place of their names in braces; `last` stands before the last of several."""

    def values(found: re.Match) -> str:
        name = found[1]
        if name not in rows.columns:
            return found[0]
        own = functools.partial(_task_text, rows=rows) if name == 'task' else text_of
        *others, end = (own(value) for value in sorted(rows[name].dropna().unique()))
        return f'{", ".join(others)}{last}{end}' if others else end

    return re.sub(r'\{(\w+)\}', values, text)


def notes(texts: str | Sequence[str], rows: pd.DataFrame) -> tuple[str, ...]:
    """Small print that says what is drawn: braces as in titles, and '{num_seeds}' for the number of seeds."""
    counted = rows.assign(num_seeds=rows['seed'].nunique())
    known = set(counted.columns[counted.notna().any()])
    several = [texts] if isinstance(texts, str) else texts
    shown = [text for text in several if set(re.findall(r'\{(\w+)\}', text)) <= known]
    return tuple(_filled(text, counted, _large_text, last=' or ') for text in shown)


def _task_text(task: str, rows: pd.DataFrame) -> str:
    """'1STR' and 'simple-1STR', or 'qSTR' where there are several q."""
    sparsities = rows['sparsity'].unique().tolist() if 'sparsity' in rows.columns else []
    name = display(task)
    return name.replace('qSTR', f'{sparsities[0]}STR') if len(sparsities) == 1 else name


def _text(value: Any) -> str:
    return value if isinstance(value, str) else value_text(value)


def _large_text(value: Any) -> str:
    """A value as sentences write it: 5,000."""
    return display(value) if isinstance(value, str) else f'{value:,g}'


def _short(name: str) -> str:
    """The symbol of a column where it can be a part of a file's name, or its own name with a hyphen behind it."""
    symbol = columns.get(name).symbol
    return symbol if symbol.isascii() and symbol else f'{name}-'


def _follows(rows: pd.DataFrame, name: str, axes: Sequence[str]) -> bool:
    """Whether a column has one value at each point of the axes and for each model."""
    return name != 'model' and bool((rows.groupby(['model', *axes])[name].nunique(dropna=False) <= 1).all())
