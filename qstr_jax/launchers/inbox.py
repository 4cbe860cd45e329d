"""Writes what workers send into the results directory: the one writer, so that no disk needs locks."""

import collections
import pathlib
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any

from etils import epath

from qstr_jax.storage import cell_tables, files, names, results

Files = Mapping[str, bytes]


class Inbox:
    """Writes files of workers into a results directory."""

    def __init__(self, workdir: Any) -> None:
        self._workdir = epath.Path(workdir)

    def checkpoint(self, batch: str) -> dict[str, bytes]:
        """The files of a batch's checkpoints."""
        folders = (self._workdir / 'checkpoints').glob(f'{names.check(batch)}-*')
        return {
            str(path.relative_to(self._workdir)): path.read_bytes() for folder in folders for path in _inside(folder)
        }

    def write(self, content: Files) -> None:
        """Writes what a worker sent, in its order; rows and curves are added to those of their cells."""
        checkpoints: dict[str, dict[str, bytes]] = collections.defaultdict(dict)
        for name, data in content.items():
            kind, *rest = name.split('/')
            if kind == 'checkpoints':
                checkpoints['/'.join(rest[:2])]['/'.join(rest[2:])] = data
            elif kind == 'rows':
                cell_id = rest[0].removesuffix('.parquet')
                self._add(cell_id, data, content[f'curves/{rest[0]}'])
            elif kind != 'curves':
                path = names.inside(self._workdir, *name.split('/'))
                files.make_folder(path.parent)
                files.write_bytes(path, data)
        for folder, inside in checkpoints.items():
            try:
                self._save(folder, inside)
            except OSError as error:
                raise results.ResultsError(f'cannot write {folder}: {error.strerror or error}') from error

    def _add(self, cell_id: str, rows: bytes, curves: bytes) -> None:
        """Adds rows and curves to those of a cell."""
        with tempfile.TemporaryDirectory(prefix='qstr_jax_inbox_') as folder:
            path = pathlib.Path(folder) / f'{cell_id}.parquet'  # tables are checked as those of the cell
            path.write_bytes(rows)
            new_rows = cell_tables.read_rows(path)
            path.write_bytes(curves)
            new_curves = cell_tables.read_curves(path)
        results.add(self._workdir, cell_id, new_rows, new_curves)

    def _save(self, folder: str, inside: Files) -> None:
        """Writes a checkpoint, which appears whole, then removes older ones of its batch."""
        path = names.inside(self._workdir, 'checkpoints', *folder.split('/'))
        part = path.parent / f'{path.name}.part'
        for name, data in inside.items():
            file = names.inside(part, *name.split('/'))
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
        if path.exists():
            path.rmtree()
        part.rename(path)
        for other in path.parent.iterdir():
            if other.name != path.name:
                other.rmtree()

    def end(self, batch: str) -> None:
        """Removes the checkpoints of a finished batch."""
        for folder in (self._workdir / 'checkpoints').glob(f'{names.check(batch)}-*'):
            folder.rmtree()

    def remove(self, name: str) -> None:
        """Removes a file, if it is there."""
        names.inside(self._workdir, *name.split('/')).unlink(missing_ok=True)


def _inside(folder: epath.Path) -> Iterator[epath.Path]:
    """All files in a folder; `epath` has no `rglob`."""
    for path in folder.iterdir():
        if path.is_dir():
            yield from _inside(path)
        else:
            yield path
