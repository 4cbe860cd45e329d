"""Exponents of power laws through measured points."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np


def slope(x: Sequence[float] | Any, y: Sequence[float] | Any) -> tuple[float, float]:
    """The least-squares exponent of y ∝ x^slope, and half of its 95 % interval.

    Args:
        x: positive numbers.
        y: positive numbers.

    Returns:
        The exponent (NaN for less than two points), and half of its interval (NaN for less than three).
    """
    x, y = np.log(np.asarray(x, np.float64)), np.log(np.asarray(y, np.float64))
    if len(x) < 2:
        return math.nan, math.nan
    centred = x - x.mean()
    value = float(centred @ y / (centred @ centred))
    if len(x) < 3:
        return value, math.nan
    residual = y - y.mean() - value * centred
    from scipy import stats  # slow to import, and few cards need it

    spread = math.sqrt(residual @ residual / (len(x) - 2) / (centred @ centred))
    return value, float(stats.t.ppf(0.975, len(x) - 2) * spread)


def exponent(x: Sequence[float] | Any, y: Sequence[float] | Any) -> str:
    """`slope` as text: '0.66 ± 0.10', or '0.66 (2 points, no interval)'.

    Args:
        x: positive numbers.
        y: positive numbers.
    """
    value, spread = slope(x, y)
    return f'{value:.2f} ' + (f'({len(x)} points, no interval)' if math.isnan(spread) else f'± {spread:.2f}')
