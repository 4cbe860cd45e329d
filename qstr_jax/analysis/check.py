"""Comparisons of measured values with what a statement says; only values that could have failed count."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

Numbers = Any  # a number, or an array of them


@dataclasses.dataclass(frozen=True)
class Check:
    """One comparison of measured values with what a statement says."""

    what: str  # the comparison in words
    holds: bool  # whether all values pass
    value: float  # the value that is nearest to failing, or that fails by most
    limit: float  # what it was compared with
    error: float  # its standard error
    crossed: int  # number of values that fail
    count: int  # number of values, all of which could have failed
    idle: int = 0  # number of other values, which could not have failed, such as losses beside a floor of zero

    def __str__(self) -> str:
        if not self.count:
            return f'✗ {self.what}: no point could have failed, of {self.idle}'
        error = f' ± {self.error:.2g}' if self.error else ''
        mark = '✓' if self.holds else f'✗ ({self.crossed} of {self.count} points cross)'
        points = f'{self.count} point{"s" if self.count > 1 else ""}'
        points += f', {self.idle} more could not have failed' if self.idle else ''
        return f'{mark} {self.what}: {self.value:.3g}{error} against {self.limit:.3g} ({points})'


def _check(
    what: str,
    slack_of: Callable[..., np.ndarray],
    value: Numbers,
    limit: Numbers,
    error: Numbers,
    *,
    can_fail: Numbers = True,
) -> Check:
    """The check whose points pass where slack_of(value, limit, error) ≥ 0; NaN does not pass."""
    value, limit, error = (np.asarray(a, np.float64) for a in (value, limit, error))
    slack, value, limit, error, can_fail = (
        np.ravel(a)
        for a in np.broadcast_arrays(slack_of(value, limit, error), value, limit, error, np.asarray(can_fail, bool))
    )
    if not slack.size:
        raise ValueError(f'check {what!r}: no points')
    idle = int(np.sum(~can_fail))
    if idle == len(slack):  # Nothing was tested, which is no success.
        return Check(what, holds=False, value=math.nan, limit=math.nan, error=0.0, crossed=0, count=0, idle=idle)
    slack, value, limit, error = (a[can_fail] for a in (slack, value, limit, error))
    fails = ~(slack >= 0)
    # The point nearest to failing, counted in standard errors if all points have one.
    distance = slack / error if np.all(error > 0) else slack
    worst = int(np.argmin(np.where(np.isnan(slack), -np.inf, distance)))
    places = {'value': value, 'limit': limit, 'error': error}
    nearest: dict[str, Any] = {name: float(a[worst]) for name, a in places.items()}
    return Check(what, not fails.any(), **nearest, crossed=int(fails.sum()), count=len(slack), idle=idle)


def above(what: str, values: Numbers, floors: Numbers, errors: Numbers = 0.0, *, can_fail: Numbers = True) -> Check:
    """Checks that values ≥ floors, up to one standard error."""
    return _check(what, lambda value, floor, error: value + error - floor, values, floors, errors, can_fail=can_fail)


def below(what: str, values: Numbers, limits: Numbers, errors: Numbers = 0.0, *, can_fail: Numbers = True) -> Check:
    """Checks that values ≤ limits, up to one standard error."""
    return _check(what, lambda value, limit, error: limit + error - value, values, limits, errors, can_fail=can_fail)


def near(what: str, values: Numbers, targets: Numbers, errors: Numbers) -> Check:
    """Checks that |values − targets| ≤ 4 standard errors."""
    return _check(what, lambda value, target, error: 4 * error - np.abs(value - target), values, targets, errors)


def fails(what: str, check: Check) -> Check:
    """Checks that another check fails, which shows that it can."""
    return dataclasses.replace(check, what=what, holds=check.count > 0 and not check.holds)
