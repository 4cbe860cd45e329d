"""Tuned sweeps: at each point the best values of some settings are found on selection seeds and reported on others.

Selection lanes are rows of a results directory of their own, `selection/` in the sweep's directory, and every step of
the search follows from rows. So a tuned sweep can be stopped and continued like any other, and several workers on one
directory share the lanes of each step.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

from qstr_jax import columns
from qstr_jax.storage import cell_columns, cell_tables, results
from qstr_jax.storage.results import SELECTION
from qstr_jax.sweeps.cells import Cell
from qstr_jax.sweeps.search import Failed, Found, Search, points_of, samples_of
from qstr_jax.sweeps.session import Session
from qstr_jax.sweeps.sweep import Sweep
from qstr_jax.sweeps.tune import Tune

# What tells the lanes of a point apart.
SEEDS = ('seed', 'task_seed')


def share(cells: Sequence[Cell], index: int, count: int) -> tuple[Cell, ...]:
    """The cells of one of `count` shares: whole chains."""
    mine = {_chain(chain[0]) for chain in chains(cells)[index::count]}
    return tuple(cell for cell in cells if _chain(cell) in mine)


def chains(cells: Sequence[Cell]) -> list[list[Cell]]:
    """The cells of each model and learner, whose searches build on one another."""
    found: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        found.setdefault(_chain(cell), []).append(cell)
    return list(found.values())


def _chain(cell: Cell) -> tuple[str, str]:
    return cell.model, cell.problem.learner.name


def rivals(cells: Sequence[Cell], tune: Tune) -> list[list[Cell]]:
    """The cells that race one another: those that differ only in tuned settings.

    With some tuned values other settings of the learner have no effect, such as the steps of a warm-up with a constant
    schedule; rivals may differ in those too.
    """
    asked = [tuple(one for one in cell.columns if columns.get(one[0]).role != 'learner') for cell in cells]
    fitted = [{name: value for name, value in cell.columns if name not in tune.names} for cell in cells]
    shared: dict[tuple, set[str]] = {}
    keys = [(cell.problem.learner.name, point) for cell, point in zip(cells, asked, strict=True)]
    for key, settings in zip(keys, fitted, strict=True):
        shared[key] = shared.get(key, settings.keys()) & settings.keys()
    found: dict[tuple, list[Cell]] = {}
    for cell, key, settings in zip(cells, keys, fitted, strict=True):
        found.setdefault((key, *(settings[name] for name in sorted(shared[key]))), []).append(cell)
    for group in found.values():
        _check_rivals(group, tune)
    return list(found.values())


def _check_rivals(group: Sequence[Cell], tune: Tune) -> None:
    """Raises ValueError if rivals have the same tuned values: they differ in an axis that only some values use."""
    choices = [tuple(one for one in cell.columns if one[0] in tune.names) for cell in group]
    names = [{name for name, _ in cell.columns} for cell in group]
    odd = sorted(set[str]().union(*names) - names[0].intersection(*names[1:]) - set(tune.names))
    if odd and len(group) > len(set(choices)):
        raise ValueError(f'{odd[0]}: only some of the tuned values look at it, so it cannot be an axis')


def num_reported(sweep: Sweep, cells: Sequence[Cell]) -> int:
    """The number of rows that a sweep leaves: among cells that race one another only the winner is reported."""
    groups = rivals(cells, sweep.tune) if sweep.tune else [[cell] for cell in cells]
    return sum(len(group[0].lanes) for group in groups)


def run(session: Session, workdir: Any, cells: Sequence[Cell]) -> list[str]:
    """Runs a tuned sweep's cells in order, and returns the ids of those that failed.

    A search starts at what won in the cell before it of the same model and learner.
    """
    tune = session.sweep.tune
    assert tune is not None
    selection = session.open(workdir / SELECTION, cells)
    before: dict[tuple, Found] = {}
    failed, ended = [], set[tuple[str, str]]()
    groups = [[Search(session, selection, cell) for cell in group] for group in rivals(cells, tune)]
    num_points, number = sum(len(points_of(group[0].cell)) for group in groups), 0
    for group in groups:
        if _chain(group[0].cell) in ended:
            continue
        for points in zip(*(points_of(search.cell) for search in group), strict=True):
            number += 1
            session.stage = f'point {number} of {num_points}'
            try:
                search, lanes, found, tried = _race(group, points, before)
            except Failed as error:
                failed.append(str(error))
                continue
            says = {
                'tuned': ' '.join(tune.names),
                'tuned_grid': ' '.join(values for values, _ in tried),
                'tuned_samples': ' '.join(f'{samples:g}' for _, samples in tried),
                'tuned_seeds': ' '.join(map(str, tune.seeds)),
            }
            chosen = dataclasses.replace(search.cell, lanes=tuple(search.at(lane, found.places) for lane in lanes))
            kept = _reported(workdir, [one.cell for one in group], lanes, tune)
            chosen, says = (kept[0], {name: kept[1][name] for name in says}) if kept else (chosen, says)
            failed += session.run(workdir, [chosen], size_of=search.size_of, extra_columns=says)
        if session.until_none_learns and _none_learns(workdir, group):
            ended.add(_chain(group[0].cell))
            session.progress.say(f'{group[0].cell.id}: no lane learns, so longer prompts are left out')
    return sorted(set(failed))


def _none_learns(workdir: Any, group: Sequence[Search]) -> bool:
    """Whether cells that race one another have rows, but none of a lane that learns."""
    paths = [results.cell_path(workdir, 'rows', search.cell.id) for search in group]
    rows = [row for path in paths if path.exists() for row in cell_tables.read_rows(path).to_dict('records')]
    return bool(rows) and math.isinf(min(samples_of(rows)))


def _reported(
    workdir: Any, cells: Sequence[Cell], lanes: Sequence[Any], tune: Tune
) -> tuple[Cell, Mapping[str, Any]] | None:
    """The cell of a finished point, with its lanes at the chosen values, and one of its rows; None if it has no rows.

    A search that begins elsewhere, as after a shorter N was added, may find other values, but a point has one choice.
    """
    names = [name for name in lanes[0]._fields if name not in (*tune.names, *SEEDS)]
    for cell in cells:
        found = cell_columns.columns_of(workdir, cell.id, lanes[0]._fields)
        for values in zip(*found.values(), strict=True):
            row = dict(zip(found, values, strict=True))
            if all(row[name] == getattr(lanes[0], name) for name in names):
                values_of_row = {name: row[name] for name in tune.names if name in lanes[0]._fields}
                return dataclasses.replace(cell, lanes=tuple(lane._replace(**values_of_row) for lane in lanes)), row
    return None


def _race(
    group: Sequence[Search], points: Sequence[list[Any]], before: dict[tuple, Found]
) -> tuple[Search, list[Any], Found, list[tuple[str, float]]]:
    """The search that wins one point, with its lanes and what it found, and all that was tried.

    A Failed has the id of the cell.
    """
    ends: list[tuple[Search, list[Any], Found]] = []
    for search, lanes in zip(group, points, strict=True):
        chain = (*_chain(search.cell), *search.choices)
        rival = min((found.samples for *_, found in ends), default=math.inf)
        before[chain] = search.run(lanes[0], before.get(chain), rival)
        ends.append((search, lanes, before[chain]))
    tried = [one for search, _, found in ends for one in search.tried(found)]
    return *min(ends, key=lambda end: end[2].score), tried
