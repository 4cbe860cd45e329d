"""The search for the best values of one cell's tuned settings, by running selection lanes.

Values are judged by the slowest of their selection lanes, so a rate at which some lanes never learn does not win while
all lanes learn at another; where they do at none, the rate wins at which most lanes learn.
Lanes are stopped (`stop_after`) where it is certain that they cannot win: at `margin` × the samples of the best values
so far. Before any values have won they are stopped at a first limit, and at ever longer ones while none is enough.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from qstr_jax.storage import cell_tables, results
from qstr_jax.sweeps import grids
from qstr_jax.sweeps.cells import Cell
from qstr_jax.sweeps.grids import Grid, Places, Score
from qstr_jax.sweeps.session import Session
from qstr_jax.sweeps.tune import Tune

# The first limit is GROWTH times the samples of what won before, or this share of the budget.
GROWTH = 4
FIRST_SHARE = 1 / 256


class Failed(Exception):
    """A step of the search could not be run; the cell's error is recorded."""


class Found(NamedTuple):
    """What a search has found."""

    places: Places  # of the best values
    scores: Mapping[Places, Score]  # of all values, in the order in which they were tried

    @property
    def score(self) -> Score:
        """The score of the best values."""
        return self.scores[self.places]

    @property
    def samples(self) -> float:
        """Samples of the slowest selection lane of the best values, infinite if one missed."""
        return self.score.samples


def points_of(cell: Cell) -> list[list[Any]]:
    """The lanes of a cell by point: lanes that differ only in their seeds."""
    found: dict[tuple, list[Any]] = {}
    for lane in cell.lanes:
        found.setdefault(tuple(lane._replace(seed=0, task_seed=0)), []).append(lane)
    return list(found.values())


def lanes_at_once(tune: Tune, cell: Cell) -> int:
    """The most lanes of a cell that any step of a search has, so that one program serves them all."""
    return max(tune.num_seeds, *map(len, points_of(cell)))


class Search:
    """The search for the best values of one cell."""

    def __init__(self, session: Session, selection: Any, cell: Cell) -> None:
        assert session.sweep.tune is not None
        self._tune: Tune = session.sweep.tune
        self._session, self._selection, self.cell = session, selection, cell
        self._grids: tuple[Grid, ...] = self._tune.grids_of(cell.problem.learner)

    def size_of(self, cell: Cell) -> int:
        """The number of lanes in a batch: the same at every step, so that one program serves them all."""
        return self._session.size_for(cell, lanes_at_once(self._tune, self.cell))

    def at(self, lane: Any, places: Places) -> Any:
        """A lane with the values at some places."""
        return lane._replace(
            **{name: value for (name, _), value in zip(self._tune.grids, self._values(places), strict=True)}
        )

    def _values(self, places: Places) -> tuple[float, ...]:
        return tuple(grid.value(place) for grid, place in zip(self._grids, places, strict=True))

    def run(self, lane: Any, before: Found | None, rival: float = math.inf) -> Found:
        """Tries values until no neighbour of the best is better."""
        start = before.places if before else tuple(grid.start for grid in self._grids)
        limit = self._first_limit(lane, before)
        last = self._limit(self._tune.margin * rival) if 'stop_after' in lane._fields else 0
        while True:
            limit = min((one for one in (limit, last) if one), default=0)
            found = self._climb(lane, start, limit)
            if math.isfinite(found.samples) or limit == last:
                return found
            start, limit = found.places, self._limit(GROWTH * limit)

    def _first_limit(self, lane: Any, before: Found | None) -> int:
        """Samples after which the lanes of a search are stopped at first; 0 where lanes cannot be stopped."""
        if 'stop_after' not in lane._fields:
            return 0
        known = before.samples if before else math.inf
        budget = self.cell.problem.learner.max_samples
        return self._limit(GROWTH * known if math.isfinite(known) else FIRST_SHARE * budget)

    def _limit(self, samples: float) -> int:
        """The limit as `stop_after`: 0, no limit, if it is not below the budget."""
        return 0 if samples >= self.cell.problem.learner.max_samples else math.ceil(samples)

    def _climb(self, lane: Any, start: Places, limit: int) -> Found:
        """The search with one limit; once some values have won, their samples limit all others."""
        scores: dict[Places, Score] = {}
        while following := grids.following(self._grids, scores, start):
            best = min(scores.values()).samples if scores else math.inf
            limits = (limit, self._limit(self._tune.margin * best))
            scores |= self._scores(lane, following, min((one for one in limits if one), default=0))
        return Found(places=grids.best(scores), scores=scores)

    def _scores(self, lane: Any, tried: Sequence[Places], limit: int) -> dict[Places, Score]:
        """The scores of some values, with lanes that are stopped at a limit.

        The first seed runs before the others: values that it rules out need no further seeds.
        """
        raced = {'stop_after': limit} if 'stop_after' in lane._fields else {}
        seeds = self._tune.seeds
        known: dict[Places, list[Any]] = {places: [] for places in tried}
        for some in (seeds[:1], seeds[1:]):
            left = [places for places in tried if math.isfinite(max(samples_of(known[places]), default=0))]
            lanes = {
                places: [self.at(lane, places)._replace(seed=seed, task_seed=seed, **raced) for seed in some]
                for places in left
            }
            for places, rows in self._run(lanes).items():
                known[places] += rows
        return {places: _score(rows, self.cell.problem.learner, len(seeds)) for places, rows in known.items()}

    def _run(self, lanes: Mapping[Places, list[Any]]) -> dict[Places, list[Mapping[str, Any]]]:
        """The rows of some selection lanes, by the places of their values."""
        wanted = tuple(one for several in lanes.values() for one in several)
        known = self._reached(wanted)
        # Lanes with a row under this very limit stay, so that batches keep their numbers, and so their checkpoints.
        missing = tuple(one for one in wanted if one not in known or known[one]['stop_after'] == one.stop_after)
        if missing:
            step = dataclasses.replace(self.cell, lanes=missing)
            if self._session.run(self._selection, [step], size_of=self.size_of):
                raise Failed(self.cell.id)
            by_lane = {tuple(row[name] for name in missing[0]._fields): row for row in self._rows()}
            known |= {one: by_lane[tuple(one)] for one in missing}
        return {places: [known[one] for one in several] for places, several in lanes.items()}

    def _rows(self) -> list[dict[Any, Any]]:
        """All selection rows of the cell."""
        path = results.cell_path(self._selection, 'rows', self.cell.id)
        if not path.exists():
            return []
        return cell_tables.read_rows(path, self.cell.lanes[0]._fields).to_dict('records')

    def _reached(self, lanes: Sequence[Any]) -> dict[Any, Mapping[str, Any]]:
        """The rows of lanes that reached the threshold under another limit; up to its end a limit changes nothing.

        For a search for n* there are none, since it tries its limit as an n.
        """
        if self.cell.problem.learner.is_search or 'stop_after' not in self.cell.lanes[0]._fields:
            return {}
        names = [name for name in self.cell.lanes[0]._fields if name != 'stop_after']
        rows = [row for row in self._rows() if row['outcome'] == 'reached']
        by_rest = {tuple(row[name] for name in names): row for row in rows}
        found = {one: by_rest.get(tuple(getattr(one, name) for name in names)) for one in lanes}
        return {
            one: row
            for one, row in found.items()
            if row is not None and (one.stop_after == 0 or row['samples_to_threshold'] <= one.stop_after)
        }

    @property
    def choices(self) -> tuple[tuple[str, Any], ...]:
        """The tuned settings that are static, with this cell's values."""
        return tuple((name, getattr(self.cell.problem.learner, name)) for name, _ in self._tune.choices)

    def tried(self, found: Found) -> list[tuple[str, float]]:
        """What was tried: the values of each setting in the order of their names, and their samples."""
        traced = [name for name, _ in self._tune.grids]
        lines = []
        for places in sorted(found.scores):
            values = {**dict(self.choices), **dict(zip(traced, self._values(places), strict=True))}
            lines.append(('/'.join(_word(values[name]) for name in self._tune.names), found.scores[places].samples))
        return lines


def _word(value: Any) -> str:
    return f'{value:g}' if isinstance(value, (int, float)) else str(value).replace(' ', '')


def _score(rows: Sequence[Mapping[str, Any]], learner: Any, num_seeds: int) -> Score:
    """The score of the slowest of some selection lanes; its error is the one that the threshold is on.

    A fit on n prompts is judged by its validation loss alone.
    """
    if 'validation_loss' in rows[0]:
        errors = [float(row['validation_loss']) for row in rows]
    elif learner.threshold_on == 'error_rate':
        errors = [1 - float(row['accuracy']) for row in rows]
    else:
        errors = [float(row['test_loss']) for row in rows]
    if any(row['outcome'] == 'diverged' for row in rows):  # whose accuracy may be finite
        errors.append(math.inf)
    samples = samples_of(rows)
    return Score(
        samples=max(samples),
        missed=num_seeds - sum(map(math.isfinite, samples)),
        error=float(np.nan_to_num(np.max(errors), nan=np.inf)),
    )


def samples_of(rows: Sequence[Mapping[str, Any]]) -> list[float]:
    """The samples of some selection lanes, infinite where one missed."""
    found = {'fitted': lambda row: 0.0, 'censored_below': lambda row: row['min_samples'],
             'reached': lambda row: row['samples_to_threshold']}  # fmt: skip
    return [float(found[row['outcome']](row)) if row['outcome'] in found else math.inf for row in rows]
