"""From a command line to a run: what a user can mend is one line on standard error, and a non-zero exit."""

import functools
import logging
import sys
import warnings
from collections.abc import Callable, Sequence

from absl import app, flags

from experiments.configs import base
from qstr_jax import registry, sweeps
from qstr_jax.storage import results

DESCRIBE = flags.DEFINE_string(
    'describe', None, "Print the settings of a registered name, as 'rnn', or the names of a kind, as 'models'."
)


def launch(run, required='config', takes_arguments=False):
    """What a binary does: parses the flags and calls `run()`, or `run(*arguments)` if there may be any.

    Args:
        run: the work.
        required: the flag that must be given, None if there is none.
        takes_arguments: whether words that are no flags are allowed.
    """
    logging.getLogger('jax._src.xla_bridge').setLevel(logging.WARNING)  # which tells of every backend that is not there
    warnings.formatwarning = lambda message, *_, **__: f'warning: {message}\n'
    app.run(
        lambda argv: exit_on_error(lambda: _run(run, required, argv[1:])),
        flags_parser=functools.partial(parse, takes_arguments=takes_arguments),
    )


def _run(run: Callable[..., None], required: str | None, arguments: Sequence[str]) -> None:
    """What --describe asks for, or the work."""
    if DESCRIBE.value:
        print(registry.describe(DESCRIBE.value))
        return
    if required is not None and flags.FLAGS[required].value is None:
        raise ValueError(f'--{required}=… is missing; --help lists the flags')
    run(*arguments)


def import_plugins(argv: Sequence[str]) -> None:
    """Imports the modules of `--config.plugins=…` before the config is made, which has the settings that they register.

    Args:
        argv: the command line.
    """
    for word in argv:
        if word.startswith('--config.plugins='):
            exit_on_error(lambda word=word: base.import_plugins(word.partition('=')[2]))


def parse(argv, takes_arguments=False):
    """Sets all flags from `argv`, the program's name first; returns what is no flag. What is wrong ends the process."""
    import_plugins(argv)
    try:
        name, *rest = flags.FLAGS(argv)
        if 'config' in flags.FLAGS:
            getattr(flags.FLAGS.config, 'lock', None)  # a file that was not found is told when it is looked into
    except flags.Error as error:
        sys.exit(f'error: {_one_line(str(error))}')
    except OSError as error:
        sys.exit(f'error: --config: {str(error).strip().splitlines()[-1].strip()}')
    except AttributeError as error:
        sys.exit(f'error: the config has no setting {". ".join(_innermost(error).splitlines())}')
    if rest and not takes_arguments:
        hint = ': settings are --config.NAME=VALUE' if 'config' in flags.FLAGS else ''
        sys.exit(f'error: unknown argument {rest[0]!r}{hint}')
    return [name, *rest]


def _hide_closed_loops(unraisable):
    """After a failed save Orbax's threads still call into an event loop that is closed; the error itself is told."""
    is_late = isinstance(unraisable.exc_value, RuntimeError) and 'loop is closed' in str(unraisable.exc_value)
    if not is_late:
        sys.__unraisablehook__(unraisable)


def exit_on_error(run):
    """Calls `run()`; what a user can mend becomes one line on standard error and a non-zero exit."""
    sys.unraisablehook = _hide_closed_loops
    try:
        run()
    except sweeps.Interrupted as error:
        print(f'stopped by {error}', file=sys.stderr)
        sys.exit(128 + error.signal_number)
    except (ValueError, results.ResultsError, sweeps.SweepError) as error:
        message = f'error: {error}'
    else:
        return
    sys.exit(message)  # out here, where the error no longer holds a progress bar whose line it would end


def _one_line(text):
    """A message of several lines as one; of a traceback in it only the end is kept."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return ' '.join([lines[0], lines[-1]] if any(line.startswith('Traceback') for line in lines) else lines)


def _innermost(error):
    """The words of an error that was made of other errors."""
    while isinstance(error, Exception):
        error = error.args[0]
    return str(error)
