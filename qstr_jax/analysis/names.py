"""What models, tasks, settings and their values are called in tables, legends and sentences."""

import collections
import math
import numbers
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from qstr_jax import columns

# The paper's architectures, in its order.
MODELS = ('transformer', 'rnn', 'ffn')
DISPLAY_NAMES = {
    'transformer': 'Transformer',
    'rnn': 'RNN',
    'ffn': 'FFN',
    'qstr': 'qSTR',
    'simple_qstr': 'simple-qSTR',
    'gru': 'GRU',
    'lstm': 'LSTM',
    'least_squares': 'least squares (t known)',
    'ridge': 'ridge',
    'theorem6_oracle': 'oracle (u, V x)',
}
# Settings whose values say by themselves what they are.
_SELF_EXPLAINING = ('model', 'task', 'learner', 'optimizer')


def display(name: object) -> str:
    """A model, task or other value as readers know it; what `DISPLAY_NAMES` lacks stays as it is."""
    return DISPLAY_NAMES.get(str(name), str(name))


def model_order(rows: pd.DataFrame) -> list[str]:
    """The models in a table: the paper's three in its order, then all others by name."""
    models = set(rows['model'])
    return [model for model in MODELS if model in models] + sorted(models.difference(MODELS))


def heading(column: str) -> str:
    """What plain text calls a column: its symbol, or its label without mathematical markup."""
    return columns.get(column).symbol or columns.label(column).replace('$', '')


def headings(names: Iterable[str]) -> dict[str, str]:
    """What a table calls each of its columns: `heading`, or the whole name where two would be called the same.

    'rnn_width' and 'transformer_mlp_width' are both widths.
    """
    short = {name: heading(name) for name in names}
    taken = collections.Counter(short.values())
    return {name: text if taken[text] == 1 else name.replace('_', ' ') for name, text in short.items()}


def value_text(value: Any) -> str:
    """The value of a setting as text: '0.001', '16,000', names as readers know them."""
    if not is_number(value):
        return display(value)
    return f'{value:,g}' if abs(value) < 1e6 else f'{value:,.0f}'


def is_number(value: Any) -> bool:
    """Whether a value is a number, which True and False are not."""
    return isinstance(value, numbers.Number) and not isinstance(value, (bool, np.bool_))


def setting_text(column: str, value: Any) -> str:
    """A setting and its value: 'N = 4', 'learning rate 0.001', 'qSTR'."""
    if column in _SELF_EXPLAINING:
        return display(value)
    return f'{heading(column)}{" = " if columns.get(column).symbol else " "}{value_text(value)}'


def ordered(values: Iterable[Any]) -> list[Any]:
    """The distinct values of a setting in the order of an axis; missing values are left out.

    Numbers are ordered by size, lists such as '60,1000' by their numbers, and names by the alphabet.
    """
    return sorted({value for value in values if not pd.isna(value)}, key=sort_key)


def sort_key(value: Any) -> list[tuple[bool, float, str]]:
    """The key by which values of settings are sorted: numbers before names, lists part by part, missing values last."""
    if pd.isna(value):
        return [(True, math.inf, '')]
    parts = str(value).split(',') if isinstance(value, str) else [value]
    return [_part_key(part) for part in parts]


def _part_key(part: Any) -> tuple[bool, float, str]:
    try:
        return False, float(part), ''
    except ValueError:
        return True, 0.0, str(part)
