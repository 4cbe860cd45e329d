r"""One self-contained HTML page and LaTeX fragments, from result directories alone.

python -m experiments.report --workdir=experiments/results --output=results/report
python -m experiments.report --workdir=results/mine,results/yours
"""

import glob
import sys

from absl import app, flags

from qstr_jax import files, report

WORKDIR = flags.DEFINE_multi_string(
    'workdir', None, 'Result directories, or directories that hold some; several by commas, globs or repetition.'
)
OUTPUT = flags.DEFINE_string('output', 'results/report', 'Where report.html and latex/ go.')


def expand(arguments):
    """Directories from flags and positional arguments: split on commas, globs expanded, each once."""
    parts = [part for argument in arguments for part in argument.split(',') if part]
    found = [path for part in parts for path in (sorted(glob.glob(part)) or [part])]
    return list(dict.fromkeys(found))


def main(argv):
    """Writes the report; a directory that is not there is one line on standard error."""
    workdirs = expand([*(WORKDIR.value or []), *argv[1:]])
    if not workdirs:
        sys.exit('error: --workdir=DIR is missing: which results should be reported?')
    try:
        path = report.write(workdirs, OUTPUT.value)
    except (files.ResultsError, OSError) as error:
        sys.exit(f'error: {error}')
    print(f'report: {path}\nLaTeX: {path.parent / "latex"}')


if __name__ == '__main__':
    app.run(main)
