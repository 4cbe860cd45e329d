"""Files that appear whole or not at all, and errors that name the file. Nothing here is pickled."""

import contextlib
import hashlib
import json
import os
import re
import socket
import time
import uuid
from collections.abc import Callable
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from etils import epath

from qstr_jax.storage import table_format

# Name of the temporary file that a killed write leaves: .NAME.HOST-PID-RANDOM.tmp
LEFTOVER = re.compile(r'^\..+\.(?P<host>[^/]+)-(?P<pid>\d+)-[0-9a-f]{8}\.tmp$')
# A temporary file of another machine, where we cannot see whether its writer is alive, is removed at this age.
LEFTOVER_SECONDS = 86_400


class ResultsError(Exception):
    """A results directory or file that cannot be used; the message says which, and what to do."""


def make_folder(path: Any) -> epath.Path:
    """Makes a directory and its parents unless they exist, and returns it.

    Args:
        path: of the directory.

    Raises:
        ResultsError: it is a file, or cannot be written.
    """
    folder = epath.Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ResultsError(f'{str(path)!r}: must be a directory that can be written ({error.strerror})') from None
    return folder


def temporary_path(path: Any) -> Any:
    """A hidden name beside a file that says which process writes it, so that `remove_leftovers` can clean up.

    Args:
        path: of the file that is to be written.
    """
    owner = f'{socket.gethostname()}-{os.getpid()}'
    return path.parent / f'.{path.name}.{owner}-{uuid.uuid4().hex[:8]}.tmp'


def write_atomically(path: Any, write: Callable[[Any], Any]) -> None:
    """Calls `write` with a temporary path, then moves that file to `path` in one step.

    Args:
        path: of the file.
        write: writes the whole file to the path it is given.

    Raises:
        ResultsError: the disk is full or the directory cannot be written; an earlier file is left as it was.
    """
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


def write_text(path: Any, text: str) -> None:
    """Writes a text file, whole or not at all.

    Args:
        path: of the file.
        text: its content.
    """
    write_atomically(path, lambda temporary: temporary.write_text(text))


def write_json(path: Any, value: Any) -> None:
    """Writes a value as indented JSON, whole or not at all.

    Args:
        path: of the file.
        value: anything that JSON can hold.
    """
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + '\n')


def read_json(path: Any) -> dict[str, Any]:
    """Reads a JSON object as a dict.

    Args:
        path: of the file.

    Raises:
        ResultsError: the file is missing or cut short, is not JSON, or holds something other than an object.
    """
    try:
        value = json.loads(epath.Path(path).read_text(encoding='utf-8'))
        if not isinstance(value, dict):
            raise ValueError(f'a {type(value).__name__} where an object should be')
    except (ValueError, OSError, RecursionError) as error:  # the last of a thousand brackets
        raise ResultsError(f'{path} is damaged ({error}): restore it or delete it') from None
    return value


def write_table(path: Any, frame: pd.DataFrame, cell_id: str = '') -> None:
    """Writes a DataFrame as Parquet, whole or not at all.

    Its metadata hold our format, the role of each column, the cell, and a digest of all that and every value.

    Args:
        path: of the file.
        frame: the table.
        cell_id: whose rows or curves they are, '' if of no cell.

    Raises:
        ResultsError: as `write_atomically`.
    """
    table = table_format.labelled(pa.Table.from_pandas(frame, preserve_index=False), cell_id)

    def write(temporary: Any) -> None:
        with temporary.open('wb') as file:
            pq.write_table(table, file, write_page_checksum=True)

    write_atomically(path, write)


def read_table(path: Any, cell_id: str = '') -> pd.DataFrame:
    """Reads a table that `write_table` wrote, and adds to the table of columns what it does not know yet.

    Args:
        path: of the file.
        cell_id: whose rows or curves they should be, '' for anyone's.

    Raises:
        ResultsError: the file is cut short, is not Parquet, was not written by us, has another format, is of another
            cell, or a bit of it has changed.
    """
    try:
        with epath.Path(path).open('rb') as file:
            table = pq.ParquetFile(file, page_checksum_verification=True).read(use_threads=False)
        table_format.check(table, cell_id)
        frame = table.to_pandas()
        table_format.declare(table.schema)
    except table_format.ForeignError as error:
        raise ResultsError(f'{path} {error}') from None
    except Exception as error:  # pyarrow raises whatever a damaged length leads to
        raise damaged_table(path, error) from None
    return frame


def damaged_table(path: Any, reason: object) -> ResultsError:
    """The error of a table that cannot be used.

    Args:
        path: of the file.
        reason: what is wrong, an exception or words; the first line is kept.
    """
    line = (str(reason).splitlines() or [type(reason).__name__])[0][:300]
    return ResultsError(f'{path} is damaged ({line}): delete it, in rows/ and in curves/, and run its cell again')


def remove_leftovers(folder: Any) -> None:
    """Removes the temporary files of processes that are gone.

    Args:
        folder: where to look, not below it.
    """
    for file in folder.glob('.*.tmp'):
        found = LEFTOVER.match(file.name)
        if found is None:
            continue
        with contextlib.suppress(OSError):  # another worker may have removed it
            is_ours = found['host'] == socket.gethostname()
            is_old = time.time() - file.stat().mtime > LEFTOVER_SECONDS
            if (is_ours and not is_running(int(found['pid']))) or is_old:
                file.unlink(missing_ok=True)


def is_running(pid: int) -> bool:
    """Whether a process of this machine is alive.

    Args:
        pid: its number.
    """
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def digest(*values: Any) -> str:
    """Eight hexadecimal digits that depend on every value, for names of files.

    Args:
        *values: anything that JSON can hold.
    """
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()[:8]
