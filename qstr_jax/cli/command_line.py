"""From a command line to a run. What a user can correct is one line on standard error, and a failing exit."""

import functools
import logging
import re
import signal
import sys
import warnings
from collections.abc import Callable, Collection, Sequence
from typing import Any

import pandas as pd
from absl import app, flags
from ml_collections import config_dict

from qstr_jax import failures, sweeps
from qstr_jax.cli import base
from qstr_jax.settings import registry
from qstr_jax.storage import results
from qstr_jax.sweeps import scopes

DESCRIBE = flags.DEFINE_string(
    'describe', None, "Print the settings of a registered name, as 'rnn', or the names of a kind, as 'models'."
)

# A binary has all flags of the modules that it imports, whether it uses them or not; flags of its script are its own.
IMPORTED = ('qstr_jax.', 'experiments.')
# The imported flags that binaries which run a sweep use, and those that their dry run uses.
DEVICES = ('workdir', 'num_devices', 'checkpoint_seconds', 'memory_limit_gb', 'refresh', 'compilation_cache')
JOB = ('distributed', 'coordinator', 'num_processes', 'process_id', 'shard_index', 'num_shards')
SWEEP = ('config', 'dry_run', *DEVICES, *JOB)
DRY_RUN = ('config', 'dry_run', 'workdir', 'shard_index', 'num_shards')


def launch(
    run: Callable[..., None],
    takes_arguments: bool = False,
    default_config: str | None = None,
    used: Collection[str] = SWEEP,
) -> None:
    """Runs a binary: parses the flags and calls `run()`, or `run(*arguments)` if there may be any."""
    # JAX logs every backend that is missing.
    logging.getLogger('jax._src.xla_bridge').setLevel(logging.WARNING)
    warnings.formatwarning = _once()
    # Rows of many architectures have hundreds of columns, and pandas would warn that it stores them one by one.
    warnings.simplefilter('ignore', pd.errors.PerformanceWarning)
    for name in used:  # what --help lists
        flags.FLAGS.register_key_flag_for_module(sys.argv[0], flags.FLAGS[name])
    app.run(
        lambda argv: exit_on_error(functools.partial(_run, run, argv[1:], used)),
        flags_parser=functools.partial(parse, takes_arguments=takes_arguments, default_config=default_config),
    )


def _once() -> Callable[..., str]:
    """How warnings look: one line, shown once, even if a directory is read several times."""
    said: set[str] = set()

    def line(message: Warning | str, *_: object, **__: object) -> str:
        if (text := f'warning: {message}\n') in said:
            return ''
        said.add(text)
        return text

    return line


def _run(run: Callable[..., None], arguments: Sequence[str], used: Collection[str]) -> None:
    """Prints what --describe asks for, or does the work."""
    if DESCRIBE.value:
        refuse_unused(('config', 'describe'), '--describe')
        print(registry.describe(DESCRIBE.value))
        return
    is_dry = 'dry_run' in flags.FLAGS and flags.FLAGS.dry_run
    refuse_unused(DRY_RUN if is_dry else (*used, 'describe'), '--dry_run' if is_dry else 'this binary')
    run(*arguments)


def refuse_unused(used: Collection[str], by: str) -> None:
    """Raises ValueError for an imported flag on the command line that would be ignored `by` something."""
    for name in flags.FLAGS:
        is_imported = str(flags.FLAGS.find_module_defining_flag(name)).startswith(IMPORTED)
        if is_imported and flags.FLAGS[name].present and name not in used:
            raise ValueError(f'--{name}: {by} does not use it, leave it out')


def import_plugins(argv: Sequence[str]) -> None:
    """Imports the modules of --config.plugins before the config is made, which has the settings that they register."""
    for word, following in zip(argv, [*argv[1:], ''], strict=True):
        name, has_value, value = word.lstrip('-').partition('=')
        if name == 'config.plugins' and word.startswith('-'):
            modules = value if has_value else following
            exit_on_error(functools.partial(base.import_plugins, modules))


def parse(argv: Sequence[str], takes_arguments: bool = False, default_config: str | None = None) -> list[str]:
    """Sets all flags; what is wrong ends the process with one line."""
    import_plugins(argv)
    is_given = any(word.startswith(('--config=', '-config=')) or word in ('--config', '-config') for word in argv)
    if not is_given and default_config is not None:
        argv = [argv[0], f'--config={default_config}', *argv[1:]]
    elif not is_given and any(word.lstrip('-').startswith('describe') for word in argv):
        # Without a config there is nothing to override; --describe needs none, and has the plugins by now.
        argv = [word for word in argv if not word.startswith('--config.plugins=')]
    try:
        name, *rest = flags.FLAGS(argv)
        if 'config' in flags.FLAGS:
            getattr(flags.FLAGS.config, 'lock', None)  # An error of the config's file shows up here.
    except flags.Error as error:
        sys.exit(f'error: {_group_error(str(error)) or _part_error(str(error)) or _one_line(str(error))}')
    except OSError as error:
        sys.exit(f'error: --config: {str(error).strip().splitlines()[-1].strip()}')
    except (Exception, SystemExit) as error:  # a user's config may raise anything
        if isinstance(error, SystemExit) and any(word.lstrip('-').startswith(('help', '?')) for word in argv):
            raise
        sys.exit(f'error: {_config_error(argv, error)}')
    if rest and not takes_arguments:
        hint = ': settings are --config.NAME=VALUE' if 'config' in flags.FLAGS else ''
        sys.exit(f'error: unknown argument {rest[0]!r}{hint}')
    return [name, *rest]


def _config_error(argv: Sequence[str], error: BaseException) -> str:
    """What is wrong with a config: a setting that it does not have, or an error of its own."""
    words = [word for word in argv if re.match('--?(no)?config[.]', word)]
    names = [word.partition('=')[0].partition('.')[2] for word in words]
    odd = [name for name in names if not re.fullmatch(r'\w+([.]\w+)*', name)]
    given = [word.partition('=')[2] for word in argv if re.match('--?config=', word)]
    try:
        config = flags.FLAGS['config'].parser.parse(given[-1]) if given else {}
    except (Exception, SystemExit) as own:
        return f'--config={given[-1]}: {failures.reason(own)}'
    missing = odd or [name for name in names if not _has(config, name)]
    if isinstance(error, AttributeError) and missing:
        text = _innermost(error)
        known = scopes.whose(missing[0].rpartition('.')[2])
        if known and ('.' not in missing[0] or 'Did you mean' not in text):
            return f'the config has no setting {missing[0]!r}: it is of {known[0]}, --config.{known[1]}=VALUE'
        return f'the config has no setting {". ".join(text.splitlines())}'
    return f'the config has no setting {missing[0]!r}' if missing else f'--config: {failures.reason(error)}'


def _group_error(text: str) -> str:
    """What is wrong with a value that was given to a group of settings; '' if the error is another one."""
    found = re.match(r'flag --config[.](\w+)=(.*?): Failed to parse .* as a ConfigDict', text, re.DOTALL)
    if found is None:
        return ''
    name, value = found.groups()
    named = {**scopes.NAMED_BY, 'tune': 'tune.learning_rate'}
    hint = f'did you mean --config.{named[name]}={value}?' if name in named else f'give --config.{name}.SETTING=VALUE'
    lists = f'; --describe={name} lists them' if name in registry.entries() else ''
    return f'--config.{name}={value}: is a group of settings: {hint}{lists}'


def _part_error(text: str) -> str:
    """What is wrong with 'FILE:PART' where the file's config takes no part; '' if the error is another one."""
    found = re.match(r'flag --config=(.*?):([^:]*): .*get_config\(\) takes 0 positional', text, re.DOTALL)
    if found is None:
        return ''
    return f'--config={found[1]}:{found[2]}: this config has no parts; leave out :{found[2]}'


def _has(config: Any, name: str) -> bool:
    """Whether a config has a setting, whose name may be that of a group, a dot and a name."""
    for part in name.split('.'):
        if not isinstance(config, config_dict.ConfigDict) or part not in config:
            return False
        config = config[part]
    return True


def _hide_closed_loops(unraisable: Any) -> None:
    """Hides what Orbax's threads raise after a failed save, when their event loop is closed already."""
    is_late = isinstance(unraisable.exc_value, RuntimeError) and 'loop is closed' in str(unraisable.exc_value)
    if not is_late:
        sys.__unraisablehook__(unraisable)


def exit_on_error(run: Callable[[], None]) -> None:
    """Calls `run()`; an error that the user can correct ends the process with one line on standard error."""
    sys.unraisablehook = _hide_closed_loops
    try:
        run()
    except sweeps.Interrupted as error:
        print(f'stopped by {error}', file=sys.stderr)
        sys.exit(128 + error.signal_number)
    except KeyboardInterrupt:
        print('stopped at once', file=sys.stderr)
        sys.exit(128 + signal.SIGINT)
    except sweeps.SweepError as error:
        message = f'error: {error}'  # which may show the ends of several logs
    except (ValueError, OSError, results.ResultsError) as error:
        message = f'error: {_one_line(str(error)) or failures.reason(error)}'
    else:
        return
    sys.exit(
        message
    )  # Printed here: within `except` the error would keep a progress bar alive that writes into this line.


def _one_line(text: str) -> str:
    """A message of several lines as one; of a traceback only the end is kept."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return ' '.join([lines[0], lines[-1]] if any(line.startswith('Traceback') for line in lines) else lines)


def _innermost(error: Any) -> str:
    """The message of an error that was made of other errors."""
    while isinstance(error, Exception):
        error = error.args[0]
    return str(error)
