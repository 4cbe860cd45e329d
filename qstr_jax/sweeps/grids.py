"""The search for the best values of some settings on a grid: which values to try next.

A place is the number of a value on its grid. Values are better the fewer samples they need. Where not all lanes reach
the threshold, values of which more lanes do are better, and of equally many those with the least error.
"""

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

# The most steps past either end of a grid, or to each side of a ladder's default.
MOST_STEPS = 8

Places = tuple[int, ...]


class Score(NamedTuple):
    """How good some values are; smaller is better."""

    samples: float  # of the slowest selection lane, infinite if one did not reach
    missed: int  # how many selection lanes did not reach; those that were not run after the first had missed count
    error: float  # the largest of their last errors, of those that the threshold is on


@dataclasses.dataclass(frozen=True)
class Grid:
    """The values of one setting, ascending, with room to grow at both ends."""

    values: tuple[float, ...]  # as they were given; () for a ladder of 1 and 3 times powers of ten
    default: float  # where the search starts
    name: str = ''  # of the setting, for errors

    def __post_init__(self) -> None:
        if not self.values and not self.default > 0:
            raise ValueError(f'tune.{self.name}=auto: its default is {self.default:g}; give several values')

    @property
    def start(self) -> int:
        """The place that is nearest to the default."""
        if not self.values:
            return min(range(-60, 60), key=lambda place: abs(math.log(_rung(place) / self.default)))
        return min(range(len(self.values)), key=lambda place: abs(self.values[place] - self.default))

    @property
    def given(self) -> tuple[int, ...]:
        """The places of the given values."""
        return tuple(range(len(self.values)))

    def has(self, place: int) -> bool:
        """Whether there is a value at a place."""
        if not self.values:
            return abs(place - self.start) <= MOST_STEPS
        if place in self.given:
            return True
        first, second = self.values[:2]
        is_near = -MOST_STEPS <= place < len(self.values) + MOST_STEPS
        return is_near and first > 0 and second > 0

    def value(self, place: int) -> float:
        """The value at a place; beyond the given values the last ratio goes on."""
        if not self.values:
            return _rung(place)
        if place in self.given:
            return self.values[place]
        if place < 0:
            return _rounded(self.values[0] * (self.values[0] / self.values[1]) ** -place)
        beyond = place - len(self.values) + 1
        return _rounded(self.values[-1] * (self.values[-1] / self.values[-2]) ** beyond)


def _rung(place: int) -> float:
    """1 and 3 times powers of ten: …, 0.3, 1, 3, 10, …; 1 has the place 0."""
    return float(f'{3 if place % 2 else 1}e{place // 2}')


def _rounded(value: float) -> float:
    return float(f'{value:.3g}')


def best(scores: Mapping[Places, Score]) -> Places:
    """The places with the best score; of equal ones the first."""
    return min(scores, key=lambda places: (scores[places], places))


def following(grids: Sequence[Grid], scores: Mapping[Places, Score], start: Places) -> list[Places]:
    """The places to try next: the start, then all given values from the nearest on, then the neighbours of the best."""
    if start not in scores:
        return [start]
    given = itertools.product(*(grid.given or (place,) for grid, place in zip(grids, start, strict=True)))
    left = [places for places in given if places not in scores]
    if left:
        nearest = min(_distance(places, start) for places in left)
        return [places for places in left if _distance(places, start) == nearest]
    return [places for places in _neighbours(grids, best(scores)) if places not in scores]


def _distance(one: Places, other: Places) -> int:
    return sum(abs(a - b) for a, b in zip(one, other, strict=True))


def _neighbours(grids: Sequence[Grid], places: Places) -> list[Places]:
    """The places one step away in one setting."""
    moves = [(i, places[i] + step) for i in range(len(grids)) for step in (1, -1)]
    return [(*places[:i], place, *places[i + 1 :]) for i, place in moves if grids[i].has(place)]
