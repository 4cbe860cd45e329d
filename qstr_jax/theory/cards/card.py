"""A card: one statement, the points that were measured for it, its lines, and checks that can fail."""

import dataclasses
import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

POINT_COLUMNS = ('panel', 'series', 'x', 'y', 'error')
LINE_COLUMNS = ('panel', 'label', 'of', 'x', 'y')

# (items, text, total=None) → the items, with a progress bar.
Bar = Callable[..., Iterable]
Numbers = Any  # a number, or an array of them


@dataclasses.dataclass(frozen=True)
class Check:
    """One comparison of measured values with what a statement says.

    Attributes:
        what: the comparison in words.
        holds: whether all values pass.
        value: the value that is nearest to failing, or that fails by most.
        limit: what it was compared with.
        error: its standard error.
        crossed: number of values that fail.
        count: number of values.
    """

    what: str
    holds: bool
    value: float
    limit: float
    error: float
    crossed: int
    count: int

    def __str__(self) -> str:
        error = f' ± {self.error:.2g}' if self.error else ''
        mark = '✓' if self.holds else f'✗ ({self.crossed} of {self.count} points cross)'
        return f'{mark} {self.what}: {self.value:.3g}{error} against {self.limit:.3g}'


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


def _check(what: str, slack: Numbers, value: Numbers, limit: Numbers, error: Numbers) -> Check:
    """The check whose points pass where slack ≥ 0; NaN does not pass."""
    slack, value, limit, error = (np.ravel(a) for a in np.broadcast_arrays(slack, value, limit, error))
    if not slack.size:
        raise ValueError(f'check {what!r}: no points')
    fails = ~(slack >= 0)
    # The point nearest to failing, counted in standard errors if all points have one.
    distance = slack / error if np.all(error > 0) else slack
    worst = int(np.argmin(np.where(np.isnan(slack), -np.inf, distance)))
    at_worst = (float(a[worst]) for a in (value, limit, error))
    worst_value, worst_limit, worst_error = at_worst
    return Check(
        what=what,
        holds=not fails.any(),
        value=worst_value,
        limit=worst_limit,
        error=worst_error,
        crossed=int(fails.sum()),
        count=len(slack),
    )


def above(what: str, values: Numbers, floors: Numbers, errors: Numbers = 0.0, tolerance: float = 1.0) -> Check:
    """Checks that values ≥ floors, up to `tolerance` standard errors.

    Args:
        what: the comparison in words.
        values: measured values.
        floors: what they must not fall below.
        errors: their standard errors.
        tolerance: number of standard errors by which a value may fail.

    Raises:
        ValueError: no values.
    """
    values, floors, errors = (np.asarray(a, np.float64) for a in (values, floors, errors))
    return _check(what, values + tolerance * errors - floors, values, floors, errors)


def below(what: str, values: Numbers, limits: Numbers, errors: Numbers = 0.0, tolerance: float = 1.0) -> Check:
    """Checks that values ≤ limits, up to `tolerance` standard errors.

    Args:
        what: the comparison in words.
        values: measured values.
        limits: what they must not exceed.
        errors: their standard errors.
        tolerance: number of standard errors by which a value may fail.

    Raises:
        ValueError: no values.
    """
    values, limits, errors = (np.asarray(a, np.float64) for a in (values, limits, errors))
    return _check(what, limits + tolerance * errors - values, values, limits, errors)


def near(what: str, values: Numbers, targets: Numbers, errors: Numbers, tolerance: float = 4.0) -> Check:
    """Checks that |values − targets| ≤ `tolerance` standard errors.

    Args:
        what: the comparison in words.
        values: measured values.
        targets: what they should be.
        errors: their standard errors.
        tolerance: largest distance in standard errors.

    Raises:
        ValueError: no values.
    """
    values, targets, errors = (np.asarray(a, np.float64) for a in (values, targets, errors))
    return _check(what, tolerance * errors - np.abs(values - targets), values, targets, errors)


def fails(what: str, check: Check) -> Check:
    """Checks that another check fails, which shows that it can.

    Args:
        what: the comparison in words.
        check: the check that must fail.
    """
    return dataclasses.replace(check, what=what, holds=not check.holds)


def point(panel: int, series: str, x: float, y: float, error: float = math.nan, **more: Any) -> dict[str, Any]:
    """A row of `Card.points`.

    Args:
        panel: number of the panel, from 0.
        series: name of the series.
        x: the measured point's x.
        y: its y.
        error: standard error of y, or NaN.
        **more: further columns.
    """
    return {'panel': panel, 'series': series, 'x': float(x), 'y': float(y), 'error': float(error), **more}


def line(panel: int, label: str, x: Iterable[float], y: Iterable[float], of: str = '') -> list[dict[str, Any]]:
    """Rows of `Card.lines` for one line.

    Args:
        panel: number of the panel, from 0.
        label: in the legend; '' for none.
        x: x of its points.
        y: y of its points.
        of: the series whose colour it takes, or ''.
    """
    return [{'panel': panel, 'label': label, 'of': of, 'x': float(a), 'y': float(b)} for a, b in zip(x, y, strict=True)]
