"""A report from result directories alone: one self-contained HTML page, and LaTeX fragments for a paper.

    from qstr_jax import report
    report.write(['experiments/results'], 'results/report', latex=True)

section: what is said about one directory.                    content: the sections of directories in any state.
directory: the tables and figures of one directory.           missing: which planned lanes have no rows.
headline: a summary of all directories.                       explorer: lanes and curves for the page's charts.
commands: the command that makes a row again.                 pictures: PNG of few bytes.
page: all of it as HTML.                                      scripts: the page's styles and scripts, from assets/.
fragments: as LaTeX.                                          numbers: numbers of texts, from rows.
drawing: figures and tables of a sweep.                       lanes: rows with crossings between checks.
site_links: whether links of HTML pages lead anywhere.
"""

import os
import pathlib
from collections.abc import Mapping, Sequence

from qstr_jax.report import content, fragments, headline, page
from qstr_jax.storage import files, results


def write(
    workdirs: Sequence[str | os.PathLike],
    output: str | os.PathLike,
    latex: bool = False,
    *,
    pages: Mapping[str, page.Page] | None = None,
    links: Mapping[str, str] | None = None,
    home: str | os.PathLike | None = None,
) -> pathlib.Path:
    """Writes `output`/report.html, and `output`/latex/* if asked; `home` is where the page will lie, if elsewhere."""
    workdirs = list({os.path.abspath(workdir): workdir for workdir in workdirs}.values())
    for workdir in workdirs:
        results.find(workdir)  # Before anything is written.
    folder = pathlib.Path(files.make_folder(output))
    sections = [section for workdir in workdirs for section in content.sections(workdir, leave_out=folder)]
    measured = content.measured(sections)
    overview = content.overview(measured, sum(len(section.rows) for section in sections))
    text = page.html_of(
        overview, sections, headline.headline(sections, measured), pages=pages, links=links, home=home or folder
    )
    files.write_text(folder / 'report.html', text)
    if latex:
        fragments.write(overview, sections, folder / 'latex')
    return folder / 'report.html'
