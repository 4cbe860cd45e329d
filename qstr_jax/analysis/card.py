"""A card: one statement, the points that were measured for it, its lines, and checks that can fail; as JSON too."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from qstr_jax.analysis.check import Check

POINT_COLUMNS = ('panel', 'series', 'x', 'y', 'error')
LINE_COLUMNS = ('panel', 'label', 'of', 'x', 'y')


class Panel(NamedTuple):
    """One panel of a card's figure; where `join` is true, lines join the points of a series."""

    title: str
    x: str
    y: str
    log_x: bool = False
    log_y: bool = False
    join: bool = True


@dataclasses.dataclass(frozen=True)
class Card:
    """What one statement says, and what was measured."""

    statement: str  # where the statement stands in the paper
    claim: str  # what it says, in one line
    setting: str  # what was run, in one line
    panels: tuple[Panel, ...]  # the panels of the figure
    points: pd.DataFrame  # measured points, columns panel (its number), series, x, y, error (standard error or NaN)
    # The theorem's lines, columns panel, label, of (the series whose colour they take, or ''), x, y.
    lines: pd.DataFrame
    checks: tuple[Check, ...]  # the comparisons that make up the verdict; at least one
    finding: str = ''  # further numbers, and what the card cannot show

    def __post_init__(self) -> None:
        for frame, columns in ((self.points, POINT_COLUMNS), (self.lines, LINE_COLUMNS)):
            missing = [column for column in columns if column not in frame]
            if missing:
                raise ValueError(f'card {self.statement}: columns missing: {", ".join(missing)}')
        if not self.checks:
            raise ValueError(f'card {self.statement}: no checks, so it can have no verdict')

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


def points_by(panel: int, rows: pd.DataFrame, series: str, x: str, y: str) -> list[dict[str, Any]]:
    """A point for each row; the name of its series has columns in braces, as 'N = {seq_len}'."""
    return [point(panel, series.format(**row), row[x], row[y]) for row in rows.to_dict('records')]


def line(panel: int, label: str, x: Sequence[float], y: float | Sequence[float], of: str = '') -> list[dict[str, Any]]:
    """Rows of `Card.lines` for one line; y may be one number for all x."""
    both = zip(x, np.broadcast_to(y, len(x)), strict=True)
    return [{'panel': panel, 'label': label, 'of': of, 'x': float(a), 'y': float(b)} for a, b in both]


def lines_by(panel: int, label: str, rows: pd.DataFrame, *, by: str, x: str, y: str, of: str) -> list[dict[str, Any]]:
    """A line for each value of a column, in the colour of the series `of.format(value)`; the first has the label."""
    found = []
    for i, (value, own) in enumerate(rows.groupby(by)):
        found += line(panel, '' if i else label, own[x], own[y], of=of.format(value))
    return found


def as_json(made: Card) -> dict[str, Any]:
    """A card as a dict that JSON can hold; `from_json` reads it."""
    columns = {name: getattr(made, name).astype(object).to_dict('list') for name in ('points', 'lines')}
    return {
        'statement': made.statement,
        'claim': made.claim,
        'setting': made.setting,
        'verdict': made.verdict,
        'holds': made.holds,
        'checks': [plain(dataclasses.asdict(check)) for check in made.checks],
        'finding': made.finding,
        'panels': [panel._asdict() for panel in made.panels],
        **{name: {column: list(map(_plain, values)) for column, values in table.items()}
           for name, table in columns.items()},
    }  # fmt: skip


def from_json(entry: dict[str, Any]) -> Card:
    """The card of what `as_json` made. Its verdict is computed again from the checks."""
    tables = {key: pd.DataFrame(entry[key]) for key in ('points', 'lines')}
    for table in tables.values():
        for column in table.columns.intersection(['x', 'y', 'error']):
            table[column] = pd.to_numeric(table[column])
    texts = {name: entry[name] for name in ('statement', 'claim', 'setting', 'finding')}
    panels = tuple(Panel(**panel) for panel in entry['panels'])
    checks = []
    for one in entry['checks']:
        fields: dict[str, Any] = {name: math.nan if value is None else value for name, value in one.items()}
        checks.append(Check(**fields))
    return Card(**texts, **tables, panels=panels, checks=tuple(checks))


def plain(values: dict[str, Any]) -> dict[str, Any]:
    """Values as JSON holds them; what is missing or not finite is null."""
    return {name: _plain(value) for name, value in values.items()}


def _plain(value: Any) -> Any:
    """None for what is missing, NaN and infinities; Python's numbers for numpy's."""
    value = value.item() if isinstance(value, np.generic) else value
    return None if value is pd.NA or (isinstance(value, float) and not math.isfinite(value)) else value
