"""All rows of a directory in one file, and all curves in another: opening ten thousand files takes minutes.

    compact/rows.parquet, compact/curves.parquet   copies, with the size and time of the file of each cell

The files of the cells are what counts: a cell whose file has changed since it was copied is read from its file, and the
copies can be deleted. Small directories and object stores have no copies.
"""

import contextlib
import dataclasses
import functools
import os
import pathlib
from collections.abc import Iterable
from typing import Any

import pandas as pd
import pyarrow as pa

from qstr_jax.storage import cell_tables, files, names

# A new copy is made once this many cells are not in the old one.
FEWEST = 256
_SIZE, _TIME = 'file_size', 'file_time_ns'


@dataclasses.dataclass
class Copy:
    """What is in one of the files."""

    frame: pd.DataFrame  # rows or curves, with the column `cell`
    stamps: dict[str, tuple[int, int]]  # size and time of the file of each cell
    spans: dict[str, tuple[int, int]]  # the first line of each cell, and the one after its last

    def columns(self, cell_id: str, names: Iterable[str] | None = None) -> dict[str, list]:
        """The columns of one cell that are not empty, or those of some names."""
        start, end = self.spans[cell_id]
        wanted = self._lists if names is None else [name for name in names if name in self._lists]
        found = {name: self._lists[name][start:end] for name in wanted}
        return {name: values for name, values in found.items() if any(value is not None for value in values)}

    def firsts(self, cell_id: str) -> dict[str, list]:
        """The first value of each column of one cell, where it has one."""
        start, _ = self.spans[cell_id]
        return {name: [values[start]] for name, values in self._lists.items() if values[start] is not None}

    @functools.cached_property
    def _lists(self) -> dict[str, list]:
        """Whole columns, in which None is what is missing: slices of a list are quick, those of a frame are not."""
        whole = self.frame.drop(columns='cell')
        return {str(name): values.astype(object).where(values.notna(), None).tolist() for name, values in whole.items()}


EMPTY = Copy(pd.DataFrame(), {}, {})


def stamp(path: Any) -> tuple[int, int]:
    """Size and time of a file, which change when it is written."""
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns


def read(workdir: Any, kind: str) -> Copy:
    """The copy of a directory's 'rows' or 'curves'; an empty one if it has none that can be read."""
    if '://' in str(workdir):
        return EMPTY
    path = pathlib.Path(names.inside(workdir, 'compact', f'{kind}.parquet'))
    return _read(str(path), stamp(path)) if path.exists() else EMPTY


@functools.lru_cache(maxsize=2)
def _read(path: str, _: tuple[int, int]) -> Copy:
    try:
        frame = files.read_table(path)
        changes = frame['cell'].ne(frame['cell'].shift()).to_numpy().nonzero()[0]
        first = frame.iloc[changes]
        ends = [*changes[1:].tolist(), len(frame)]
        stamps = dict(zip(first['cell'], zip(first[_SIZE], first[_TIME], strict=True), strict=True))
        spans = dict(zip(first['cell'], zip(changes.tolist(), ends, strict=True), strict=True))
        frame = frame.drop(columns=[_SIZE, _TIME])
        cell_tables.check_all(frame, pathlib.PurePath(path).stem)
        return Copy(frame, stamps, spans)
    except Exception:  # whoever wrote it; it is a copy, so nothing is lost
        return EMPTY


def fresh(copy: Copy, paths: Iterable[Any]) -> set[str]:
    """The cells whose files are as they were copied."""
    known = (path for path in paths if path.stem in copy.stamps)
    return {cell_id for cell_id, one in stamps(known).items() if one == copy.stamps[cell_id]}


def stamps(paths: Iterable[Any]) -> dict[str, tuple[int, int]]:
    """The stamps of files, by cell; a file that another worker has just moved away has none."""
    found = {}
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            found[path.stem] = stamp(path)
    return found


def is_worthwhile(workdir: Any, now: dict[str, tuple[int, int]]) -> bool:
    """Whether enough cells have rows that the copy lacks; without a copy of the curves it lacks all of them."""
    before = read(workdir, 'rows').stamps
    before = before if names.inside(workdir, 'compact', 'curves.parquet').exists() else {}
    return sum(before.get(cell) != one for cell, one in now.items()) >= FEWEST


def write(workdir: Any, kind: str, frame: pd.DataFrame, now: dict[str, tuple[int, int]]) -> None:
    """Writes a copy; no file can hold a setting that is a number in one cell and a text in another."""
    sizes, times = ({cell: pair[i] for cell, pair in now.items()} for i in range(2))
    frame = frame.assign(**{_SIZE: frame['cell'].map(sizes), _TIME: frame['cell'].map(times)})
    path = names.inside(workdir, 'compact', f'{kind}.parquet')
    path.parent.mkdir(exist_ok=True)
    with contextlib.suppress(pa.ArrowException):
        files.write_table(path, frame)
