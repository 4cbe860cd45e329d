"""The summary as a Markdown table."""

import numpy as np
import pandas as pd

from qstr_jax.analysis.curves import DISPLAY_NAMES, SYMBOLS, curve_columns, panel_columns, split_curves
from qstr_jax.analysis.exponents import exponent
from qstr_jax.analysis.summary import summarize


def table(rows: pd.DataFrame, x: str = 'seq_len') -> str:
    """The summary as a Markdown table that is readable raw: a line per model, a column per length.

    A cell is the mean with its 95% interval, '≥ 1000k' where lanes were censored, '–' where there
    is nothing. The last column is the exponent, or why there is none. Several tasks or sparsities
    give a line for each.

    Args:
        rows, x: as for `summarize`, and what the columns run over, 'seq_len' or 'sparsity'.

    Raises:
        ValueError: as `summarize`.
    """
    summary = summarize(rows)
    symbol, lengths = SYMBOLS.get(x, x), sorted(set(rows[x]))
    named = ['model', *panel_columns(rows, x)]
    lines = [
        [
            *(SYMBOLS.get(column, column) for column in named),
            *(f'{symbol} = {length}' for length in lengths),
            f'exponent of {symbol}',
        ]
    ]
    for lanes in split_curves(rows, x):
        names = lanes.iloc[0]
        mine = (summary[curve_columns(x)] == names[curve_columns(x)]).all(axis=1)
        cells = {cell[x]: _cell_text(cell) for _, cell in summary[mine].iterrows()}
        fit = exponent(lanes, x)
        lines.append(
            [
                *(DISPLAY_NAMES.get(names[column], str(names[column])) for column in named),
                *(cells.get(length, '–') for length in lengths),
                str(fit) if fit.value is None or not fit.note else f'{fit} ({fit.note})',
            ]
        )
    return _markdown(lines)


def short_number(value: float) -> str:
    """Samples to three digits, in thousands: 17234 -> '17.2k', 640 -> '640', NaN -> '–'."""
    if np.isnan(value):
        return '–'
    value = float(f'{value:.3g}')
    decimals = max(0, 5 - int(np.log10(max(value, 1))))
    return f'{value:g}' if value < 1000 else f'{value / 1000:.{decimals}f}k'


def _cell_text(cell: pd.Series) -> str:
    """'17.2k (16.1k–18.0k)', '≥ 1000k', '–'; with the number of diverged lanes, if any."""
    text = short_number(cell['mean'])
    if cell['lower_bound']:
        some = f' ({cell["num_reached"]} of {cell["num_lanes"]} reached)'
        text = f'≥ {text}{some if cell["num_reached"] else ""}'
    elif cell['upper_bound']:
        text = f'≤ {text}'
    elif not np.isnan(cell['low']):
        text += f' ({short_number(cell["low"])}–{short_number(cell["high"])})'
    return f'{text}, {cell["num_diverged"]} diverged' if cell['num_diverged'] else text


def _markdown(lines: list[list[str]]) -> str:
    """An aligned Markdown table of `lines` (the header first)."""
    lines = [[text.replace('|', '\\|') for text in line] for line in lines]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    lines.insert(1, ['-' * width for width in widths])
    return ''.join('| ' + ' | '.join(map(str.ljust, line, widths)) + ' |\n' for line in lines)
