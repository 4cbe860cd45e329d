"""A report from result directories alone: one self-contained HTML page, and LaTeX fragments for a paper.

    from qstr_jax import report
    report.write(['experiments/results'], 'results/report')

content: what a directory says, in words, tables and figures.    page: as HTML.    fragments: as LaTeX.
"""

from qstr_jax import studies
from qstr_jax.report import content, fragments, page
from qstr_jax.storage import files


def write(workdirs, output):
    """Writes `output`/report.html and `output`/latex/*; returns the path of the page.

    Args:
        workdirs: directories; each may be a results directory, or hold some at any depth.
        output: directory of the report, made if it does not exist.

    Raises:
        results.ResultsError: a directory that does not exist, or an output that cannot be written. What is empty,
            half-finished or damaged is said on the page instead.
    """
    for workdir in workdirs:
        studies.find(workdir)  # before anything is written
    output = files.make_folder(output)
    sections = [section for workdir in workdirs for section in content.sections(workdir, leave_out=output)]
    overview = content.overview(workdirs)
    files.write_text(output / 'report.html', page.html_of(overview, sections))
    fragments.write(overview, sections, output / 'latex')
    return output / 'report.html'
