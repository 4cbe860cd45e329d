r"""Your architecture beside all others: runs the suite, writes a card, and makes a folder to submit.

python -m qstr_jax compare --plugins=my_models --models=mine --workdir=results/mine

A second call goes on where the first was stopped. Without --models it takes the rows that are there.
"""

import functools
import logging
from collections.abc import Sequence
from typing import Any

from absl import flags

from qstr_jax import comparison
from qstr_jax.cli import base, command_line, runtime
from qstr_jax.comparison import board
from qstr_jax.comparison import suite as suites
from qstr_jax.models import registered
from qstr_jax.settings import checks

OWN = ('models', 'plugins', 'suite', 'seq_lens', 'every_point', 'settings', 'submit', 'source')


def define() -> None:
    """Defines the flags; not at import, since other binaries have flags of these names too."""
    flags.DEFINE_list('models', None, 'Registered architectures; none takes the rows that --workdir has.')
    flags.DEFINE_list('plugins', [], 'Modules that register them; found as Python finds modules.')
    flags.DEFINE_string('suite', 'quick', "'quick' or 'long'.")
    flags.DEFINE_list('seq_lens', None, "Some of the suite's N; all by default.")
    flags.DEFINE_bool('every_point', False, 'Go on to longer prompts after an N at which no lane learns.')
    flags.DEFINE_string('settings', '', 'Settings of the models, as "{\'mine.width\': 32}".')
    flags.DEFINE_string('submit', None, 'Also writes a folder for the board here, such as board/.')
    flags.DEFINE_string('source', '', 'With --submit: the address where the code has its home, if it has one.')


def run(given: Any) -> None:
    """Runs what is missing and writes the card; `given` has the values of the flags `OWN`."""
    plugins = tuple(given.plugins)
    base.import_plugins(plugins)
    workdir = runtime.workdir()
    runtime.start()
    try:
        seq_lens = None if given.seq_lens is None else tuple(map(int, given.seq_lens))
    except ValueError:
        raise ValueError(f'--seq_lens={",".join(given.seq_lens)}: give whole numbers with commas') from None
    settings = base.parsed_axes(given.settings, '--settings')
    suites.check_of_models(settings, given.models or ())
    if given.source and not given.submit:
        raise ValueError(f'--source={given.source}: would be ignored without --submit')
    # Without models a submission still says which settings made the rows that are there.
    of_run = settings if given.models or not given.submit else {}
    if given.models:
        _check_models(given.models)
    if given.models and given.submit:
        board.check_before(given.models, workdir, given.submit, suite=given.suite, plugins=plugins)
    options = runtime.options() if given.models else None
    points = {'suite': given.suite, 'seq_lens': seq_lens, 'every_point': given.every_point}
    cards = comparison.compare(given.models, workdir, **points, options=options, **of_run)
    for entry, card in cards.items():
        for task in card['tasks']:
            logging.info('%s on %s: %s', entry, task['name'], '; '.join(task['says']))
    print(f'{workdir}: card.html, card.png, card.md and card.json')
    if given.submit:
        made: dict[str, Any] = {'plugins': plugins, 'settings': settings, 'source': given.source}
        folder = board.submit(workdir, given.submit, suite=given.suite, **made)
        print(f'{folder}: read its README.md, then commit it')
        _, rows = board.read(folder)
        if left := board.missing(rows, given.suite):
            print(f'{folder}: has no rows of {"; ".join(left)}')


def _check_models(models: Sequence[str]) -> None:
    """Raises ValueError for models that nobody registered."""
    known = registered.REGISTRY.names()
    for name in models:
        if name not in known:
            own = 'a name of your own needs --plugins=MODULE, the module that registers it'
            raise ValueError(f'{checks.unknown("--models", name, known)}; {own}')


def main() -> None:
    """The binary."""
    define()
    used = (*command_line.DEVICES, *command_line.JOB, *OWN)
    command_line.launch(functools.partial(run, flags.FLAGS), used=used)
