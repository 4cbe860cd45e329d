"""Rows of another program, since code has been edited or the default of a setting has changed.

A cell whose rows are of this very code, as provenance says, is not traced. Otherwise the cell is traced, and
its fingerprint compared with that of its rows; so is a cell whose rows no record knows. Rows of other versions of JAX
or this package are taken as they are, and so are those from before there were fingerprints.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from absl import logging

from qstr_jax import columns, failures
from qstr_jax.settings import function_names, registry
from qstr_jax.storage import cell_columns, names, provenance, results, source_code
from qstr_jax.sweeps import claims, programs
from qstr_jax.sweeps.cells import Cell

# Cells that are run again leave their old rows here, in a folder for each run.
REPLACED = 'replaced'
# The columns that say what made a row.
_MADE = ('program', 'backend', 'lanes_per_batch')
# The column that says which code the columns of probes are from.
PROBES = 'probes'
HINT = (
    'run again with --refresh (in Python Options(refresh=True)), which keeps the old rows in '
    f'{REPLACED}/, or into another directory'
)


def check(workdir: Any, cells: Sequence[Cell], record: dict[str, Any], refresh: bool) -> None:
    """Raises ResultsError where rows of some cells are of another program; with `refresh` they are set aside."""
    stale, checked = _judged(workdir, cells, record)
    if checked:
        provenance.add_checked(workdir, record, checked)
    if stale and not refresh:
        raise _first_of(workdir, stale)
    for cell, _, judged in stale:
        set_aside(workdir, cell, judged, record['id'])


def text(workdir: Any, cells: Sequence[Cell], record: dict[str, Any]) -> str:
    """What `check` would raise, '' if nothing; nothing is written."""
    stale, _ = _judged(workdir, cells, record)
    return str(_first_of(workdir, stale)) if stale else ''


def _judged(
    workdir: Any, cells: Sequence[Cell], record: dict[str, Any]
) -> tuple[list[tuple[Cell, str, Any]], list[tuple[str, str]]]:
    """The cells that have rows of another program, why, and their `origin`; and what was found to be the same."""
    tables = _tables(workdir, cells)
    runs = provenance.by_program(provenance.load(workdir)) if any('program' in rows for _, rows in tables) else {}
    stale: list[tuple[Cell, str, Any]] = []
    checked: list[tuple[str, str]] = []
    for cell, rows in tables:
        reasons = [_settings(cell, rows)]
        for made in _doubtful(cell, rows, runs, record):
            reason = _reason(cell, made, runs, record)
            reasons.append(reason)
            checked += [] if reason else [(cell.id, made['program'])]
        if any(reasons):
            stale.append((cell, '; '.join(filter(None, reasons)), origin(cell, rows)))
    return stale, checked


def _first_of(workdir: Any, stale: Sequence[tuple[Cell, str, Any]]) -> results.ResultsError:
    """The error about some cells, with the reason of the first."""
    (cell, reason, _), *more = stale
    others = f', and of {len(more)} more cells' if more else ''
    return _error(workdir, cell.id + others, reason)


def check_added(workdir: Any, cell: Cell, made: dict[str, Any], record: dict[str, Any]) -> None:
    """Raises ResultsError if a cell has rows of another program, so that no others are added to them."""
    others = {
        other['program']
        for _, rows in _tables(workdir, [cell])
        for other in _made(rows)
        if all(other[name] == made[name] for name in ('backend', 'lanes_per_batch'))
    } - {made['program']}
    runs = provenance.by_program(provenance.load(workdir)) if others else {}
    for program in sorted(others):
        if _is_ours(made_by := runs.get((cell.id, program), []), record):
            raise _error(workdir, cell.id, _changes(cell, made_by, record))


def _error(workdir: Any, what: str, reason: str) -> results.ResultsError:
    return results.ResultsError(f'the rows of {what} in {workdir} are of another program ({reason}): {HINT}')


def _tables(workdir: Any, cells: Sequence[Cell]) -> list[tuple[Cell, dict[str, list]]]:
    """The rows of those cells that have some, column by column."""
    found = cell_columns.columns_of_each(workdir, {cell.id: cell.lanes[0]._fields for cell in cells}, (*_MADE, PROBES))
    return [(cell, found[cell.id]) for cell in cells if cell.id in found]


def _made(rows: Mapping[str, list]) -> list[dict[str, Any]]:
    """What made some rows: `program`, `backend` and `lanes_per_batch`, each combination once."""
    if not all(name in rows for name in _MADE):
        return []
    found = dict.fromkeys(zip(*(rows[name] for name in _MADE), strict=True))
    return [dict(zip(_MADE, one, strict=True)) for one in found if not any(map(pd.isna, one))]


def _settings(cell: Cell, rows: Mapping[str, list]) -> str:
    """The settings that are not what they were; ids do not tell, since they leave out settings at their default."""
    now, before = dict(cell.columns), {name: values[0] for name, values in rows.items()}
    shared = columns.with_role(now, 'task', 'model', 'learner')
    pairs = {name: (before.get(name), now[name]) for name in shared}
    differ = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
    given = {name: pair for name, pair in differ.items() if not any(value is None or pd.isna(value) for value in pair)}
    return ', '.join(f'{name} was {old} and is {new}' for name, (old, new) in given.items())


def of_these_versions(runs: Sequence[dict[str, Any]], record: dict[str, Any]) -> list[dict[str, Any]]:
    """The runs that had the same versions of JAX and of this package as the run of `record`."""
    return [run for run in runs if provenance.versions(run) == provenance.versions(record)]


def _is_ours(runs: Sequence[dict[str, Any]], record: dict[str, Any]) -> bool:
    """Whether these runs must agree with this one: one of them had the same versions, or no run was recorded."""
    return not runs or bool(of_these_versions(runs, record))


def _doubtful(cell: Cell, rows: dict[str, list], runs: dict, record: dict[str, Any]) -> list[dict[str, Any]]:
    """Fingerprint, backend and lanes per batch of the programs behind the rows that this code may no longer make."""
    made = _made(rows)
    if not made:
        return []
    given = vars(cell.problem.task).values()
    can_read = all(source_code.has_file(value) for value in given if callable(getattr(value, 'apply', value)))
    found = []
    for one in made:
        made_by = runs.get((cell.id, one['program']), [])
        known = of_these_versions(made_by, record)
        is_same = can_read and any(source_code.is_same(run.get('sources'), record['sources']) for run in known)
        found += [one] if _is_ours(made_by, record) and not is_same else []
    return found


def _reason(cell: Cell, made: dict[str, Any], runs: dict, record: dict[str, Any]) -> str:
    """Why rows are not of the program that this code makes; '' if they are."""
    logging.log_first_n(logging.INFO, 'the code may have changed since some rows were made: their cells are traced', 1)
    try:
        if programs.fingerprint(cell.problem, int(made['lanes_per_batch']), made['backend']) == made['program']:
            return ''
    except Exception as error:  # a user's code may raise anything
        return f'{failures.reason(error)}'
    return _changes(cell, runs.get((cell.id, made['program']), []), record)


def _changes(cell: Cell, runs: Sequence[dict[str, Any]], record: dict[str, Any]) -> str:
    """What has changed since the last of some runs: the code of what the cell uses, or else of any module."""
    if not runs:
        return 'no record says what made them'
    modules = source_code.changed(of_these_versions(runs, record)[-1].get('sources'), record['sources'])
    task = cell.problem.task
    parts = [getattr(getattr(task, name, None), 'name', None) for name in ('link', 'encoding')]
    used = [cell.model, task.name, cell.problem.learner.name, *parts]
    entries = [registry.entries()[name] for name in used if name in registry.entries()]
    owners = [(entry, function_names.module_of(entry.builder)) for entry in entries]
    named = [f'{entry.kind} {entry.name!r} of {owner}' for entry, owner in owners if owner in modules]
    return f'changed: {", ".join(named or modules) or "a function without a file"}'


def origin(cell: Cell, rows: Mapping[str, list]) -> tuple:
    """What tells rows of a cell from those that another worker may have put in their place."""
    made = {tuple(one.values()) for one in _made(rows)}
    return made, {text for text in rows.get(PROBES, ()) if isinstance(text, str)}, _settings(cell, rows)


def set_aside(workdir: Any, cell: Cell, judged: tuple, folder: str) -> None:
    """Moves rows, curves, parameters and checkpoints of a cell to a folder that nothing reads.

    If their `origin` says that they are no longer the rows that were judged, another worker has moved those already.
    """
    with claims.locked(workdir, f'{cell.id}-tables'):
        if [origin(cell, rows) for _, rows in _tables(workdir, [cell])] != [judged]:
            return
        move_aside(workdir, cell, folder)


def move_aside(workdir: Any, cell: Cell, folder: str) -> None:
    """As `set_aside`, without a look at the rows. The caller holds the lock of the cell's tables."""
    paths = [results.cell_path(workdir, kind, cell.id) for kind in ('rows', 'curves')]
    paths.append(names.inside(workdir, 'params', cell.id))
    paths += (workdir / 'checkpoints').glob(f'{names.check(cell.id)}-batch*')
    for path in paths:
        if path.exists():
            target = names.inside(workdir, REPLACED, folder, path.parent.name, path.name)
            target.parent.mkdir(parents=True, exist_ok=True)
            path.rename(target)
    logging.info('%s: runs again, the old rows are in %s', cell.id, workdir / REPLACED / folder)
