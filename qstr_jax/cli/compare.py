r"""Your architecture beside all others: runs the suite, writes a card, and makes a folder to submit.

python -m qstr_jax compare --plugins=my_models --models=mine --workdir=results/mine

A second call goes on where the first was stopped. Without --models it takes the rows that are there.
"""

import logging
from typing import Any

from absl import flags

from qstr_jax import comparison
from qstr_jax.cli import base, command_line, runtime
from qstr_jax.comparison import board

MODELS = flags.DEFINE_list('models', None, 'Registered architectures; none takes the rows that --workdir has.')
PLUGINS = flags.DEFINE_list('plugins', [], 'Modules that register them; found as Python finds modules.')
SUITE = flags.DEFINE_string('suite', 'quick', "'quick' or 'long'.")
SEQ_LENS = flags.DEFINE_list('seq_lens', None, "Some of the suite's N; all by default.")
SETTINGS = flags.DEFINE_string('settings', '', 'Settings of the models, as "{\'mine.width\': 32}".')
SOURCE = flags.DEFINE_string('source', '', 'With --submit: the address where the code has its home, if it has one.')
SUBMIT = flags.DEFINE_string('submit', None, 'Also writes a folder for the board here, such as board/.')


def run() -> None:
    """Runs what is missing and writes the card."""
    plugins = tuple(PLUGINS.value or ())
    base.import_plugins(plugins)
    workdir = runtime.workdir()
    runtime.start()
    try:
        seq_lens = None if SEQ_LENS.value is None else tuple(map(int, SEQ_LENS.value))
    except ValueError:
        raise ValueError(f'--seq_lens={SEQ_LENS.value}: give whole numbers with commas') from None
    settings = base.parsed_axes(SETTINGS.value, '--settings')
    cards = comparison.compare(
        MODELS.value, workdir, suite=SUITE.value, seq_lens=seq_lens, options=runtime.options(), **settings
    )
    for entry, card in cards.items():
        for task in card['tasks']:
            logging.info('%s on %s: %s', entry, task['name'], '; '.join(task['says']))
    print(f'{workdir}: card.html, card.png, card.md and card.json')
    if SUBMIT.value:
        made: dict[str, Any] = {'suite': SUITE.value, 'plugins': plugins, 'settings': settings, 'source': SOURCE.value}
        folder = board.submit(workdir, SUBMIT.value, **made)
        print(f'{folder}: read its README.md, then commit it')


def main() -> None:
    """The binary."""
    own = ('models', 'plugins', 'suite', 'seq_lens', 'settings', 'submit', 'source')
    command_line.launch(run, required=None, used=(*command_line.DEVICES, *command_line.JOB, *own))
