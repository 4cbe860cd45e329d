"""States of running lane batches on disk, written with Orbax: arrays only, no code that runs when they are read.

A checkpoint is a folder named after its number of checks, and appears whole: Orbax renames it into place. A batch whose
checkpoint cannot be read starts again from the beginning and ends with the same rows. With the arrays lie a digest of
them and the name of what they belong to: a lane batch and its program.

In a `jax.distributed` job Orbax waits at every save until all processes save, but ours run lane batches of their own at
their own pace. There the arrays go into one NumPy archive in the same folder. Any job reads both kinds.
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
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
from absl import logging
from orbax.checkpoint import v1 as ocp

from qstr_jax.storage import files

# The file of a process that is one of several.
ARCHIVE = 'arrays.npz'
# Bytes that a checkpoint takes besides its arrays, for names, shapes and blocks that are not full.
MARGIN = 2**18
# The files of a checkpoint may have this many bytes more than twice those of its arrays; a larger one is not read.
MOST_MORE = 2**24
# Each device has a thread that saves, but two Orbax saves at once in one process confuse their signals and hang.
_one_at_a_time = threading.Lock()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keeps Orbax from logging ten lines for every save and the traceback of every exception that it raises."""

    def is_wanted(record: std_logging.LogRecord) -> bool:
        return record.levelno < std_logging.ERROR and 'orbax' not in pathlib.PurePath(record.pathname).parts

    loggers = logging.get_absl_logger(), std_logging.getLogger('asyncio')
    for logger in loggers:
        logger.addFilter(is_wanted)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(is_wanted)


def save_tree(path: Any, tree: Any, identity: str = '') -> None:
    """Saves a pytree of arrays, replacing what is there."""
    arrays = jax.tree.map(np.asarray, jax.device_get(tree))
    content = {'arrays': arrays, 'digest': _digest(arrays, identity)}
    try:
        # A failing Orbax save leaves threads waiting and prints pages, so whatever can be checked is checked first.
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_unfinished(path)
        if os.path.islink(path):  # Orbax would write to where it leads
            remove(path)
        num_bytes = sum(leaf.nbytes for leaf in jax.tree.leaves(arrays))
        if '://' not in str(path) and shutil.disk_usage(path.parent).free < num_bytes + MARGIN:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if jax.process_count() > 1:
            _save_archive(path, content)
            return
        with _one_at_a_time, _quiet():
            ocp.save(path.resolve(), content, overwrite=True)
        # Orbax names in this file the folder that it saved to; that there is such a file is the sign of a checkpoint.
        if (path / 'commit_success.txt').exists():
            files.write_text(path / 'commit_success.txt', '')
    except Exception as error:  # Orbax raises a ValueError for a full disk
        with contextlib.suppress(OSError):
            _remove_unfinished(path)
        raise files.ResultsError(f'cannot write {path}: {_reason(error)}') from error


def _save_archive(path: Any, content: Any) -> None:
    """Saves all leaves of a tree in one file, named by their numbers."""
    buffer = io.BytesIO()
    np.savez(buffer, **_as_dict(content))
    path.mkdir(parents=True, exist_ok=True)
    files.write_bytes(path / ARCHIVE, buffer.getvalue())


def _load_archive(path: Any, abstract: Any) -> Any:
    """Loads what `_save_archive` saved."""
    try:
        with np.load(io.BytesIO((path / ARCHIVE).read_bytes()), allow_pickle=False) as archive:
            _check_size(sum(one.file_size for one in archive.zip.infolist()), abstract)
            leaves = [archive[name] for name in sorted(archive.files)]
    except zipfile.BadZipFile as error:
        raise ValueError(str(error)) from None
    return jax.tree.unflatten(jax.tree.structure(abstract), leaves)


def _check_files(path: Any, wanted: Any) -> None:
    """Raises ValueError unless a checkpoint consists of files and folders, together not much larger than its arrays."""
    found = [] if '://' in str(path) else list(pathlib.Path(path).rglob('*'))
    odd = [one for one in found if one.is_symlink() or not (one.is_file() or one.is_dir())]
    if odd:
        raise ValueError(f'{odd[0].name} is no file, but a link, a pipe or a device')
    _check_size(sum(one.stat().st_size for one in found), wanted)


def _check_size(num_bytes: int, wanted: Any) -> None:
    """Raises ValueError where a checkpoint takes much more than its arrays."""
    if num_bytes > 2 * sum(leaf.nbytes for leaf in jax.tree.leaves(wanted)) + MOST_MORE:
        raise ValueError('its files are larger than its arrays')


def _remove_unfinished(path: Any) -> None:
    """Removes what a save that failed or was killed has left."""
    for unfinished in path.parent.glob(f'{path.name}.orbax-checkpoint-tmp*'):
        remove(unfinished)


def _reason(error: Exception) -> str:
    """An exception in one line; Orbax's are pages long, with the system's message near the end."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    line = str(error).splitlines()[0] if str(error) else type(error).__name__
    line = line.split(' [tensorstore_spec')[0].split(' [os_error_code')[0]
    return line if len(line) <= 200 else f'{line[:80]} … {line[-100:]}'


def load_tree(path: Any, abstract_tree: Any, identity: str = '') -> Any:
    """Loads what `save_tree` saved, as NumPy arrays."""
    wanted = jax.tree.map(lambda leaf: np.empty(leaf.shape, leaf.dtype), abstract_tree)
    try:
        abstract = {'arrays': wanted, 'digest': _digest(wanted)}
        _check_files(path, wanted)
        if (path / ARCHIVE).exists():
            content = _load_archive(path, abstract)
        else:
            with _one_at_a_time, _quiet():
                content = ocp.load(path.resolve(), abstract)
    except Exception as error:  # Orbax raises many kinds of them for a damaged folder
        raise files.ResultsError(f'{path} cannot be read: {_reason(error)}') from error
    found = content['arrays']
    # Orbax checks neither the shapes nor the numbers.
    shapes = [[leaf.shape for leaf in jax.tree.leaves(tree)] for tree in (wanted, found)]
    if shapes[0] != shapes[1]:
        raise files.ResultsError(f'{path} cannot be read: other shapes than this program has')
    if not np.array_equal(content['digest'], _digest(found, identity)):
        raise files.ResultsError(f'{path} cannot be read: its numbers are not those that were saved for {identity!r}')
    return found


def _digest(arrays: Any, identity: str = '') -> np.ndarray:
    """SHA-256 of an identity and all leaves, as an array that is saved with them."""
    state = hashlib.sha256(identity.encode())
    for leaf in jax.tree.leaves(arrays):
        state.update(f'{leaf.dtype}{leaf.shape}'.encode())
        state.update(np.ascontiguousarray(leaf).tobytes())
    return np.frombuffer(state.digest(), np.uint8)


def save(folder: Any, state_K: Any, identity: str = '') -> None:
    """Saves the state of a lane batch, with which lanes it is of, then removes older ones; errors as `save_tree`."""
    number = int(np.max(np.asarray(state_K.checks)))
    path = folder / f'{number:08d}'
    # Orbax takes dicts, so a NamedTuple is saved as a dict of its leaves.
    save_tree(path, _as_dict(state_K), identity)
    for other in folder.iterdir():
        if other.name != path.name:
            remove(other)


def load(folder: Any, abstract_state_K: Any, identity: str = '') -> Any:
    """The newest state of a lane batch that can be read, or None."""
    if not folder.is_dir():
        return None
    for path in sorted(folder.iterdir(), key=lambda p: p.name, reverse=True):
        if not path.name.isdigit():  # left by a save that was killed
            continue
        try:
            leaves = load_tree(path, _as_dict(abstract_state_K), identity)
        except files.ResultsError as error:
            logging.warning('%s: left out', error)
            continue
        return jax.tree.unflatten(jax.tree.structure(abstract_state_K), jax.tree.leaves(leaves))
    return None


def remove(path: Any) -> None:
    """Removes a folder of checkpoints, or whatever lies in its place; a link is removed, not followed."""
    if os.path.islink(path) or path.is_file():
        path.unlink()
    elif path.exists():
        path.rmtree()


def copy(source: Any, target: Any) -> None:
    """Copies what `save_tree` saved, whole or not at all, replacing what is there; a link in it is an error."""
    unfinished = target.parent / f'{target.name}.orbax-checkpoint-tmp-copy'
    try:
        _remove_unfinished(target)
        _copy_folder(source, unfinished)
        remove(target)
        unfinished.rename(target)
    except OSError as error:
        raise files.ResultsError(f'cannot copy {source} to {target}: {_reason(error)}') from error


def _copy_folder(source: Any, target: Any) -> None:
    """Copies a folder of files and folders."""
    target.mkdir(parents=True)
    for path in source.iterdir():
        files.check_no_link(path)
        if path.is_dir():
            _copy_folder(path, target / path.name)
        else:
            path.copy(target / path.name)


def _as_dict(tree: Any) -> dict[str, Any]:
    """Leaves by their numbers, as names that sort in the same order."""
    return {f'{i:04d}': leaf for i, leaf in enumerate(jax.tree.leaves(tree))}
