"""`python -m qstr_jax` runs a sweep and draws it: see `qstr_jax.cli.sample_complexity`.

`python -m qstr_jax compare` puts an architecture beside all others: see `qstr_jax.cli.compare`.
`python -m qstr_jax board` looks after the board: see `qstr_jax.cli.board`.
`python -m qstr_jax track` sends rows to an experiment tracker: see `qstr_jax.cli.track`.
"""

import importlib
import sys

if __name__ == '__main__':
    named = sys.argv[1:2] and not sys.argv[1].startswith('-')
    command = sys.argv.pop(1) if named else 'sample_complexity'
    if command not in ('sample_complexity', 'compare', 'board', 'track'):
        sys.exit(f'error: unknown command {command!r}: give compare, board or track, or flags alone for a sweep')
    binary = importlib.import_module(f'qstr_jax.cli.{command}')
    if command != 'sample_complexity':
        sys.argv[0] += f' {command}'  # the name that the record of a run has
        __doc__ = str(binary.__doc__)  # which --help shows
    binary.main()
