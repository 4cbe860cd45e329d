"""Several results directories as one."""

import contextlib
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd
from etils import epath

from qstr_jax import failures
from qstr_jax.storage import (
    cell_tables,
    checkpoint,
    defaults,
    files,
    lane_keys,
    locks,
    names,
    provenance,
    records,
    results,
)
from qstr_jax.storage.files import ResultsError

# Columns that may differ: another program may compute the same, and another search may find the same values.
UNTOLD = {'program', 'tuned_grid', 'tuned_samples'}
_NOTHING = 'nothing was merged'


class _Cell(NamedTuple):
    """What some directories have of a cell: its tables, and by name of lane where its trained parameters are."""

    rows: pd.DataFrame
    curves: pd.DataFrame
    params: dict[str, Any]


class _Joined(NamedTuple):
    """What some directories have together, checked before any of it is written."""

    sweeps: list[dict[str, Any]]
    cells: dict[str, _Cell]
    plan: dict[str, Any]
    runs: dict[str, dict[str, Any]]  # records of provenance by name of file
    selection: '_Joined | None'


def merge(sources: Iterable[Any], destination: Any) -> pd.DataFrame:
    """Merges results directories into `destination`, new or one of them; returns its rows.

    A lane that several directories hold is taken from `destination`, or else from the first of them. Rows of one lane,
    backend and `lanes_per_batch` must be equal; others may differ by rounding, which gives a warning. Trained
    parameters that were kept, and runs that chose settings, in `selection/`, are merged too; checkpoints stay where
    they are. All is read and checked before anything is written. Other merges into the destination wait for this one;
    no worker may write to it meanwhile.

    Args:
        sources: the results directories.
        destination: a directory without results, or one of the sources, which then gets what the others have.

    Raises:
        ResultsError: a directory that cannot be used, or rows that do not belong together.
    """
    target = _path('destination', destination)
    found = {os.path.realpath(source): source for source in _paths(sources)}
    own = found.pop(os.path.realpath(target), None)
    with contextlib.ExitStack() as held:
        if own is None:
            _check_free(target)
            joined = _read([*found.values()], target)
            held.enter_context(locks.locked(results.open_workdir(target), 'config'))
            _check_free(target)  # another merge may have made it meanwhile
        else:
            results.read_config(target)
            held.enter_context(locks.locked(results.open_workdir(target), 'config'))
            joined = _read([target, *found.values()], target)
        _write(joined, target)
    return results.load(target, strict=True)


def _paths(sources: Any) -> list[epath.Path]:
    """The results directories that a caller names."""
    if isinstance(sources, (str, os.PathLike)) or not isinstance(sources, Iterable):
        raise ResultsError(f'sources={sources!r:.80}: give a list of results directories')
    if not (paths := [_path('sources', source) for source in sources]):
        raise ResultsError('sources: give at least one results directory')
    return paths


def _path(argument: str, value: Any) -> epath.Path:
    """The path of a directory that a caller names."""
    what = f'{argument}={value!r:.80}'
    if not isinstance(value, (str, os.PathLike)) or not str(value) or '\0' in str(value):
        raise ResultsError(f'{what}: give the path of a directory')
    return names.reachable(what, value)


def _check_free(target: Any) -> None:
    """Raises ResultsError if a directory that is no source has results."""
    if any((folder / 'config.json').exists() for folder in (target, target / results.SELECTION)):
        raise ResultsError(f'destination={str(target)!r} holds results: name it among the sources too')


def _read(sources: Sequence[Any], target: Any) -> _Joined:
    """What some directories have together; those that come first win."""
    sweeps: list[dict[str, Any]] = []
    for source in sources:
        for sweep in results.read_config(source):
            results.check_tuned_alike(target, sweeps, sweep)
            sweeps.append(sweep)
    cells = {}
    for name in sorted({path.name for source in sources for path in names.listed(source / 'rows', '.parquet', True)}):
        cell_id = name.removesuffix('.parquet')
        with _errors_of(cell_id, f': {_NOTHING}'):
            cells[cell_id] = _merge_cell(cell_id, [s for s in sources if (s / 'rows' / name).exists()])
    plan: dict[str, Any] = {}
    for source in sources:
        for cell_id, entry in records.read_plan(source).items():
            plan[cell_id] = joined(plan.get(cell_id), entry)
    runs: dict[str, dict[str, Any]] = {}
    for path in [path for source in sources for path in names.listed(source / 'provenance', '.json', True)]:
        runs[names.check(path.name)] = provenance.joined(runs.get(path.name), records.read(path, 'run'))
    _check_programs(cells, runs.values())
    parts = [names.inside(source, results.SELECTION) for source in sources]
    choosing = [part for part in parts if (part / 'config.json').exists()]
    return _Joined(sweeps, cells, plan, runs, _read(choosing, target / results.SELECTION) if choosing else None)


def _write(found: _Joined, target: Any) -> None:
    """Writes what is not there yet, rows last: a row is the sign that all else of its lane is there."""
    for sweep in found.sweeps:
        results.add_sweep(target, sweep)
    files.write_json(target / 'plan.json', found.plan)
    for name, run in found.runs.items():
        path = names.inside(target, 'provenance', name)
        if not path.exists() or records.read(path, 'run') != run:
            files.write_json(path, run)
    for cell_id, cell in found.cells.items():
        with locks.locked(target, f'{cell_id}-tables'), _errors_of(cell_id):
            for lane, path in cell.params.items():
                if path != (copied := names.inside(target, 'params', cell_id, lane)):
                    checkpoint.copy(path, copied)
            results.add(target, cell_id, cell.rows, cell.curves)
    if found.selection:
        selection = results.open_workdir(names.inside(target, results.SELECTION))
        with locks.locked(selection, 'config'):
            _write(found.selection, selection)


@contextlib.contextmanager
def _errors_of(cell_id: str, end: str = '') -> Iterator[None]:
    """Makes any error about a cell a line; a foreign column may hold anything, so pandas may raise anything."""
    try:
        yield
    except ResultsError:
        raise
    except Exception as error:
        raise ResultsError(f'{cell_id}: {failures.reason(error)}{end}') from None


def joined(known: dict[str, Any] | None, entry: dict[str, Any]) -> dict[str, Any]:
    """A cell's entry of plan.json with the lanes of two entries."""
    lanes = dict.fromkeys([*(known or {}).get('lanes', []), *entry['lanes']])
    return {'columns': entry['columns'], 'lanes': list(lanes)}


def _merge_cell(cell_id: str, sources: Sequence[Any]) -> _Cell:
    """One cell, each lane from the first source that has it."""
    paths = [results.cell_path(source, 'rows', cell_id) for source in sources]
    lanes = list(dict.fromkeys(one for path in paths for one in lane_keys.columns_of(cell_tables.read_rows(path))))
    rows, *others = (cell_tables.read_rows(path, lanes) for path in paths)
    curves, params = _curves_of(rows, sources[0], cell_id), _params_of(rows, sources[0], cell_id)
    for source, other in zip(sources[1:], others, strict=True):
        rows, other = defaults.shared(rows, other), defaults.shared(other, rows)
        if newer := set(lane_keys.columns_of(rows)) ^ set(lane_keys.columns_of(other)):
            raise ResultsError(f'{cell_id}: older rows lack {min(newer)}: import qstr_jax.sweeps and the plugins first')
        rounded = _rounded(cell_id, rows, other, source)
        theirs = _params_of(other, source, cell_id)
        params = {lane: path for lane, path in theirs.items() if lane not in rounded} | params
        known = lane_keys.found_in(rows)
        more = _curves_of(other, source, cell_id)
        rows, curves = (
            pd.concat([mine, lane_keys.without(theirs, known)], ignore_index=True)
            for mine, theirs in ((rows, other), (curves, more))
        )
    _check_chosen(cell_id, rows)
    _check_tables(cell_id, rows, curves)
    return _Cell(lane_keys.sort(rows), lane_keys.sort(curves, 'samples'), params)


def _check_tables(cell_id: str, rows: pd.DataFrame, curves: pd.DataFrame) -> None:
    """Raises ResultsError if no reader would take the merged tables, though it takes those of each source."""
    try:
        cell_tables.check(rows, 'rows', cell_id)
        cell_tables.check(curves, 'curves', cell_id)
    except ValueError as error:
        hint = 'run its lanes of one directory again with --refresh, then merge'
        raise ResultsError(f'{cell_id}: {error}: {hint}; {_NOTHING}') from None


def _curves_of(rows: pd.DataFrame, source: Any, cell_id: str) -> pd.DataFrame:
    """The curves of the lanes that have rows; a killed write leaves others."""
    curves = defaults.filled_curves(cell_tables.read_curves(results.cell_path(source, 'curves', cell_id)), rows)
    return lane_keys.without(curves, lane_keys.found_in(curves) - lane_keys.found_in(rows))


def _params_of(rows: pd.DataFrame, source: Any, cell_id: str) -> dict[str, Any]:
    """Where the kept parameters of the lanes that have rows are, by name of lane."""
    folder = names.inside(source, 'params', cell_id)
    there = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    return {lane: names.inside(folder, lane) for lane in lane_keys.names_of(rows) if lane in there}


def _check_programs(cells: Mapping[str, _Cell], runs: Iterable[dict[str, Any]]) -> None:
    """Raises ResultsError where rows of a cell are of several programs of the same versions: edited code."""
    made_by = provenance.by_program(runs)
    made = ['backend', 'lanes_per_batch', 'program']
    for cell_id, (rows, *_) in cells.items():
        known = rows[made].dropna().drop_duplicates() if {*made} <= {*rows.columns} else pd.DataFrame(columns=made)
        seen: dict[tuple, str] = {}
        for backend, size, program in known.itertuples(index=False, name=None):
            for version in map(provenance.versions, made_by.get((cell_id, program), ())):
                if seen.setdefault((backend, size, version), program) != program:
                    raise ResultsError(f'{cell_id}: rows of two programs, since code was edited: {_NOTHING}')
        programs = known['program'].unique()
        if len(programs) > 1 and not _is_of_one_code([made_by.get((cell_id, program), ()) for program in programs]):
            raise ResultsError(
                f'{cell_id}: rows of two programs, and no record says that the same code makes both: give the command '
                f'of each directory again, which checks its rows, then merge; {_NOTHING}'
            )


def _is_of_one_code(made_by: Sequence[Sequence[dict[str, Any]]]) -> bool:
    """Whether programs, each with its runs, agree where their runs had the same versions."""
    groups: list[set[tuple]] = []  # the codes that make the same
    for runs in made_by:
        codes = set(map(provenance.code, runs))
        same = [group for group in groups if group & codes]
        groups = [*(group for group in groups if not group & codes), codes.union(*same)]
    versions = [version for group in groups for version in {version for version, _ in group}]
    return all(groups) and len(versions) == len(set(versions))


def is_same(a: Any, b: Any) -> bool:
    """Whether two values of a table are equal, both missing, or lists of such."""
    a, b = (list(one.items()) if isinstance(one, dict) else one for one in (a, b))
    if pd.api.types.is_list_like(a) or pd.api.types.is_list_like(b):
        are_lists = pd.api.types.is_list_like(a) and pd.api.types.is_list_like(b)
        return are_lists and len(a) == len(b) and all(map(is_same, a, b))
    return bool(pd.isna(a) and pd.isna(b) if pd.isna(a) or pd.isna(b) else a == b)


def _check_chosen(cell_id: str, rows: pd.DataFrame) -> None:
    """Raises ResultsError where lanes of one point were tuned to different values."""
    tuned = rows['tuned'].dropna().unique() if 'tuned' in rows.columns else ()
    chosen = [setting for names in tuned for setting in names.split() if setting in lane_keys.columns_of(rows)]
    point = [setting for setting in lane_keys.columns_of(rows) if setting not in ('seed', 'task_seed', *chosen)]
    for setting in chosen:
        if (rows.groupby(['tuned', *point])[setting].nunique() > 1).any():
            what = f'{cell_id}: lanes of one point were tuned to different values of {setting}'
            raise ResultsError(f'{what}: {_NOTHING}')


def _rounded(cell_id: str, rows: pd.DataFrame, other: pd.DataFrame, source: Any) -> set[str]:
    """The names of the lanes whose rows differ by rounding.

    Raises ResultsError where two rows of a lane differ though they were computed in the same way.
    """
    found = set()
    both = rows.merge(other, on=lane_keys.columns_of(rows), suffixes=('', ' there'))
    for _, row in both.iterrows():
        pairs = {c: (row[c], row[f'{c} there']) for c in rows.columns if f'{c} there' in both.columns}
        different = [c for c, (a, b) in pairs.items() if not is_same(a, b)]
        if not set(different) - UNTOLD:
            continue
        found.add(lane := lane_keys.name_of(row))
        what = f'{cell_id}, {lane}: {", ".join(different)} in {source}'
        if {'backend', 'lanes_per_batch'} & set(different):
            warnings.warn(f'{what} differ by backend or lanes_per_batch: the first is kept', stacklevel=5)
        else:
            raise ResultsError(f'{what} contradict the same lane elsewhere: {_NOTHING}')
    return found
