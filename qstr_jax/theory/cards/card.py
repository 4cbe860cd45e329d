"""A card: one statement, the points that were measured for it, its lines, and checks that can fail."""

import dataclasses
import math
from typing import NamedTuple

import numpy as np
import pandas as pd

POINT_COLUMNS = ('panel', 'series', 'x', 'y', 'error')
LINE_COLUMNS = ('panel', 'label', 'of', 'x', 'y')


class Check(NamedTuple):
    """One comparison of measured values with what a statement says.

    Attributes:
        what: the comparison in words.
        holds: whether all values pass.
        value, limit, error: the value with the least slack, what it was compared with, its standard error.
        crossed, count: how many values fail, and of how many.
    """

    what: str
    holds: bool
    value: float
    limit: float
    error: float
    crossed: int
    count: int

    def __str__(self):
        error = f' ± {self.error:.2g}' if self.error else ''
        mark = '✓' if self.holds else f'✗ ({self.crossed} of {self.count} points cross)'
        return f'{mark} {self.what}: {self.value:.3g}{error} against {self.limit:.3g}'


class Panel(NamedTuple):
    """Axes of one panel: titles, whether they are logarithmic, whether points of a series are joined."""

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
        name: the card's name, also that of its files.
        statement: where it stands in the paper.
        claim: what it says, in a line.
        setting: what was run, in a line.
        panels: one `Panel` per panel of the figure.
        points: measured points, columns panel (its number), series, x, y, error (standard error or NaN).
        lines: the theorem's lines, columns panel, label, of (the series whose colour it takes, or ''), x, y.
        checks: the comparisons that the verdict consists of; not empty.
        finding: numbers beside the checks, and what the card cannot show.
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

    def __post_init__(self):
        for frame, columns in ((self.points, POINT_COLUMNS), (self.lines, LINE_COLUMNS)):
            missing = [column for column in columns if column not in frame]
            if missing:
                raise ValueError(f'card {self.name}: columns missing: {", ".join(missing)}')
        if not self.checks:
            raise ValueError(f'card {self.name}: no checks, so there is nothing that its verdict could rest on')

    @property
    def holds(self):
        """Whether every check passes."""
        return all(check.holds for check in self.checks)

    @property
    def conclusion(self):
        """The verdict in a word or two."""
        failed = [check for check in self.checks if not check.holds]
        return 'holds' if self.holds else f'DOES NOT HOLD, {len(failed)} of {len(self.checks)} checks fail'

    @property
    def verdict(self):
        """The verdict with the numbers of all checks."""
        return '; '.join([self.conclusion, *map(str, self.checks)])


def _check(what, slack, value, limit, error):
    """`Check` of points that pass where slack ≥ 0; NaN does not pass."""
    slack, value, limit, error = (np.ravel(a) for a in np.broadcast_arrays(slack, value, limit, error))
    if not slack.size:
        raise ValueError(f'check {what!r}: no points')
    fails = ~(slack >= 0)
    # The nearest point, in standard errors where there are any.
    distance = slack / error if np.all(error > 0) else slack
    worst = int(np.argmin(np.where(np.isnan(slack), -np.inf, distance)))
    at_worst = (float(a[worst]) for a in (value, limit, error))
    return Check(what, not fails.any(), *at_worst, int(fails.sum()), len(slack))


def above(what, values, floors, errors=0.0, tolerance=1.0):
    """Check that values ≥ floors, up to `tolerance` standard errors."""
    values, floors, errors = (np.asarray(a, np.float64) for a in (values, floors, errors))
    return _check(what, values + tolerance * errors - floors, values, floors, errors)


def below(what, values, limits, errors=0.0, tolerance=1.0):
    """Check that values ≤ limits, up to `tolerance` standard errors."""
    values, limits, errors = (np.asarray(a, np.float64) for a in (values, limits, errors))
    return _check(what, limits + tolerance * errors - values, values, limits, errors)


def near(what, values, targets, errors, tolerance=4.0):
    """Check that |values − targets| ≤ `tolerance` standard errors."""
    values, targets, errors = (np.asarray(a, np.float64) for a in (values, targets, errors))
    return _check(what, tolerance * errors - np.abs(values - targets), values, targets, errors)


def fails(what, check):
    """Check that another one fails: shows that it could."""
    return check._replace(what=what, holds=not check.holds)


def point(panel, series, x, y, error=math.nan, **more):
    """A row of `Card.points`; `more` are further columns."""
    return {'panel': panel, 'series': series, 'x': float(x), 'y': float(y), 'error': float(error), **more}


def line(panel, label, x, y, of=''):
    """Rows of `Card.lines` through the points (x, y)."""
    return [{'panel': panel, 'label': label, 'of': of, 'x': float(a), 'y': float(b)} for a, b in zip(x, y, strict=True)]


def slope(x, y):
    """Least-squares exponent of y ∝ x^slope and half of its 95 % interval (NaN below two and three points)."""
    x, y = np.log(np.asarray(x, np.float64)), np.log(np.asarray(y, np.float64))
    if len(x) < 2:
        return math.nan, math.nan
    centred = x - x.mean()
    value = float(centred @ y / (centred @ centred))
    if len(x) < 3:
        return value, math.nan
    residual = y - y.mean() - value * centred
    from scipy import stats  # slow to import, and few cards fit

    spread = math.sqrt(residual @ residual / (len(x) - 2) / (centred @ centred))
    return value, float(stats.t.ppf(0.975, len(x) - 2) * spread)


def exponent(x, y):
    """`slope` in words: '0.66 ± 0.10', or '0.66 (2 points, no interval)'."""
    value, spread = slope(x, y)
    return f'{value:.2f} ' + (f'({len(x)} points, no interval)' if math.isnan(spread) else f'± {spread:.2f}')


def as_json(card):
    """A card as a dict that JSON can hold; `from_json` reads it."""
    columns = {name: getattr(card, name).astype(object).to_dict('list') for name in ('points', 'lines')}
    columns = {name: {c: [_plain(v) for v in values] for c, values in table.items()} for name, table in columns.items()}
    return {
        'statement': card.statement,
        'claim': card.claim,
        'setting': card.setting,
        'verdict': card.verdict,
        'holds': card.holds,
        'checks': [{name: _plain(v) for name, v in check._asdict().items()} for check in card.checks],
        'finding': card.finding,
        'panels': [panel._asdict() for panel in card.panels],
        **columns,
    }


def from_json(name, entry):
    """The `Card` of `as_json`; its verdict is computed again from the checks."""
    tables = {key: pd.DataFrame(entry[key]) for key in ('points', 'lines')}
    for table in tables.values():
        for column in table.columns.intersection(['x', 'y', 'error']):
            table[column] = pd.to_numeric(table[column])
    return Card(
        name,
        entry['statement'],
        entry['claim'],
        entry['setting'],
        tuple(Panel(**panel) for panel in entry['panels']),
        tables['points'],
        tables['lines'],
        tuple(Check(**{k: math.nan if v is None else v for k, v in c.items()}) for c in entry['checks']),
        entry['finding'],
    )


def _plain(value):
    """NaN and infinities as null, which JSON has; numpy scalars as Python's."""
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and not math.isfinite(value) else value
