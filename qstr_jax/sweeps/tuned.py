"""Tuned sweeps: at each point the best values of some settings are found on selection seeds and reported on others.

Selection lanes are rows of a results directory of their own, `selection/` in the sweep's directory, and every step of
the search follows from rows. So a tuned sweep can be stopped and continued like any other, and several workers on one
directory share the lanes of each step.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

from qstr_jax.sweeps import lane_batches
from qstr_jax.sweeps.cells import Cell
from qstr_jax.sweeps.search import Failed, Found, Search
from qstr_jax.sweeps.session import Session

SELECTION = 'selection'


def share(cells: Sequence[Cell], index: int, count: int) -> tuple[Cell, ...]:
    """The cells of one of `count` shares: all cells of a model and learner, whose searches build on one another.

    Args:
        cells: all cells of a sweep.
        index: number of the share, from 0.
        count: number of shares.

    Raises:
        ValueError: `index` is not in 0..count − 1.
    """
    lane_batches.check_share(index, count)
    chains = list(dict.fromkeys(map(_chain, cells)))
    return tuple(cell for cell in cells if chains.index(_chain(cell)) % count == index)


def _chain(cell: Cell) -> tuple[str, str]:
    return cell.model, cell.problem.learner.name


def run(session: Session, workdir: Any, cells: Sequence[Cell]) -> list[str]:
    """Runs a tuned sweep.

    Args:
        session: of the sweep.
        workdir: the results directory, as `Session.open` returned it.
        cells: the cells to run, in the order in which they are tuned. A search starts at what won in the cell before
            it of the same model and learner.

    Returns:
        The ids of the cells that failed.
    """
    selection = session.open(workdir / SELECTION, cells)
    before: dict[tuple[str, str], Found] = {}
    failed = []
    searches = [Search(session, selection, cell) for cell in cells]
    num_points, number = sum(len(search.points()) for search in searches), 0
    for cell, search in zip(cells, searches, strict=True):
        for lanes in search.points():
            number += 1
            session.progress.begin(f'point {number} of {num_points}')
            try:
                found = search.run(lanes[0], before.get(_chain(cell)))
            except Failed:
                failed.append(cell.id)
                continue
            before[_chain(cell)] = found
            chosen = dataclasses.replace(cell, lanes=tuple(search.at(lane, found.places) for lane in lanes))
            failed += session.run(workdir, [chosen], size_of=search.size_of, notes=search.notes(found))
    return sorted(set(failed))
