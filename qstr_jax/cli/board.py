"""The board of entries: its page, the rows that ship with the package, and a check of an entry.

python -m qstr_jax board page board          the page of the documentation, to standard output
python -m qstr_jax board reference board     all rows as the table that ships with the package
python -m qstr_jax board check board/NAME    runs two lanes again: a stranger's code, for a machine without secrets
"""

import sys

from qstr_jax.cli import command_line
from qstr_jax.comparison import board, entries
from qstr_jax.storage import files


def run(asked: str = '', *folders: str) -> None:
    """Does 'page', 'reference' or 'check' with the folder of the board, or of an entry."""
    if asked not in ('page', 'reference', 'check') or len(folders) != 1:
        given = ' '.join(('board', asked, *folders)).strip()
        raise ValueError(f'{given}: give page, reference or check, and one folder')
    (folder,) = folders
    if asked == 'page':
        print(board.page(folder))
    elif asked == 'reference':
        rows = board.all_rows(folder)
        files.write_table(entries.REFERENCE, rows)
        print(f'{entries.REFERENCE}: {len(rows)} rows of {rows["entry"].nunique()} entries')
    else:
        lanes = board.check(folder)
        print('\n'.join(lane.text for lane in lanes) or 'its rows are of training loops outside: read, not run again')
        sys.exit(not all(lane.holds for lane in lanes))


def main() -> None:
    """The binary."""
    command_line.launch(run, takes_arguments=True, used=())
