"""A directory's locks for writers that run no lanes; they are those of `sweeps.claims`, by the same files."""

import contextlib
from collections.abc import Iterator
from typing import Any

import filelock

from qstr_jax.storage import files, names


@contextlib.contextmanager
def locked(workdir: Any, name: str) -> Iterator[None]:
    """Holds a lock of a directory, for which it waits; object stores have none."""
    if '://' in str(workdir):
        yield
        return
    path = names.inside(workdir, 'locks', f'{name}.lock')
    lock = filelock.FileLock(str(path), thread_local=False)
    try:
        lock.acquire()
    except OSError as error:
        raise files.ResultsError(f'cannot lock {path}: {error.strerror or error}') from error
    try:
        yield
    finally:
        lock.release()
