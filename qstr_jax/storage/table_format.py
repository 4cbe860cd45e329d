"""What the metadata of a table's file say: our format, the role of each column, the cell, and a digest of all of it."""

import hashlib
import json

import pyarrow as pa

from qstr_jax import columns

FORMAT = b'2'
FORMAT_KEY = b'qstr_jax_format'
ROLES_KEY = b'qstr_jax_columns'
CELL_KEY = b'qstr_jax_cell'
DIGEST_KEY = b'qstr_jax_sha256'


class ForeignError(ValueError):
    """A sound table that does not belong where it was read; the message continues after the file's name."""


def labelled(table: pa.Table, cell_id: str) -> pa.Table:
    """A table with our metadata."""
    roles = json.dumps({name: columns.get(name).role for name in table.column_names}).encode()
    own = {FORMAT_KEY: FORMAT, ROLES_KEY: roles} | ({CELL_KEY: cell_id.encode()} if cell_id else {})
    table = table.replace_schema_metadata({**(table.schema.metadata or {}), **own})
    return table.replace_schema_metadata({**table.schema.metadata, DIGEST_KEY: digest(table)})


def check(table: pa.Table, cell_id: str) -> None:
    """Checks whose table it is, and that no bit of it has changed since it was written."""
    metadata = table.schema.metadata or {}
    found = metadata.get(FORMAT_KEY)
    if found is None:
        raise ForeignError('was not written by qstr_jax: move it elsewhere')
    if found != FORMAT:
        raise ForeignError(f'has format {found.decode(errors="replace")}, this version reads 2')
    if DIGEST_KEY not in metadata:
        raise ValueError('it has no digest')
    if metadata[DIGEST_KEY] != digest(table):
        raise ValueError('its content is not what was written')
    owner = metadata.get(CELL_KEY, b'').decode(errors='replace')
    if cell_id and owner and owner != cell_id:
        raise ForeignError(f'holds the cell {owner}: move it elsewhere')


def digest(table: pa.Table) -> bytes:
    """SHA-256 of names, types, metadata and every value, in hexadecimal digits; it does not depend on the encoding."""
    state = hashlib.sha256()
    metadata = {key: value for key, value in (table.schema.metadata or {}).items() if key != DIGEST_KEY}
    parts = [part for key in sorted(metadata) for part in (key, metadata[key])]
    for name, column in zip(table.column_names, table.columns, strict=True):
        # Parquet has a name of its own for what a list is made of.
        kind = f'list of {column.type.value_type}' if pa.types.is_list(column.type) else column.type
        parts += [f'{name} {kind}'.encode(), *_bytes_of(column)]
    for part in parts:  # with its length, so that no two tables look alike
        state.update(len(part).to_bytes(8, 'little'))
        state.update(part)
    return state.hexdigest().encode()


def _bytes_of(column: pa.ChunkedArray) -> list[bytes]:
    """A column's values: numbers as they are in memory, after a mask of the missing ones; all else as JSON."""
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        return [json.dumps(column.to_pylist(), default=str).encode()]
    return [column.is_null().to_numpy().tobytes(), column.fill_null(0).to_numpy().tobytes()]


def declare(schema: pa.Schema) -> None:
    """Declares the columns of a file that have a role and that nobody declared; all others are measures anyway.

    A plugin's column has one role: that of what is registered, or of the files that were read before.
    """
    try:
        given = json.loads(schema.metadata[ROLES_KEY]).items()
        own = {name: role for name, role in given if name in schema.names and role != 'measure'}
        for name in [name for name in own if columns.is_declared(name) and name not in columns.OURS]:
            if own[name] in columns.ROLES and own[name] != (known := columns.get(name).role):
                raise ForeignError(
                    f'has {name!r} as a column of the {own[name]}, elsewhere it is of the {known}: read it in a '
                    'process of its own'
                )
        for name, role in own.items():
            columns.declare(name, role, _type_of(schema.field(name).type))
    except ForeignError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f'roles of its columns: {error}') from None


def _type_of(kind: pa.DataType) -> str:
    """A Parquet column's type in the words of `columns.Column`."""
    if pa.types.is_boolean(kind):
        return 'bool'
    if pa.types.is_integer(kind):
        return 'int'
    return 'float' if pa.types.is_floating(kind) else 'str'
