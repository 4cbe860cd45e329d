"""Sections as LaTeX that a paper includes: tables with booktabs rules, figures as PDF.

\\usepackage{booktabs,graphicx} \\graphicspath{{latex/}} … \\input{latex/table1.tex}
"""

import collections
import pathlib
import re
from collections.abc import Sequence

from qstr_jax import plots
from qstr_jax.analysis import formats
from qstr_jax.report.section import Section
from qstr_jax.storage import files


def write(overview: Section, sections: Sequence[Section], folder: pathlib.Path) -> list[str]:
    """Writes table1.tex, and per section NAME.tex with its tables and figures, the figures beside it as PDF."""
    folder.mkdir(parents=True, exist_ok=True)
    files.write_text(folder / 'table1.tex', _tables(overview, 'table1'))
    names = ['table1.tex']
    slugs = _slugs([section.name for section in sections])
    for section in sections:
        if section.tables or section.figures:
            name = slugs[section.name]
            names.append(f'{name}.tex')
            files.write_text(folder / names[-1], _tables(section, name) + _figures(section, name, folder))
    return names


def slug(name: str) -> str:
    """A directory's name as a file name that LaTeX takes: letters, digits and '-'."""
    return re.sub('[^A-Za-z0-9]+', '-', name).strip('-') or 'results'


def _slugs(names: Sequence[str]) -> dict[str, str]:
    """A file name for each directory; where two would be the same, as of a_b and a-b, with some digits of their own."""
    count = collections.Counter(['table1', *map(slug, set(names))])
    return {name: slug(name) if count[slug(name)] == 1 else f'{slug(name)}-{files.digest(name)}' for name in names}


def _tables(section: Section, name: str) -> str:
    return ''.join(
        formats.latex(frame, f'{section.name}: {caption}', f'tab:{name}-{number}')
        for number, (caption, frame) in enumerate(section.tables)
    )


def _figures(section: Section, name: str, folder: pathlib.Path) -> str:
    """Figure environments; each figure is saved as PDF."""
    parts = []
    for number, (caption, draw) in enumerate(section.figures):
        path = plots.save(draw(), folder / f'{name}-{number}')[0]
        path.with_suffix('.png').unlink()  # A paper takes the PDF.
        text = formats.latex_text(f'{section.name}: {caption}')
        parts.append('\n'.join([
            r'\begin{figure}[t]', r'\centering', rf'\includegraphics[width=\linewidth]{{{path.name}}}',
            rf'\caption{{{text}}}', rf'\label{{fig:{name}-{number}}}', r'\end{figure}', '']))  # fmt: skip
    return ''.join(parts)
