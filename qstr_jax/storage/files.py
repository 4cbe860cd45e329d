"""Files that appear whole or not at all, and errors that name the file. Nothing here is pickled."""

import contextlib
import hashlib
import json
import os
import pathlib
import re
import socket
import stat
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from etils import epath

from qstr_jax.storage import table_format

# Name of the temporary file that a killed write leaves: .NAME.MACHINE-PID-RANDOM.tmp
LEFTOVER = re.compile(r'^\..+\.(?P<machine>[^/]+)-(?P<pid>\d+)-[0-9a-f]{8}\.tmp$')
# A temporary file whose writer we cannot see, on another machine or in another container, is removed at this age.
LEFTOVER_SECONDS = 86_400
# The most bytes that a file of each kind may have; larger ones are not read. No committed file has a million. An entry
# is a stranger's table on the board.
MOST_BYTES = {'record': 2**26, 'table': 2**30, 'entry': 2**18, 'picture': 2**25, 'text': 2**24}
# The most values of a table, those in lists too: a file of a few KiB may hold a thousand million equal numbers.
MOST_VALUES = {'table': 10**8, 'entry': 10**4}
# The most levels of objects and lists in a JSON file; ours have six.
MOST_LEVELS = 64
# Where the digest of a JSON file stands in it.
DIGEST_KEY = 'digest'


class ResultsError(Exception):
    """A results directory or file that cannot be used; the message says which, and what to do."""


@contextlib.contextmanager
def writing(what: str) -> Iterator[None]:
    """Raises ResultsError where a folder cannot be made or written; `what` is how the message calls it."""
    try:
        yield
    except (OSError, RecursionError) as error:  # RecursionError: a thousand folders to make
        reason = getattr(error, 'strerror', None) or 'too many levels'
        raise ResultsError(f'{what}: must be a directory that can be written ({reason})') from None


def make_folder(path: Any) -> epath.Path:
    """Makes a directory and its parents unless they exist, and returns it."""
    folder = epath.Path(path)
    with writing(repr(str(path))):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def check_no_link(path: Any) -> None:
    """Raises ResultsError if a path is a symbolic link, which may lead anywhere."""
    if os.path.islink(path):
        raise ResultsError(f'{path} is a symbolic link, which is not followed: replace it by what it leads to')


@contextlib.contextmanager
def opened(path: Any, kind: str) -> Iterator[BinaryIO]:
    """Opens what was found in a directory, to be read: a file, and no larger than its kind may be.

    A link may lead anywhere, a pipe blocks, a device never ends, and a file with holes can be huge and take no room.
    """
    check_no_link(path)
    is_local = '://' not in str(path)
    with open(path, 'rb', opener=_open_at_once) if is_local else epath.Path(path).open('rb') as file:
        if is_local and not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ResultsError(f'{path} is no file but a folder, a pipe or a device: delete it')
        size = os.fstat(file.fileno()).st_size if is_local else epath.Path(path).stat().length
        if size > MOST_BYTES[kind]:
            raise ResultsError(f'{path} has {size:,} bytes, a {kind} has at most {MOST_BYTES[kind]:,}: delete it')
        yield file


def _open_at_once(path: str, flags: int) -> int:
    """Opens a file without following links or waiting for the other end of a pipe."""
    return os.open(path, flags | os.O_NONBLOCK | os.O_NOFOLLOW)


def read_bytes(path: Any, kind: str) -> bytes:
    """The content of a file that `opened` opens."""
    with opened(path, kind) as file:
        return file.read(MOST_BYTES[kind])


def temporary_path(path: Any) -> Any:
    """A hidden name beside a file that says which process writes it, so that `remove_leftovers` can clean up."""
    owner = f'{machine()}-{os.getpid()}'
    return path.parent / f'.{path.name}.{owner}-{uuid.uuid4().hex[:8]}.tmp'


def write_atomically(path: Any, write: Callable[[Any], Any]) -> None:
    """Calls `write` with a temporary path, then moves that file to `path` in one step."""
    path = epath.Path(path)
    temporary = temporary_path(path)
    try:
        write(temporary)
        if '://' not in str(path):  # so that a power failure does not leave an empty file
            with temporary.open('rb') as file:
                os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise ResultsError(f'cannot write {path}: {error.strerror or error}') from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_bytes(path: Any, content: bytes) -> None:
    """Writes a file, whole or not at all."""
    write_atomically(path, lambda temporary: temporary.write_bytes(content))


def write_text(path: Any, text: str) -> None:
    """Writes a text file in UTF-8, whole or not at all; bytes of a name that are not UTF-8 become \\udcXX."""
    write_bytes(path, text.encode(errors='backslashreplace'))


def write_json(path: Any, value: dict[str, Any]) -> None:
    """Writes a JSON object with a digest of what it says, indented, whole or not at all."""
    signed = {DIGEST_KEY: _digest_of(value), **value}
    write_text(path, json.dumps(signed, indent=2, ensure_ascii=False) + '\n')


def read_json(path: Any) -> dict[str, Any]:
    """Reads a JSON object that `write_json` wrote, without its digest."""
    try:
        value = json.loads(read_bytes(path, 'record'))
        _check_json(value)
    except (ValueError, OSError, RecursionError, MemoryError) as error:
        raise ResultsError(
            f'{path} is damaged ({str(error) or type(error).__name__}): restore it or delete it'
        ) from None
    return value


def _check_json(value: Any) -> None:
    """Takes the digest out of a JSON object; raises ValueError if it is not one of ours."""
    if not isinstance(value, dict):
        raise ValueError(f'a {type(value).__name__} where an object should be')
    if _is_deep(value):
        raise ValueError(f'more than {MOST_LEVELS} levels')
    if (digest := value.pop(DIGEST_KEY, None)) is None:
        raise ValueError('it has no digest: it is older than digests, or was edited')
    if digest != _digest_of(value):
        raise ValueError('its content is not what was written')


def _is_deep(value: Any) -> bool:
    layer = [value]
    for _ in range(MOST_LEVELS):
        inner = (part.values() if isinstance(part, dict) else part for part in layer)
        layer = [part for several in inner for part in several if isinstance(part, (dict, list))]
    return bool(layer)


def _digest_of(value: dict[str, Any]) -> str:
    """SHA-256 of what a JSON object says, in this order; how it is indented does not count."""
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()


def write_table(path: Any, frame: pd.DataFrame, cell_id: str = '') -> None:
    """Writes a DataFrame as Parquet, whole or not at all.

    Its metadata hold our format, the role of each column, the cell, and a digest of all that and every value.
    """
    table = table_format.labelled(pa.Table.from_pandas(frame, preserve_index=False), cell_id)

    def write(temporary: Any) -> None:
        with temporary.open('wb') as file:
            pq.write_table(table, file, write_page_checksum=True)

    write_atomically(path, write)


def read_table(path: Any, cell_id: str = '', kind: str = 'table') -> pd.DataFrame:
    """Reads a table that `write_table` wrote, and adds to the table of columns what it does not know yet."""
    try:
        with opened(path, kind) as file:
            content = pq.ParquetFile(file, page_checksum_verification=True)
            _check_size(content.metadata, kind)
            table = content.read(use_threads=False)
        table_format.check(table, cell_id)
        frame = table.to_pandas()
        if kind != 'entry':  # a stranger's table may not say what columns mean
            table_format.declare(table.schema)
    except table_format.ForeignError as error:
        raise ResultsError(f'{path} {error}') from None
    except ResultsError:
        raise
    except Exception as error:  # pyarrow raises whatever a damaged length leads to
        raise damaged_table(path, error) from None
    return frame


def _check_size(metadata: pq.FileMetaData, kind: str) -> None:
    """Raises ValueError for a table that would be much larger in memory than its file is."""
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    chunks = [group.column(number) for group in groups for number in range(group.num_columns)]
    if sum(chunk.num_values for chunk in chunks) > MOST_VALUES[kind]:
        raise ValueError(f'more than {MOST_VALUES[kind]:,} values')
    if sum(chunk.total_uncompressed_size for chunk in chunks) > MOST_BYTES[kind]:
        raise ValueError(f'more than {MOST_BYTES[kind]:,} bytes when it is read')


def damaged_table(path: Any, reason: object) -> ResultsError:
    """The error of a table that cannot be used."""
    line = (str(reason).splitlines() or [type(reason).__name__])[0][:300]
    of_cell = pathlib.PurePath(path).parent.name in ('rows', 'curves')
    hint = 'delete it, in rows/ and in curves/, and run its cell again' if of_cell else 'delete it and make it again'
    return ResultsError(f'{path} is damaged ({line}): {hint}')


def remove_leftovers(folder: Any) -> None:
    """Removes the temporary files of processes that are gone."""
    for file in folder.glob('.*.tmp'):
        found = LEFTOVER.match(file.name)
        if found is None:
            continue
        with contextlib.suppress(OSError):  # another worker may have removed it
            is_ours = found['machine'] == machine()
            is_old = time.time() - file.stat().mtime > LEFTOVER_SECONDS
            if (is_ours and not is_running(int(found['pid']))) or is_old:
                file.unlink(missing_ok=True)


def machine() -> str:
    """Stands for what numbers processes: a host since its start, or a container, which may have the name of its host.

    Only a process of the same machine in this sense can tell by a number whether another is alive.
    """
    parts = [socket.gethostname()]
    with contextlib.suppress(OSError):  # no Linux
        parts.append(pathlib.Path('/proc/sys/kernel/random/boot_id').read_text())
        parts.append(str(os.stat('/proc/self/ns/pid').st_ino))
    return digest(*parts)


def is_running(pid: int) -> bool:
    """Whether a process of this `machine` is alive."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def digest(*values: Any) -> str:
    """Eight hexadecimal digits that depend on every value, for names of files."""
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()[:8]
