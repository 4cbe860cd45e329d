"""States of running lane batches on disk, with Orbax: arrays only, nothing that runs when it is read.

A checkpoint is a folder named by its number of checks; it appears whole (Orbax renames it into place). A batch
that cannot read its checkpoint starts anew and comes to the same rows.

In a `jax.distributed` job Orbax makes every save a meeting of all processes, while ours run lane batches of their own
and meet nowhere. There the arrays go into one NumPy archive in the same folder; either kind is read by any job.
"""

import contextlib
import errno
import hashlib
import io
import logging as std_logging
import os
import pathlib
import shutil
import threading
import zipfile

import jax
import numpy as np
from absl import logging
from orbax.checkpoint import v1 as ocp

from qstr_jax.storage import files

# Of a process that is one of several.
ARCHIVE = 'arrays.npz'
# Bytes of a checkpoint beside its arrays: names, shapes, whole blocks.
MARGIN = 2**18
# Several devices' threads save, but Orbax is not made for that: two saves at once mix up their signals and hang.
_one_at_a_time = threading.Lock()


@contextlib.contextmanager
def _quiet():
    """Orbax logs every save in ten lines, and the tracebacks of what it raises: the exception is enough."""

    def is_wanted(record):
        return record.levelno < std_logging.ERROR and 'orbax' not in pathlib.PurePath(record.pathname).parts

    loggers = logging.get_absl_logger(), std_logging.getLogger('asyncio')
    for logger in loggers:
        logger.addFilter(is_wanted)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(is_wanted)


def save_tree(path, tree):
    """Saves a pytree of arrays at `path`, replacing what is there.

    Raises:
        files.ResultsError: the disk is full, or the place not writable.
    """
    arrays = jax.tree.map(np.asarray, jax.device_get(tree))
    content = {'arrays': arrays, 'digest': _digest(arrays)}
    try:
        # Where Orbax fails, its threads wait for each other and print pages: what can be known is found out before.
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_unfinished(path)
        _check_room(path, sum(leaf.nbytes for leaf in jax.tree.leaves(arrays)))
        if jax.process_count() > 1:
            _save_archive(path, content)
            return
        with _one_at_a_time, _quiet():
            ocp.save(path.resolve(), content, overwrite=True)
    except Exception as error:  # for a full disk it is a ValueError
        with contextlib.suppress(OSError):
            _remove_unfinished(path)
        raise files.ResultsError(f'cannot write {path}: {_reason(error)}') from error


def _check_room(path, num_bytes):
    if '://' not in str(path) and shutil.disk_usage(path.parent).free < num_bytes + MARGIN:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _save_archive(path, content):
    """All leaves of `content` in one file, by their number."""
    buffer = io.BytesIO()
    np.savez(buffer, **_as_dict(content))
    path.mkdir(parents=True, exist_ok=True)
    files.write_atomically(path / ARCHIVE, lambda temporary: temporary.write_bytes(buffer.getvalue()))


def _load_archive(path, abstract):
    try:
        with np.load(io.BytesIO((path / ARCHIVE).read_bytes()), allow_pickle=False) as archive:
            leaves = [archive[name] for name in sorted(archive.files)]
    except zipfile.BadZipFile as error:
        raise ValueError(str(error)) from None
    return jax.tree.unflatten(jax.tree.structure(abstract), leaves)


def _remove_unfinished(path):
    """Removes what a save left that was killed or failed."""
    for unfinished in path.parent.glob(f'{path.name}.orbax-checkpoint-tmp*'):
        unfinished.rmtree()


def _reason(error):
    """An exception in a line: Orbax's are pages long, and end in what the system said."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    line = str(error).splitlines()[0] if str(error) else type(error).__name__
    line = line.split(' [tensorstore_spec')[0].split(' [os_error_code')[0]
    return line if len(line) <= 200 else f'{line[:80]} … {line[-100:]}'


def load_tree(path, abstract_tree):
    """Loads what `save_tree` saved, as NumPy arrays of the shapes in `abstract_tree`.

    Raises:
        files.ResultsError: it is damaged, or holds something else.
    """
    wanted = jax.tree.map(lambda leaf: np.empty(leaf.shape, leaf.dtype), abstract_tree)
    try:
        abstract = {'arrays': wanted, 'digest': _digest(wanted)}
        if (path / ARCHIVE).exists():
            content = _load_archive(path, abstract)
        else:
            with _one_at_a_time, _quiet():
                content = ocp.load(path.resolve(), abstract)
    except Exception as error:  # Orbax raises many kinds for a damaged folder
        raise files.ResultsError(f'{path} cannot be read: {_reason(error)}') from error
    found = content['arrays']
    # Orbax looks neither at shapes nor at the numbers themselves.
    shapes = [[leaf.shape for leaf in jax.tree.leaves(tree)] for tree in (wanted, found)]
    if shapes[0] != shapes[1]:
        raise files.ResultsError(f'{path} cannot be read: other shapes than this program has')
    if not np.array_equal(content['digest'], _digest(found)):
        raise files.ResultsError(f'{path} cannot be read: its numbers are not those that were saved')
    return found


def _digest(arrays):
    """SHA-256 of all leaves, as an array that is saved beside them."""
    state = hashlib.sha256()
    for leaf in jax.tree.leaves(arrays):
        state.update(f'{leaf.dtype}{leaf.shape}'.encode())
        state.update(np.ascontiguousarray(leaf).tobytes())
    return np.frombuffer(state.digest(), np.uint8)


def save(folder, state_K):
    """Saves the state of a lane batch; older ones go when it is there."""
    number = int(np.max(np.asarray(state_K.checks)))
    path = folder / f'{number:08d}'
    # A NamedTuple is saved as a dict of its leaves, by path.
    save_tree(path, _as_dict(state_K))
    for other in folder.iterdir():
        if other.name != path.name:
            other.rmtree()


def load(folder, abstract_state_K):
    """The newest state in a batch's folder, or None if there is none that can be read."""
    if not folder.exists():
        return None
    for path in sorted(folder.iterdir(), key=lambda p: p.name, reverse=True):
        if not path.name.isdigit():  # what a killed write left
            continue
        try:
            leaves = load_tree(path, _as_dict(abstract_state_K))
        except files.ResultsError as error:
            logging.warning('%s: left out', error)
            continue
        structure = jax.tree.structure(abstract_state_K)
        return jax.tree.unflatten(structure, [leaves[name] for name in sorted(leaves)])
    return None


def remove(folder):
    """Removes the checkpoints of a batch that is in the tables."""
    if folder.exists():
        folder.rmtree()


def _as_dict(tree):
    return {f'{i:04d}': leaf for i, leaf in enumerate(jax.tree.leaves(tree))}
