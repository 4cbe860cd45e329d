"""Checks of single values. Their errors are one line that says what is wrong and what would be right."""

import ast
import difflib
import math
import re
from collections.abc import Iterable
from typing import Any

# Names become parts of paths, flags and columns.
NAME = re.compile(r'[a-z][a-z0-9_]*')
# Programs count in 32 bits and compute in float32, where larger numbers would overflow.
MOST = 2**31 - 1
LARGEST, SMALLEST = 3.4e38, 1.2e-38


def unknown(name: str, value: object, known: Iterable[object]) -> ValueError:
    """The error for an unknown name; it suggests the nearest known one."""
    names = [str(one) for one in known]
    near = difflib.get_close_matches(str(value), names, n=1)
    hint = f'; did you mean {near[0]!r}? It is' if near else ','
    return ValueError(f'{name}={value!r}: unknown{hint} one of {", ".join(names)}')


def literal(text: str) -> Any:
    """The value of a Python literal; ValueError for any other text."""
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):  # as its documentation lists them
        raise ValueError(f'{text!r} is not a Python literal') from None


def choice(name: str, value: object, known: Iterable[object]) -> None:
    """Raises the error of `unknown` unless `value` is one of `known`."""
    known = tuple(known)
    if value not in known:
        raise unknown(name, value, known)


def integer(name: str, value: object, least: int = 1) -> None:
    """Raises ValueError unless `value` is an integer from `least` to `MOST`; True and False are not integers here."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f'{name}={value!r}: must be an integer, at least {least}')
    if value > MOST:
        raise ValueError(f'{name}={value!r}: must be at most {MOST:,}')


def positive(name: str, value: Any) -> None:
    """Raises ValueError unless `value` is a number above 0, and so in float32."""
    number(name, value)
    if not value > 0:
        raise ValueError(f'{name}={value!r}: must be positive')


def number(name: str, value: Any, least: float = -math.inf) -> None:
    """Raises ValueError unless `value` is a number, finite in float32, and at least `least`."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f'{name}={value!r}: must be a number')
    if isinstance(value, int) and abs(value) > MOST:
        raise ValueError(f'{name}={value!r}: must be at most {MOST:,}')
    if not math.isfinite(value):
        raise ValueError(f'{name}={value!r}: must be finite')
    if abs(value) > LARGEST:
        raise ValueError(f'{name}={value!r}: would be infinite in float32, must be at most {LARGEST:g}')
    if 0 < abs(value) < SMALLEST:
        raise ValueError(f'{name}={value!r}: would be 0 in float32, must be at least {SMALLEST:g}')
    if value < least:
        raise ValueError(f'{name}={value!r}: must be at least {least:g}')


def name_part(what: str, name: object) -> None:
    """Raises ValueError unless a name can be a part of paths, flags and columns."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise ValueError(f'{what} {name!r}: a name is made of a-z, 0-9 and _, and starts with a letter')
