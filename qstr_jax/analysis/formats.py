"""Tables of short texts and numbers as Markdown and LaTeX (booktabs): the only writers in the package."""

import numbers
import re
from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd

_LATEX = {
    '\\': r'\textbackslash{}', '&': r'\&', '%': r'\%', '$': r'\$', '#': r'\#', '_': r'\_', '{': r'\{', '}': r'\}',
    '~': r'\textasciitilde{}', '^': r'\textasciicircum{}', '≥': r'$\geq$', '≤': r'$\leq$', '–': '--', '×': r'$\times$',
    'Ω': r'$\Omega$', 'ω': r'$\omega$', '√': r'$\surd$', '·': r'$\cdot$', '−': '$-$', '…': r'\ldots{}',
    'α': r'$\alpha$', '±': r'$\pm$', '<': r'$<$', '>': r'$>$', '→': r'$\to$', '²': r'$^2$', '³': r'$^3$',
    '₂': '$_2$', '⌊': r'$\lfloor$', '⌋': r'$\rfloor$', 'λ': r'$\lambda$',
}  # fmt: skip


def text(value: Any, digits: int = 4) -> str:
    """A cell as text: numbers rounded, missing values as '–', lists with commas."""
    if isinstance(value, (tuple, list)):
        return ', '.join(text(part, digits) for part in value)
    if value is None or pd.isna(value):
        return '–'
    is_number = isinstance(value, numbers.Number) and not isinstance(value, (bool, numbers.Integral))
    return f'{value:.{digits}g}' if is_number else str(value)


def markdown(frame: pd.DataFrame, digits: int = 4) -> str:
    """An aligned Markdown table that is readable raw; the index is left out."""
    lines = [list(map(str, frame.columns)), *cells(frame, digits)]
    lines = [[cell.replace('|', '\\|').replace('\n', ' ') for cell in line] for line in lines]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    lines.insert(1, ['-' * width for width in widths])
    return ''.join('| ' + ' | '.join(map(str.ljust, line, widths)) + ' |\n' for line in lines)


def pipes(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A small Markdown table of texts, not aligned; the last line has no line end."""
    rows = [''.join(f'| {cell} ' if cell else '| ' for cell in line) + '|' for line in (head, *lines)]
    return '\n'.join([rows[0], '|---' * len(head) + '|', *rows[1:]])


def read_markdown(table: str) -> pd.DataFrame:
    """The table of `markdown`, with its numbers as numbers."""
    lines = [[cell.strip() for cell in line.strip().strip('|').split('|')] for line in table.strip().splitlines()]
    frame = pd.DataFrame(lines[2:], columns=lines[0])
    return frame.apply(lambda column: pd.to_numeric(column) if column.str.match(r'^-?[\d.e+-]+$').all() else column)


def latex_text(value: str) -> str:
    """A text as LaTeX source; letters that pdfLaTeX may not know become '?'."""
    escaped = ''.join(_LATEX.get(letter, letter) for letter in value)
    return re.sub(r'[^\x00-ſ]', '?', escaped)


def latex(frame: pd.DataFrame, caption: str, label: str) -> str:
    """A `table` environment with booktabs rules; the document needs `\\usepackage{booktabs}`."""
    body = [' & '.join(map(latex_text, line)) + r' \\' for line in [list(map(str, frame.columns)), *cells(frame)]]
    lines = [
        r'\begin{table}[t]', r'\centering', r'\small',
        rf'\begin{{tabular}}{{{"l" * len(frame.columns)}}}', r'\toprule', body[0], r'\midrule', *body[1:],
        r'\bottomrule', r'\end{tabular}',
        rf'\caption{{{latex_text(caption)}}}', rf'\label{{{label}}}', r'\end{table}',
    ]  # fmt: skip
    return '\n'.join(lines) + '\n'


def cells(frame: pd.DataFrame, digits: int = 4) -> list[list[str]]:
    """The texts of a table, line by line."""
    return [[text(value, digits) for value in row] for row in frame.itertuples(index=False, name=None)]
