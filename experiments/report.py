r"""One self-contained HTML page, with charts to explore, from result directories alone; LaTeX fragments by --latex.

python -m experiments.report --workdir=experiments/results --output=results/report
python -m experiments.report --workdir=results/mine,results/yours
"""

from absl import flags

from experiments import exhibit
from qstr_jax import report
from qstr_jax.cli import command_line, runtime
from qstr_jax.storage import results

LATEX = flags.DEFINE_bool('latex', False, 'Write tables and figures for a paper too.')


def run(*arguments: str) -> None:
    """Writes the report of --workdir and further directories."""
    workdirs = runtime.workdirs(arguments)
    path = report.write(workdirs, runtime.output('results/report'), LATEX.value, pages=exhibit.pages())
    for workdir in workdirs:
        if not results.find(workdir):
            print(f'{workdir}: there are no results in it')
    print(f'report: {path}' + (f'\nLaTeX: {path.parent / "latex"}' if LATEX.value else ''))


if __name__ == '__main__':
    command_line.launch(run, takes_arguments=True, used=('workdir', 'output'))
