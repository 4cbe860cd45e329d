"""The rows and curves of one cell, checked as they are read: only tables such as we write ourselves are accepted."""

import functools
import os
import pathlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from qstr_jax import columns
from qstr_jax.storage import defaults, files, lane_keys

# The columns that say which lane a row is of, and how it ended.
REQUIRED = {'rows': ('model', 'task', 'learner', 'seed', 'task_seed', 'outcome'), 'curves': ('seed', 'samples')}
# Ids as `sweeps.cells` makes them; others are not checked.
_ID = re.compile(r'(?P<model>[a-z0-9_]+)-(?P<task>[a-z0-9_]+)-N(?P<seq_len>\d+)(-q(?P<sparsity>\d+))?-[0-9a-f]{8}')
_NOT_NEGATIVE = (
    'seed', 'task_seed', 'sample_size', 'seq_len', 'samples', 'num_samples', 'max_samples', 'samples_to_threshold',
    'num_parameters',
)  # fmt: skip


def read_rows(path: Any, lane_settings: Iterable[str] = ()) -> pd.DataFrame:
    """The rows of one cell; settings that are newer than the file are at their defaults."""
    return defaults.filled(_rows(path), lane_settings)


def read_curves(path: Any) -> pd.DataFrame:
    """The curves of one cell."""
    return _checked(path, 'curves')


def _rows(path: Any) -> pd.DataFrame:
    """Read again only where the file has changed: a step of a search asks for the rows of its cell eight times."""
    try:
        file = os.lstat(path)
    except OSError:  # the file is in an object store, or gone
        return _checked(path, 'rows')
    return _rows_of(path, file.st_ino, file.st_size, file.st_mtime_ns).copy(deep=False)


@functools.lru_cache(maxsize=64)
def _rows_of(path: Any, *_: int) -> pd.DataFrame:
    return _checked(path, 'rows')


def _checked(path: Any, kind: str) -> pd.DataFrame:
    """A table of the cell that its file is named after."""
    cell_id = pathlib.PurePath(path).stem
    frame = files.read_table(path, cell_id)
    try:
        check(frame, kind, cell_id)
    except Exception as error:  # a foreign column may hold anything, so pandas may raise anything
        raise files.damaged_table(path, error) from None
    return frame


def check(frame: pd.DataFrame, kind: str, cell_id: str) -> None:
    """Raises ValueError if something is wrong with a table of one cell."""
    _check_columns(frame, kind)
    if kind == 'rows':
        _check_rows(frame)
        for first in _named(frame).head(1).to_dict('records'):
            _check_owner(first, cell_id)


def check_all(frame: pd.DataFrame, kind: str) -> None:
    """Raises ValueError if something is wrong with a table of many cells, which has their ids in the column `cell`."""
    _check_columns(frame.drop(columns='cell'), kind)
    if kind == 'rows':
        _check_rows(frame, ['cell'])
        firsts = frame.drop_duplicates('cell')
        for cell_id, first in zip(firsts['cell'], _named(firsts).to_dict('records'), strict=True):
            _check_owner(first, cell_id)


def _check_columns(frame: pd.DataFrame, kind: str) -> None:
    """Raises ValueError for a column that is missing, is never stored, or whose values are not of its type."""
    missing = [name for name in REQUIRED[kind] if name not in frame.columns]
    if missing:
        raise ValueError(f'no column {missing[0]!r}')
    if derived := sorted(columns.DERIVED.intersection(frame.columns)):
        raise ValueError(f'{derived[0]}: is derived from rows and curves, never stored')
    for name, values in frame.items():
        if name in columns.OURS:
            _check_values(values, str(name))
        elif (
            columns.get(str(name)).role == 'lane' and not pd.api.types.is_numeric_dtype(values) and values.notna().any()
        ):
            raise ValueError(f'{name}: tells lanes apart, so it must be a number')


def _check_values(values: pd.Series, name: str) -> None:
    """Numbers, texts and bools where they should be; no seed, count or loss is negative."""
    kind, is_number = columns.get(name).type, pd.api.types.is_numeric_dtype(values.dtype)
    if kind == 'str' and not is_number:
        return
    # As an array, since a directory has thousands of columns to check and pandas takes its time over each.
    is_plain = not is_number or isinstance(values.dtype, np.dtype)  # plain arrays convert many times faster
    found = values.to_numpy() if is_plain else values.to_numpy(float, na_value=np.nan)
    found = found.astype(float) if is_number else found
    found = found[pd.notna(found)]
    if not found.size:
        return
    if not _is_of(kind, values.dtype, found):
        raise ValueError(f'{name}={str(values.dropna().iloc[0])[:40]!r}: not of the type {kind}')
    if kind in ('int', 'count') and not (np.isfinite(found) & (found == np.trunc(found))).all():
        raise ValueError(f'{name}: must be whole numbers')
    if (name in _NOT_NEGATIVE or name.endswith('_loss')) and found.min() < 0:
        raise ValueError(f'{name}={values.min()}: must be at least 0')


def _is_of(kind: str, dtype: Any, found: np.ndarray) -> bool:
    """Whether known values of a dtype are of a column's type; bools among missing ones are objects."""
    if kind == 'bool':
        return pd.api.types.is_bool_dtype(dtype) or all(isinstance(one, (bool, np.bool_)) for one in found)
    return pd.api.types.is_numeric_dtype(dtype) == (kind != 'str')


def _check_rows(rows: pd.DataFrame, cell: Sequence[str] = ()) -> None:
    """One row a lane, all of one cell, with an outcome and samples that agree with it; `cell` tells cells apart."""
    is_known = rows['outcome'].isin(columns.OUTCOMES)
    if not is_known.all():
        raise ValueError(f'outcome={rows["outcome"][~is_known].iloc[0]!r}: not one of {", ".join(columns.OUTCOMES)}')
    is_twice = rows.duplicated([*cell, *lane_keys.columns_of(rows)])
    if is_twice.any():
        raise ValueError(f'the lane {lane_keys.name_of(rows[is_twice].iloc[0])} is there twice')
    for name in columns.with_role(rows.columns, 'task', 'model', 'learner'):
        is_constant = len(rows) <= 1 or len(rows[name].unique()) <= 1
        if not is_constant and not (cell and _is_constant_in(rows, name, cell)):
            raise ValueError(f'{name}: differs between lanes of one cell')
    for more, less in (('max_samples', 'num_samples'), ('num_samples', 'samples_to_threshold')):
        if {more, less} <= set(rows.columns):
            is_wrong = rows[less].gt(rows[more]).fillna(False).astype(bool)
            if is_wrong.any():
                raise ValueError(f'{less}={rows[less][is_wrong].iloc[0]}: more than {more}')


def _is_constant_in(rows: pd.DataFrame, name: str, cell: Sequence[str]) -> bool:
    """Whether all lanes of each cell have the same value."""
    return len(rows[[*cell, name]].drop_duplicates()) == len(rows[list(cell)].drop_duplicates())


def _named(frame: pd.DataFrame) -> pd.DataFrame:
    """The columns whose values are part of the name of a cell's file."""
    return frame[[name for name in _ID.groupindex if name in frame.columns]]


def _check_owner(first: Mapping[Any, Any], cell_id: str) -> None:
    """Raises ValueError if a row is not of the model, task, N and q that the file's name says; `first` is the row."""
    named = _ID.fullmatch(cell_id)
    for name, value in (named.groupdict() if named else {}).items():
        found = first.get(name, value)
        if value is not None and value != (f'{found:.0f}' if isinstance(found, float) else str(found)):
            raise ValueError(f'{name}={found!r} in the file of the cell {cell_id}')
