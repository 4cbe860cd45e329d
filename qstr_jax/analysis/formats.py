"""A DataFrame of short texts and numbers as Markdown, LaTeX (booktabs) and HTML."""

import html
import numbers
import re

import pandas as pd

_LATEX = {
    '\\': r'\textbackslash{}', '&': r'\&', '%': r'\%', '$': r'\$', '#': r'\#', '_': r'\_', '{': r'\{', '}': r'\}',
    '~': r'\textasciitilde{}', '^': r'\textasciicircum{}', '≥': r'$\geq$', '≤': r'$\leq$', '–': '--', '×': r'$\times$',
    'Ω': r'$\Omega$', 'ω': r'$\omega$', '√': r'$\surd$', '·': r'$\cdot$', '−': '$-$', '…': r'\ldots{}',
    'α': r'$\alpha$', '±': r'$\pm$', '<': r'$<$', '>': r'$>$', '→': r'$\to$', '²': r'$^2$', '³': r'$^3$',
    '₂': '$_2$', '⌊': r'$\lfloor$', '⌋': r'$\rfloor$', 'λ': r'$\lambda$',
}  # fmt: skip


def text(value) -> str:
    """A cell as text: numbers to four digits, missing values as '–'."""
    if isinstance(value, (tuple, list)):
        return ', '.join(map(text, value))
    if value is None or pd.isna(value):
        return '–'
    is_number = isinstance(value, numbers.Number) and not isinstance(value, (bool, numbers.Integral))
    return f'{value:.4g}' if is_number else str(value)


def _cells(frame: pd.DataFrame) -> list[list[str]]:
    return [[text(value) for value in row] for row in frame.itertuples(index=False, name=None)]


def markdown(frame: pd.DataFrame) -> str:
    """An aligned table that is readable raw; the index is left out."""
    lines = [list(map(str, frame.columns)), *_cells(frame)]
    lines = [[cell.replace('|', '\\|').replace('\n', ' ') for cell in line] for line in lines]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    lines.insert(1, ['-' * width for width in widths])
    return ''.join('| ' + ' | '.join(map(str.ljust, line, widths)) + ' |\n' for line in lines)


def latex_text(value: str) -> str:
    """Text as LaTeX prints it; any letter that pdfLaTeX may not know becomes '?'."""
    escaped = ''.join(_LATEX.get(letter, letter) for letter in value)
    return re.sub(r'[^\x00-ſ]', '?', escaped)


def latex(frame: pd.DataFrame, caption: str = '', label: str = '') -> str:
    """A `table` environment with booktabs rules, complete but for `\\usepackage{booktabs}`."""
    body = [' & '.join(map(latex_text, line)) + r' \\' for line in [list(map(str, frame.columns)), *_cells(frame)]]
    lines = [
        r'\begin{table}[t]', r'\centering', r'\small',
        rf'\begin{{tabular}}{{{"l" * len(frame.columns)}}}', r'\toprule', body[0], r'\midrule', *body[1:],
        r'\bottomrule', r'\end{tabular}',
        *([rf'\caption{{{latex_text(caption)}}}'] if caption else []),
        *([rf'\label{{{label}}}'] if label else []),
        r'\end{table}',
    ]  # fmt: skip
    return '\n'.join(lines) + '\n'


def as_html(frame: pd.DataFrame) -> str:
    """A `<table>`, all text escaped."""
    head = ''.join(f'<th>{html.escape(str(name))}</th>' for name in frame.columns)
    rows = ''.join(
        '<tr>' + ''.join(f'<td>{html.escape(cell)}</td>' for cell in line) + '</tr>\n' for line in _cells(frame)
    )
    return f'<table><thead><tr>{head}</tr></thead>\n<tbody>{rows}</tbody></table>\n'


def from_markdown(markdown_text: str) -> list[pd.DataFrame]:
    """The pipe tables of a Markdown text, all cells as text."""
    tables, lines = [], []
    for line in [*markdown_text.splitlines(), '']:
        if line.startswith('|'):
            cells = re.split(r'(?<!\\)\|', line.strip().strip('|'))
            lines.append([cell.strip().replace('\\|', '|') for cell in cells])
        elif lines:
            head, *body = lines
            body = [cells for cells in body if not all(set(cell) <= set('-: ') and cell for cell in cells)]
            if all(len(cells) == len(head) for cells in body):
                tables.append(pd.DataFrame(body, columns=head))
            lines = []
    return tables
