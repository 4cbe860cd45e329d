"""Names that become parts of paths, and paths that stay in their directory.

What is read from a results directory is data: a name in plan.json may be '../../x', and a folder may be a link to
somewhere else. Only `inside` makes paths of such names, and only `listed` lists files.
"""

import os
import pathlib
import re
import warnings
from collections.abc import Iterator
from typing import Any

from etils import epath

from qstr_jax import failures
from qstr_jax.storage import files
from qstr_jax.storage.files import ResultsError

# Ids of cells and runs, names of lanes and lane batches. No '/', no leading '.', nothing that a glob expands.
NAME = r'[A-Za-z0-9_][A-Za-z0-9_.+-]{0,199}'
# The most levels below a directory that are searched.
MOST_LEVELS = 32


def check(name: Any) -> str:
    """Returns a name that may become a part of a path."""
    if not isinstance(name, str) or not re.fullmatch(NAME, name):
        shown = repr(name) if len(repr(name)) <= 80 else f'{name!r:.80}…'
        raise ResultsError(f'{shown} cannot be a name of a file: letters, digits and _ . + - are allowed')
    return name


def inside(workdir: Any, *names: str) -> epath.Path:
    """The path of something in a results directory, which may itself be a link."""
    path = epath.Path(workdir)
    for name in names:
        path /= check(name)
        files.check_no_link(path)
    return path


def check_text(path: Any) -> None:
    """Raises ResultsError if a path holds bytes that are no UTF-8, which no page, table or record can name."""
    if not is_text(str(path)):
        raise ResultsError(f'{str(path)!a}: the name is no UTF-8, rename it')


def reachable(what: str, path: Any) -> epath.Path:
    """A path or an address that can be looked at; otherwise ResultsError, which begins with `what`."""
    check_text(path)
    try:
        found = epath.Path(path)
        found.exists()
    except KeyError:
        raise ResultsError(f'{what}: unknown kind of address') from None
    except Exception as error:  # the package that reads such addresses may raise anything
        raise ResultsError(f'{what}: {failures.reason(error)}') from None
    return found


def is_text(name: str) -> bool:
    """Whether a text is valid UTF-8."""
    return not any('\ud800' <= letter <= '\udfff' for letter in name)


def listed(folder: Any, suffix: str, strict: bool = False) -> list[Any]:
    """The files of a folder with an ending, by name; a link, a folder or an odd name is left out with a warning.

    If `strict`, what would be left out is an error.
    """
    if os.path.islink(folder):
        _leave_out(f'{folder} is a symbolic link', strict)
        return []
    if not folder.is_dir():
        return []
    found = []
    for name, what in sorted(_entries(folder)):
        if name.startswith('.') or not name.endswith(suffix):
            continue
        if not is_text(name):
            _leave_out(f'{str(folder / name)!a}, whose name is no UTF-8', strict)
        elif what != 'a file':
            _leave_out(f'{folder / name} is {what}', strict)
        else:
            found.append(folder / name)
    return found


def _leave_out(what: str, strict: bool) -> None:
    """Warns of what is left out, or raises ResultsError."""
    if strict:
        raise ResultsError(f'{what}: put a plain file or folder in its place, or remove it')
    warnings.warn(f'left out: {what}', stacklevel=3)


def _entries(folder: Any) -> list[tuple[str, str]]:
    """The names in a folder, each with what it is; in a local folder no file is opened, since it may have many."""
    if '://' in str(folder):
        return [(path.name, 'a file' if path.is_file() else 'no file') for path in folder.iterdir()]
    with os.scandir(folder) as entries:
        return [
            (entry.name, 'a symbolic link' if entry.is_symlink() else 'a file' if entry.is_file() else 'no file')
            for entry in entries
        ]


def searched(folder: pathlib.Path) -> Iterator[tuple[pathlib.Path, list[str]]]:
    """A folder and all folders below it, no links, each with the names in it.

    What lies too deep, or has a name that is no UTF-8, is left out with a warning.
    """
    for path, folders, others in os.walk(folder):  # without those that are gone, or not ours to read
        one, found = pathlib.Path(path), [*folders, *others]
        for name in [name for name in folders if not is_text(name)]:
            warnings.warn(f'left out: {str(one / name)!a}, whose name is no UTF-8', stacklevel=2)
            folders.remove(name)
        if folders and len(one.parts) - len(folder.parts) == MOST_LEVELS:
            warnings.warn(f'left out: {one / folders[0]}, more than {MOST_LEVELS} levels below {folder}', stacklevel=2)
            folders.clear()
        yield one, found
