"""Tables of results on disk: one directory for any number of sweeps, one Parquet file per cell.

    config.json              the sweeps that were run into the directory
    provenance/RUN.json      versions, device and seconds of each run that added to it
    rows/CELL.parquet        one row per lane
    curves/CELL.parquet      one row per lane and check
    compact/                 copies of all rows and all curves, where there are many cells, see `compact`
    params/CELL/LANE/        trained parameters, where they were asked for
    checkpoints/, progress/, errors/, locks/, plan.json   of runs that are going on
    replaced/RUN/            the old rows, curves and parameters of cells that `--refresh` ran again
    selection/               a results directory of its own, of the runs that chose a tuned sweep's settings
    cards/CARD/              the same, of a card of a theorem: its card.json, its figure, and what it trains

Files appear whole or not at all. Nothing is pickled; a file that is not ours is an error that names it.
"""

import pathlib
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pandas as pd
from etils import epath

from qstr_jax import columns
from qstr_jax.storage import cell_tables, compact, defaults, files, lane_keys, names, records
from qstr_jax.storage.files import ResultsError

FOLDERS = ('rows', 'curves', 'provenance', 'checkpoints', 'progress', 'errors', 'locks')
FORMAT = 2
# Folders that recursive searches skip: runs that choose settings, and runs that cards of theorems are made of.
SELECTION, CARDS = 'selection', 'cards'


class FormatError(ResultsError):
    """A directory that another version of qstr_jax wrote."""


def cell_path(workdir: Any, kind: str, cell_id: str) -> epath.Path:
    """Where a cell's 'rows' or 'curves' are."""
    return names.inside(workdir, kind, f'{cell_id}.parquet')


def open_workdir(workdir: Any) -> epath.Path:
    """Makes the directories of a sweep, removes what killed writes left, and returns its path."""
    path = epath.Path(workdir)
    names.check_text(path)
    for kind in (*FOLDERS, 'params'):
        names.inside(path, kind)
    with files.writing(f'workdir={str(workdir)!r}'):
        for kind in FOLDERS:
            (path / kind).mkdir(parents=True, exist_ok=True)
        probe = files.temporary_path(path / 'writable')
        probe.write_text('')
        probe.unlink()
    for folder in (path, *(path / kind for kind in FOLDERS)):
        files.remove_leftovers(folder)
    return path


def read_config(workdir: Any) -> list[dict[str, Any]]:
    """The sweeps that were run into a directory."""
    path = epath.Path(workdir) / 'config.json'
    if not path.exists():
        is_entry = (path.parent / 'entry.json').exists()
        hint = '; it is an entry of the board: read its rows.parquet with pandas' if is_entry else ''
        raise ResultsError(f'{str(workdir)!r} is not a results directory: no config.json in it{hint}')
    config = records.read(path, 'any')
    if config.get('format') != FORMAT:
        found = f'format {str(config["format"])[:40]}' if 'format' in config else 'no format'
        raise FormatError(f'{path} has {found}, this version reads {FORMAT}')
    return list(records.read(path, 'config')['sweeps'])


def add_sweep(workdir: Any, sweep: dict[str, Any]) -> None:
    """Adds a sweep to config.json, unless it is there. The caller holds the directory's lock."""
    path = epath.Path(workdir) / 'config.json'
    sweeps = read_config(workdir) if path.exists() else []
    if sweep not in sweeps:
        files.write_json(path, {'format': FORMAT, 'sweeps': [*sweeps, sweep]})


def check_tuned_alike(workdir: Any, known: Sequence[dict[str, Any]], sweep: dict[str, Any]) -> None:
    """Raises ResultsError for a sweep that was tuned in another way than those that are known in a directory.

    No setting would tell such lanes apart.
    """
    for other in known:
        is_of_lanes = all({'settings', 'models'} <= one.keys() for one in (other, sweep))  # no training loops outside
        if is_of_lanes and other.get('tune') != sweep.get('tune') and not _are_apart(sweep, other):
            before = 'not tuned' if other.get('tune') is None else f'tuned with {other["tune"]}'
            raise ResultsError(
                f'rows in {str(workdir)!r} were {before}, unlike those of this sweep: use another directory'
            )


def _are_apart(*both: dict[str, Any]) -> bool:
    """Whether two sweeps tune the same settings and have no point in common."""
    names = {frozenset(sweep.get('tune') or ()) for sweep in both}
    one, other = ({'models': sweep['models'], **sweep['settings']} for sweep in both)
    models = {*map(str, one['models']), *map(str, other['models'])}
    # A setting of one model says nothing of the points of another.
    shared = [name for name in one.keys() & other.keys() if len(models) == 1 or name.partition('.')[0] not in models]
    return len(names) == 1 and any({*map(str, one[name])}.isdisjoint(map(str, other[name])) for name in shared)


def add(workdir: Any, cell_id: str, rows: pd.DataFrame, curves: pd.DataFrame, is_foreign: bool = False) -> int:
    """Adds lanes to a cell's tables, sorted so that files do not depend on who came first; returns how many are new.

    A lane that has a row already keeps it and its curve. A curve without a row, as a killed write leaves it, is
    replaced. The caller holds the cell's lock. Foreign lanes are checked first, so that no file is written that nobody
    could read.
    """
    rows_path, curves_path = (cell_path(workdir, kind, cell_id) for kind in ('rows', 'curves'))
    num_added = len(rows)
    lanes = lane_keys.columns_of(rows)
    known_rows = pd.DataFrame()
    if rows_path.exists():
        known_rows = cell_tables.read_rows(rows_path, lanes)
        old = defaults.shared(known_rows, rows)
        known = lane_keys.found_in(old)
        rows, curves = lane_keys.without(rows, known), lane_keys.without(curves, known)
        if rows.empty:
            return 0
        num_added, rows = len(rows), pd.concat([old, rows], ignore_index=True)
    if len(known_rows) and not curves_path.exists():
        raise _missing(curves_path)
    if curves_path.exists():
        old = defaults.filled_curves(cell_tables.read_curves(curves_path), known_rows)
        curves = pd.concat([lane_keys.without(old, lane_keys.found_in(curves)), curves], ignore_index=True)
    if is_foreign:
        cell_tables.check(rows, 'rows', cell_id)
        cell_tables.check(curves, 'curves', cell_id)
    # Curves first: a row is the sign that its lane is complete.
    files.write_table(curves_path, lane_keys.sort(curves, 'samples'), cell_id)
    files.write_table(rows_path, lane_keys.sort(rows), cell_id)
    return num_added


def find(workdir: Any) -> list[pathlib.Path]:
    """The results directories at or below a directory, sorted; empty if there are none.

    Those in a folder named `selection` below it are left out: they hold the runs that chose a tuned sweep's settings;
    so are those in `cards`, of which cards of theorems are made.
    """
    workdir = pathlib.Path(workdir)
    names.check_text(workdir)
    if not workdir.is_dir():
        raise ResultsError(f'{str(workdir)!r}: no such directory')
    found = sorted(folder for folder, inside in names.searched(workdir) if 'config.json' in inside)
    return [folder for folder in found if not {SELECTION, CARDS} & set(folder.relative_to(workdir).parts)]


def load(workdir: Any, strict: bool = False) -> pd.DataFrame:
    """All rows of a directory, one per lane, with the cell's id in the column `cell`; empty if there are none yet.

    Args:
        workdir: the results directory.
        strict: raise for a damaged file instead of leaving it out with a warning.

    Raises:
        ResultsError: not a results directory (or a damaged file, if `strict`).
    """
    rows = _load(workdir, 'rows', strict)
    _check_curves_have_rows(workdir)
    return rows


def load_all(workdirs: Iterable[Any], read: Callable[[Any], pd.DataFrame] = load) -> pd.DataFrame:
    """All rows of the results directories at or below some directories, with the directory in the column `folder`."""
    frames = []
    for folder in dict.fromkeys(folder for workdir in workdirs for folder in find(workdir)):
        try:
            frames.append(read(folder).assign(folder=str(folder)))
        except ResultsError as error:
            warnings.warn(f'left out: {error}', stacklevel=2)
    frames = [frame for frame in frames if len(frame)]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def load_curves(workdir: Any, strict: bool = False, rows: pd.DataFrame | None = None) -> pd.DataFrame:
    """All curves of a directory, one line per lane and check, with the settings of their cells from the rows.

    Args:
        workdir: the results directory.
        strict: raise for a damaged file instead of leaving it out with a warning.
        rows: the directory's, if they are read already.

    Raises:
        ResultsError: not a results directory (or a damaged file, if `strict`).
    """
    curves = _load(workdir, 'curves', strict)
    rows = load(workdir, strict) if rows is None else rows
    _check_beside(workdir, rows, curves, strict)
    if curves.empty or rows.empty:
        return pd.DataFrame()
    settings = ['cell', *columns.with_role(rows.columns, 'task', 'model', 'learner')]
    constant = rows[settings].drop_duplicates('cell')
    return curves.merge(constant, on='cell', how='inner', validate='many_to_one')


def _check_beside(workdir: Any, rows: pd.DataFrame, curves: pd.DataFrame, strict: bool) -> None:
    """Raises or warns for the cells that have lanes without curves; a damaged file of curves was named before."""
    if rows.empty:
        return
    curves = curves if len(curves) else rows[:0]
    bare, known = _without_curves(rows, curves), set(curves['cell'])
    for cell_id in sorted({*bare, *rows['cell']} - (known - {*bare})):
        path = cell_path(workdir, 'curves', cell_id)
        if cell_id in known or not path.exists():
            error = _missing(path)
            if cell_id in known:
                hint = 'delete both and run the cell again'
                error = ResultsError(f'{path} lacks {bare.count(cell_id)} lanes of its rows: {hint}')
            if strict:
                raise error
            warnings.warn(str(error), stacklevel=3)


def _without_curves(rows: pd.DataFrame, curves: pd.DataFrame) -> list[str]:
    """The cell of each lane that has a row and no curve, by the columns of lanes that the cell's curves have.

    A lane may diverge before it has any.
    """
    rows = rows[rows['outcome'] != 'diverged']
    names = [name for name in lane_keys.columns_of(rows) if name in curves]
    asked, there = (frame[['cell', *names]].drop_duplicates() for frame in (rows, curves))
    has = there.groupby('cell')[names].count().gt(0).reindex(asked['cell'], fill_value=False)
    asked[names] = asked[names].where(has.to_numpy())
    keys, known = (frame.astype(object).where(frame.notna(), None) for frame in (asked, there))
    found = set(known.itertuples(index=False, name=None))
    return [key[0] for key in keys.itertuples(index=False, name=None) if key not in found]


def _missing(path: Any) -> ResultsError:
    return ResultsError(f'{path} is missing beside its rows: delete those and run the cell again')


def _check_curves_have_rows(workdir: Any) -> None:
    """Warns of cells whose rows are gone; a killed write leaves such too, and its cell is run again."""
    with_rows = {path.name for path in names.listed(epath.Path(workdir) / 'rows', '.parquet')}
    for path in names.listed(epath.Path(workdir) / 'curves', '.parquet'):
        if path.name not in with_rows:
            warnings.warn(
                f'{path} has no rows beside it, which were deleted or never written: run its cell again', stacklevel=3
            )


def _load(workdir: Any, kind: str, strict: bool) -> pd.DataFrame:
    read_config(workdir)
    paths = names.listed(epath.Path(workdir) / kind, '.parquet')
    copy = compact.read(workdir, kind)
    fresh = compact.fresh(copy, paths) if copy.stamps else set()
    frames = [copy.frame[copy.frame['cell'].isin(fresh)]] if fresh else []
    for path in paths:
        cell_id = path.stem
        if cell_id in fresh:
            continue
        try:
            frame = cell_tables.read_rows(path) if kind == 'rows' else cell_tables.read_curves(path)
            frames.append(frame.assign(cell=cell_id))
        except ResultsError as error:
            if strict:
                raise
            warnings.warn(f'left out: {error}', stacklevel=3)
    # A column that only some cells have is missing for the others.
    joined = pd.concat(frames, ignore_index=True).copy() if frames else pd.DataFrame()  # copied into few blocks
    if fresh and len(frames) > 1:  # in the order of the files, as if each had been read
        joined = joined.sort_values('cell', key=lambda cells: cells + '.parquet', kind='stable', ignore_index=True)
    return joined


def make_compact(workdir: Any) -> None:
    """Copies the tables of many cells into one file each, from which `load` reads them in seconds."""
    if '://' in str(workdir) or not compact.is_worthwhile(workdir, _stamps(workdir, 'rows')):
        return
    for kind in 'curves', 'rows':  # Where there is a copy of the rows, there is one of the curves.
        stamps = _stamps(workdir, kind)
        frame = _load(workdir, kind, strict=False)
        known = set(frame['cell']) if len(frame) else set()
        compact.write(workdir, kind, frame, {cell: one for cell, one in stamps.items() if cell in known})


def _stamps(workdir: Any, kind: str) -> dict[str, tuple[int, int]]:
    return compact.stamps(names.listed(epath.Path(workdir) / kind, '.parquet'))
