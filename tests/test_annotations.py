"""Values of annotated settings: what is accepted, what it becomes, and what the error says."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import pytest

from qstr_jax.settings import annotations

Names = tuple[str, ...]


@pytest.mark.parametrize(
    ('value', 'annotation', 'expected'),
    [
        (1, float, 1.0),
        (None, float | None, None),
        (-3, int, -3),
        ('adam', Literal['adam', 'sgd'], 'adam'),
        ('init', Names, ('init',)),
        (['init', 'zero'], Names, ('init', 'zero')),
        (2, tuple[int, ...], (2,)),
        ((1, 2.5), tuple[float, ...], (1.0, 2.5)),
        ([1, 2], Sequence[int], (1, 2)),
        ((1, 2), list[int] | None, (1, 2)),
        ('auto', int | Names, ('auto',)),
        ((1, 'a'), tuple, (1, 'a')),
        (len, Callable[[Any], int], len),
        ({}, Any, {}),
    ],
)
def test_a_value_gets_its_type(value, annotation, expected):
    got = annotations.checked('x', value, annotation)
    assert got == expected
    assert type(got) is type(expected)


@pytest.mark.parametrize(
    ('value', 'annotation', 'line'),
    [
        (True, int, 'x=True: must be an integer'),
        (1.5, int | None, 'x=1.5: must be an integer or None'),
        (float('nan'), float, 'x=nan'),
        ('init', tuple[int, ...], "x='init': must be integers with commas between them"),
        ((1, 'a'), tuple[float, ...], r"x=\(1, 'a'\): must be numbers with commas between them"),
        (3, Names, 'x=3: must be names with commas between them'),
        ('init', list[int], "x='init': must be integers with commas between them"),
        ('adm', Literal['adam', 'sgd'], r"x='adm': unknown; did you mean 'adam'\? It is one of adam, sgd"),
        ((1.0, float('inf')), tuple[float, ...], 'x=inf'),
    ],
)
def test_another_type_is_refused_in_one_line(value, annotation, line):
    with pytest.raises(ValueError, match=line) as error:
        annotations.checked('x', value, annotation)
    assert '\n' not in str(error.value)
