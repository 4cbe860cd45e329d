"""What code raised, in one line: for functions that users register, whose errors can be anything."""

import contextlib
import importlib
import os
import pathlib
import random
import sysconfig
import traceback
from collections.abc import Iterator

import numpy as np

# Code that is not the user's, besides installed packages: this package, its binaries and Python itself.
_ROOT = pathlib.Path(__file__).parents[1]
_NOT_USERS = tuple(
    f'{folder}{os.sep}' for folder in (_ROOT / 'qstr_jax', _ROOT / 'experiments', sysconfig.get_paths()['stdlib'])
)
# What is wrong with code that does not take its random numbers from the key.
FROZEN = (
    'draws random numbers by NumPy or Python, which tracing freezes, so that all prompts and lanes share them: '
    'draw them by jax.random from the key'
)


def reason(error: BaseException) -> str:
    """The kind and first line of an error, and the user's line that it comes from: 'KeyError: 3 (mine.py, line 6)'.

    JAX and Flax put their advice into further lines.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return ': '.join([type(error).__name__, *lines[:1]]) + users_line(error)


def import_plugin(module: str) -> None:
    """Imports a module that registers something.

    Raises:
        ValueError: it cannot be imported; in one line.
    """
    try:
        importlib.import_module(module)
    except (Exception, SystemExit) as error:  # a user's file may raise anything
        is_absent = isinstance(error, ModuleNotFoundError) and error.name == module
        hint = '; looked in the current directory and on PYTHONPATH' if is_absent else ''
        raise ValueError(f'plugins={module!r}: {reason(error)}{hint}') from None


def users_line(error: BaseException) -> str:
    """The user's line that an error comes from, as ' (mine.py, line 6)'; '' if there is none."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if is_users(frame.filename)]
    return f' ({pathlib.Path(frames[-1].filename).name}, line {frames[-1].lineno})' if frames else ''


def is_users(path: str) -> bool:
    """Whether a file of Python code is the user's."""
    is_of_package = {'site-packages', 'dist-packages'}.intersection(pathlib.PurePath(path).parts)
    return not is_of_package and not path.startswith(('<', *_NOT_USERS))


def _random_state() -> tuple:
    """The states of the generators that NumPy and Python draw from for the whole process."""
    _, words, *rest = np.random.get_state()  # noqa: NPY002, which users draw from
    return (np.asarray(words).tobytes(), *rest, random.getstate())


@contextlib.contextmanager
def in_a_line(what: str) -> Iterator[None]:
    """Turns any error that is raised inside into a ValueError of one line.

    A ValueError passes as it is, since it says what is wrong.
    """
    try:
        yield
    except ValueError:
        raise
    except (Exception, SystemExit) as error:
        raise ValueError(f'{what}: {reason(error)}') from error


@contextlib.contextmanager
def named(what: str) -> Iterator[None]:
    """As `in_a_line`, for code that is traced: it may not draw random numbers by NumPy or Python."""
    before = _random_state()
    with in_a_line(what):
        yield
    if _random_state() != before:
        raise ValueError(f'{what}: {FROZEN}')
