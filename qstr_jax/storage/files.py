"""Files that appear whole or not at all, and errors that name the file. Nothing here is pickled."""

import contextlib
import hashlib
import json
import os
import re
import socket
import time
import uuid

import pyarrow as pa
import pyarrow.parquet as pq
from etils import epath

from qstr_jax import columns

FORMAT = b'2'
FORMAT_KEY = b'qstr_jax_format'
ROLES_KEY = b'qstr_jax_columns'

# What a killed write leaves: .NAME.HOST-PID-RANDOM.tmp
LEFTOVER = re.compile(r'^\..+\.(?P<host>[^/]+)-(?P<pid>\d+)-[0-9a-f]{8}\.tmp$')
# A leftover of another machine is removed at this age.
LEFTOVER_SECONDS = 86_400


class ResultsError(Exception):
    """A results directory or file that cannot be used; the message says which, and what to do."""


def make_folder(path):
    """Makes a directory, and those above it, unless it is there; returns it.

    Raises:
        ResultsError: it is a file, or not writable.
    """
    folder = epath.Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ResultsError(f'{str(path)!r}: must be a directory that can be written ({error.strerror})') from None
    return folder


def temporary_path(path):
    """A name beside `path` that tells who writes there, for `remove_leftovers`."""
    owner = f'{socket.gethostname()}-{os.getpid()}'
    return path.parent / f'.{path.name}.{owner}-{uuid.uuid4().hex[:8]}.tmp'


def write_atomically(path, write):
    """Calls `write(temporary_path)` and moves the file to `path` in one step.

    Raises:
        ResultsError: the disk is full, or the place not writable; what was there before is intact.
    """
    path = epath.Path(path)
    temporary = temporary_path(path)
    try:
        write(temporary)
        if '://' not in str(path):  # a machine that loses power must not leave an empty file either
            with temporary.open('rb') as file:
                os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise ResultsError(f'cannot write {path}: {error.strerror or error}') from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_text(path, text):
    """Writes a text, atomically."""
    write_atomically(path, lambda temporary: temporary.write_text(text))


def write_json(path, value):
    """Writes `value` as indented JSON, atomically."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + '\n')


def read_json(path):
    """Reads a JSON object, as a dict.

    Raises:
        ResultsError: the file is cut short, is not JSON, or holds something else.
    """
    try:
        value = json.loads(epath.Path(path).read_text())
        if not isinstance(value, dict):
            raise ValueError(f'a {type(value).__name__} where an object should be')
    except (ValueError, OSError) as error:
        raise ResultsError(f'{path} is damaged ({error}): restore it or delete it') from None
    return value


def write_table(path, frame):
    """Writes a DataFrame as Parquet, atomically, with the format's version and the roles of its columns in it.

    Args:
        path: of the file.
        frame: the table.

    Raises:
        ResultsError: as `write_atomically`.
    """
    table = pa.Table.from_pandas(frame, preserve_index=False)
    roles = json.dumps(columns.roles_of(frame.columns)).encode()
    own = {FORMAT_KEY: FORMAT, ROLES_KEY: roles}
    table = table.replace_schema_metadata({**(table.schema.metadata or {}), **own})

    def write(temporary):
        with temporary.open('wb') as file:
            pq.write_table(table, file)

    write_atomically(path, write)


def read_table(path):
    """Reads what `write_table` wrote, and declares the columns that the table of columns does not know yet.

    Args:
        path: of the file.

    Raises:
        ResultsError: cut short, not Parquet, not ours, or of another version.
    """
    try:
        with epath.Path(path).open('rb') as file:
            table = pq.read_table(file)
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise ResultsError(
            f'{path} is damaged ({reason}): delete it, in rows/ and in curves/, and run its cell again'
        ) from None
    metadata = table.schema.metadata or {}
    found = metadata.get(FORMAT_KEY)
    if found is None:
        raise ResultsError(f'{path} was not written by qstr_jax: move it elsewhere')
    if found != FORMAT:
        wrote = f'{path} has format {found.decode(errors="replace")}, this version reads {FORMAT.decode()}'
        raise ResultsError(f'{wrote}: version 0.1 of qstr_jax reads it' if found == b'1' else wrote)
    _declare(path, metadata.get(ROLES_KEY), table.column_names)
    return table.to_pandas()


def _declare(path, roles, names):
    try:
        for name, role in json.loads(roles).items():
            if name in names:
                columns.declare(name, role)
    except (TypeError, ValueError, AttributeError) as error:
        raise ResultsError(f'{path} is damaged (roles of its columns: {error}): restore or delete it') from None


def remove_leftovers(folder):
    """Removes temporary files of processes that are gone."""
    for file in folder.glob('.*.tmp'):
        found = LEFTOVER.match(file.name)
        if found is None:
            continue
        with contextlib.suppress(OSError):  # another worker was quicker
            is_ours = found['host'] == socket.gethostname()
            is_old = time.time() - file.stat().mtime > LEFTOVER_SECONDS
            if (is_ours and not is_running(int(found['pid']))) or is_old:
                file.unlink(missing_ok=True)


def is_running(pid):
    """Whether a process of this machine is alive."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def digest(*values):
    """Eight hex digits of plain values, for file names."""
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()[:8]
