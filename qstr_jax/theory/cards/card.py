"""A card: one statement, the points that were measured for it, its lines, and checks that can fail."""

import dataclasses
import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import pandas as pd

from qstr_jax.theory.cards.check import Check

POINT_COLUMNS = ('panel', 'series', 'x', 'y', 'error')
LINE_COLUMNS = ('panel', 'label', 'of', 'x', 'y')


class Panel(NamedTuple):
    """One panel of a card's figure.

    Attributes:
        title: above the panel.
        x: label of the x-axis.
        y: label of the y-axis.
        log_x: whether the x-axis is logarithmic.
        log_y: whether the y-axis is logarithmic.
        join: whether points of a series are joined by lines.
    """

    title: str
    x: str
    y: str
    log_x: bool = False
    log_y: bool = False
    join: bool = True


@dataclasses.dataclass(frozen=True)
class Card:
    """What one statement says, and what was measured.

    Attributes:
        name: the name of the card and of its files.
        statement: where the statement stands in the paper.
        claim: what it says, in one line.
        setting: what was run, in one line.
        panels: the panels of the figure.
        points: measured points, columns panel (its number), series, x, y, error (standard error or NaN).
        lines: the theorem's lines, columns panel, label, of (the series whose colour they take, or ''), x, y.
        checks: the comparisons that make up the verdict; at least one.
        finding: further numbers, and what the card cannot show.
    """

    name: str
    statement: str
    claim: str
    setting: str
    panels: tuple[Panel, ...]
    points: pd.DataFrame
    lines: pd.DataFrame
    checks: tuple[Check, ...]
    finding: str = ''

    def __post_init__(self) -> None:
        for frame, columns in ((self.points, POINT_COLUMNS), (self.lines, LINE_COLUMNS)):
            missing = [column for column in columns if column not in frame]
            if missing:
                raise ValueError(f'card {self.name}: columns missing: {", ".join(missing)}')
        if not self.checks:
            raise ValueError(f'card {self.name}: no checks, so it can have no verdict')

    @property
    def holds(self) -> bool:
        """Whether every check passes."""
        return all(check.holds for check in self.checks)

    @property
    def conclusion(self) -> str:
        """The verdict in a few words."""
        failed = [check for check in self.checks if not check.holds]
        return 'holds' if self.holds else f'DOES NOT HOLD, {len(failed)} of {len(self.checks)} checks fail'

    @property
    def verdict(self) -> str:
        """The conclusion, followed by all checks with their numbers."""
        return '; '.join([self.conclusion, *map(str, self.checks)])


def point(panel: int, series: str, x: float, y: float, error: float = math.nan, **more: Any) -> dict[str, Any]:
    """A row of `Card.points`; `more` are further columns."""
    return {'panel': panel, 'series': series, 'x': float(x), 'y': float(y), 'error': float(error), **more}


def line(panel: int, label: str, x: Iterable[float], y: Iterable[float], of: str = '') -> list[dict[str, Any]]:
    """Rows of `Card.lines` for one line."""
    return [{'panel': panel, 'label': label, 'of': of, 'x': float(a), 'y': float(b)} for a, b in zip(x, y, strict=True)]
