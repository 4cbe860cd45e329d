"""What tells the curves of a table apart, and what they are called."""

from collections.abc import Sequence

import pandas as pd

MODELS = ('transformer', 'rnn', 'ffn')
DISPLAY_NAMES = {
    'transformer': 'Transformer',
    'rnn': 'RNN',
    'ffn': 'FFN',
    'qstr': 'qSTR',
    'simple_qstr': 'simple-qSTR',
    'least_squares': 'least squares (t known)',
    'ridge': 'ridge',
    'theorem6_oracle': 'oracle (u, V x)',
}
SYMBOLS = {'seq_len': 'N', 'sparsity': 'q'}

# What one bar or dot of a figure is of.
CELL = ('model', 'task', 'sparsity', 'seq_len')


def model_order(rows: pd.DataFrame) -> list[str]:
    """The models in `rows`: the paper's three in their order, then a user's own by name."""
    models = set(rows['model'])
    return [model for model in MODELS if model in models] + sorted(models.difference(MODELS))


def curve_columns(x: str = 'seq_len') -> list[str]:
    """What one curve against `x` has one of: model, task, and the other of (sparsity, seq_len)."""
    return [column for column in CELL if column != x]


def panel_columns(rows: pd.DataFrame, x: str = 'seq_len') -> list[str]:
    """Which of task and the other of (sparsity, seq_len) `rows` has several of."""
    return [column for column in curve_columns(x)[1:] if rows[column].nunique() > 1]


def split_curves(rows: pd.DataFrame, x: str = 'seq_len') -> list[pd.DataFrame]:
    """The rows of each curve against `x`: by task and sparsity, then models by `model_order`."""
    order = model_order(rows)
    curves = rows.groupby(curve_columns(x), observed=True)
    return [lanes for _, lanes in sorted(curves, key=lambda c: (c[0][1:], order.index(c[0][0])))]


def require(rows: pd.DataFrame, columns: Sequence[str]) -> None:
    """Raises a ValueError that names the columns that `rows` lack, or says that there are none."""
    missing = [column for column in dict.fromkeys(columns) if column not in rows.columns]
    if missing:
        raise ValueError(f'rows lack the columns: {", ".join(missing)}')
    if rows.empty:
        raise ValueError('no rows: the table is empty')
