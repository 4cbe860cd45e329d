"""A directory's locks: files that the operating system locks, and unlocks when their holder ends in whatever way."""

import contextlib
from collections.abc import Iterator
from typing import Any

import filelock
from absl import logging

from qstr_jax.storage import files, names

# Locks of a directory are held for moments; who waits longer says so, since the holder may hang.
QUIET_SECONDS = 60.0


@contextlib.contextmanager
def locked(workdir: Any, name: str, timeout: float = -1) -> Iterator[bool]:
    """Holds a lock against other processes; False if another one has it after `timeout` seconds.

    Object stores have no locks: there it is always had.
    """
    if not has_locks(workdir):
        yield True
        return
    path = names.inside(workdir, 'locks', f'{name}.lock')
    lock = filelock.FileLock(str(path), thread_local=False)
    try:
        with contextlib.suppress(filelock.Timeout):
            lock.acquire(timeout=timeout if timeout >= 0 else QUIET_SECONDS)
        if not lock.is_locked and timeout < 0:
            message = 'another process has held %s for %.0f s: this one waits for it'
            logging.warning(message, lock.lock_file, QUIET_SECONDS)
            lock.acquire()
    except OSError as error:
        raise files.ResultsError(f'cannot lock {path}: {error.strerror or error}') from error
    try:
        yield lock.is_locked
    finally:
        lock.release()


def has_locks(workdir: Any) -> bool:
    """Whether the file system of a directory has locks."""
    return '://' not in str(workdir)
