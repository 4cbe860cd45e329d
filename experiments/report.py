r"""One self-contained HTML page and LaTeX fragments, from result directories alone.

python -m experiments.report --workdir=experiments/results --output=results/report
python -m experiments.report --workdir=results/mine,results/yours
"""

from experiments import command_line, runtime
from qstr_jax import report
from qstr_jax.storage import files


def run(*arguments: str) -> None:
    """Writes the report of --workdir and further directories.

    Args:
        *arguments: the further directories.
    """
    workdirs = runtime.workdirs(arguments)
    try:
        path = report.write(workdirs, runtime.output('results/report'))
    except OSError as error:
        raise files.ResultsError(error) from error
    print(f'report: {path}\nLaTeX: {path.parent / "latex"}')


if __name__ == '__main__':
    command_line.launch(run, required=None, takes_arguments=True)
