r"""One self-contained HTML page and LaTeX fragments, from result directories alone.

python -m experiments.report --workdir=experiments/results --output=results/report
python -m experiments.report --workdir=results/mine,results/yours
"""

import glob

from absl import flags

from experiments import command_line
from qstr_jax import report
from qstr_jax.storage import files

WORKDIR = flags.DEFINE_multi_string(
    'workdir', None, 'Result directories, or directories that hold some; several by commas, globs or repetition.'
)
OUTPUT = flags.DEFINE_string('output', 'results/report', 'Where report.html and latex/ go.')


def expand(arguments):
    """Directories from flags and positional arguments: split on commas, globs expanded, each once."""
    parts = [part for argument in arguments for part in argument.split(',') if part]
    found = [path for part in parts for path in (sorted(glob.glob(part)) or [part])]
    return list(dict.fromkeys(found))


def run(*arguments):
    """Writes the report of --workdir and `arguments`."""
    workdirs = expand([*(WORKDIR.value or []), *arguments])
    if not workdirs:
        raise ValueError('--workdir=DIR is missing: which results should be reported?')
    try:
        path = report.write(workdirs, OUTPUT.value)
    except OSError as error:
        raise files.ResultsError(error) from error
    print(f'report: {path}\nLaTeX: {path.parent / "latex"}')


if __name__ == '__main__':
    command_line.launch(run, required=None, takes_arguments=True)
