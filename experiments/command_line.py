"""From a command line to a run: what a user can mend is one line on standard error, and a non-zero exit."""

import sys
import warnings

from absl import app, flags

from experiments import runtime


def launch(run, required='config'):
    """What a binary does: parses the flags, of which `required` (None: no one) must be given, and calls `run()`."""
    if required is not None:
        flags.mark_flag_as_required(required)
    warnings.formatwarning = lambda message, *_, **__: f'warning: {message}\n'
    app.run(lambda argv: runtime.exit_on_error(run), flags_parser=parse)


def parse(argv):
    """Sets all flags from `argv`, the program's name first; returns the name. What is wrong there ends the process."""
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
    if rest:
        sys.exit(f'error: unknown argument {rest[0]!r}: settings are --config.NAME=VALUE')
    return [name]


def _one_line(text):
    """A message of several lines as one; of a traceback in it only the end is kept."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return ' '.join([lines[0], lines[-1]] if any(line.startswith('Traceback') for line in lines) else lines)


def _innermost(error):
    """The words of an error that was made of other errors."""
    while isinstance(error, Exception):
        error = error.args[0]
    return str(error)
