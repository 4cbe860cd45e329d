"""Annotations of settings: whether a value has the annotated type, and what the type is called in words."""

import types
import typing
from collections.abc import Callable, Sequence
from typing import Any

from qstr_jax.settings import checks

# What errors and `--describe` call the types, and the entries of tuples.
_WORDS = {
    int: 'an integer',
    float: 'a number',
    bool: 'True or False',
    str: 'a name',
    type(None): 'None',
    Callable: 'a function',
}
_ENTRIES = {int: 'integers', float: 'numbers', str: 'names'}


def checked(name: str, value: object, annotation: Any) -> Any:
    """The value in the annotated type: 1 becomes 1.0 where the type is float."""
    members = _members(annotation)
    for member in members:
        if _fits(value, member):
            return _converted(name, value, member)
    literals = [one for member in members if _is_literal(member) for one in typing.get_args(member)]
    if literals and (len(members) == 1 or isinstance(value, str)):
        raise checks.unknown(name, value, literals)
    raise ValueError(f'{name}={value!r}: must be {words(annotation)}')


def words(annotation: Any) -> str:
    """The type in words, such as "an integer or None" or "'adam' or 'sgd'"."""
    return ' or '.join(_word(member) for member in _members(annotation))


def has_tuples(annotation: Any) -> bool:
    """Whether a tuple is one value of this type."""
    return any(_plain(member) is tuple for member in _members(annotation))


def _members(annotation: Any) -> tuple:
    """The members of a union, or the annotation alone."""
    is_union = isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union
    return typing.get_args(annotation) if is_union else (annotation,)


def _is_literal(annotation: Any) -> bool:
    return typing.get_origin(annotation) is typing.Literal


def _plain(annotation: Any) -> Any:
    """`tuple` of `tuple[int, ...]`, and also of lists and sequences, and so on."""
    kind = typing.get_origin(annotation) or annotation
    return tuple if kind in (list, Sequence) else kind


def _entry_type(annotation: Any) -> Any:
    """`int` of `tuple[int, ...]`; None of a bare `tuple`."""
    return next(iter(typing.get_args(annotation)), None)


def _word(annotation: Any) -> str:
    if _is_literal(annotation):
        return ' or '.join(map(repr, typing.get_args(annotation)))
    kind = _plain(annotation)
    if kind is tuple:
        return _ENTRIES.get(_entry_type(annotation), 'values') + ' with commas between them'
    return _WORDS.get(kind, getattr(kind, '__name__', str(kind)))


def _fits(value: object, annotation: Any) -> bool:
    """Whether a value has the type of one member of a union. True and False are not numbers."""
    kind = _plain(annotation)
    if _is_literal(annotation):
        return value in typing.get_args(annotation)
    if kind in (float, int):
        return isinstance(value, (int, float) if kind is float else int) and not isinstance(value, bool)
    if kind is tuple:
        entries, entry_type = _entries(value), _entry_type(annotation)
        return entry_type not in _ENTRIES or all(_fits(entry, entry_type) for entry in entries)
    if kind is Callable:
        return callable(value)
    return kind in (object, Any) or (isinstance(kind, type) and isinstance(value, kind))


def _converted(name: str, value: Any, annotation: Any) -> Any:
    """A value that fits, in the type itself."""
    kind = _plain(annotation)
    if kind is float:
        checks.number(name, value)
        return float(value)
    if kind is int:
        checks.integer(name, value, -checks.MOST)
    if kind is tuple:
        entry_type = _entry_type(annotation)
        return tuple(_converted(name, entry, entry_type) for entry in _entries(value))
    return value


def _entries(value: Any) -> tuple:
    """The entries of a tuple or list; any other value is an entry alone."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)
