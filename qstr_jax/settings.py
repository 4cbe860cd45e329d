"""Settings of tasks, models and learners: each is defined once, with the thing that it sets.

A setting is a field of a frozen dataclass, or a keyword argument of a builder. Its name, type and default are those of
the field or argument, and its meaning is the entry in the docstring's `Attributes:` or `Args:` section. Everything that
is registered has a `Schema` of its settings. Flags, columns, the ids of cells and the listing of `--describe` are
derived from it.
"""

import dataclasses
import difflib
import functools
import inspect
import types
import typing
from collections.abc import Callable
from typing import Any

from qstr_jax import checks
from qstr_jax.docstrings import meanings_of


@dataclasses.dataclass(frozen=True)
class Setting:
    """One setting.

    Attributes:
        name: as it is written in Python, on the command line and in the rows.
        type: its annotation, such as `int`, `float | None` or `Literal['adam', 'sgd']`.
        default: its value unless another is given.
        meaning: what it is for, in one line.
        is_traced: whether it is a number that the compiled program takes as an argument. Values of a traced setting
            are lanes of one program; values of any other setting are programs of their own.
    """

    name: str
    type: Any
    default: Any
    meaning: str = ''
    is_traced: bool = False

    @property
    def is_tuple(self) -> bool:
        """Whether one value of this setting is a tuple."""
        return any(_plain_type(part) is tuple for part in _parts(self.type))

    @property
    def type_name(self) -> str:
        """The type in words, such as 'int or None' or "'adam', 'sgd'"."""
        return ' or '.join(_type_name(part) for part in _parts(self.type))

    def values(self, given: object, label: str = '') -> tuple:
        """The checked values that were given: one, or those of an axis.

        A tuple or list is an axis; for a setting whose values are tuples, only a list of tuples is. A string with
        commas is an axis of names.

        Args:
            given: from Python or from the command line.
            label: what errors call the setting, such as 'rnn.width'.

        Raises:
            ValueError: a value has the wrong type, or an axis is empty or holds a value twice.
        """
        if isinstance(given, str) and ',' in given:
            given = tuple(part.strip() for part in given.split(',') if part.strip())
        if not isinstance(given, (tuple, list)):
            return (self.checked(given, label),)
        if self.is_tuple and not any(isinstance(part, (tuple, list)) for part in given):
            return (self.checked(tuple(given), label),)
        values = tuple(self.checked(part, label) for part in given)
        if not values:
            raise ValueError(f'{label or self.name}=(): give at least one')
        if any(value in values[:i] for i, value in enumerate(values)):
            raise ValueError(f'{label or self.name}={values!r}: a value is given twice')
        return values

    def checked(self, value: object, label: str = '') -> Any:
        """The value in the setting's own type: 1 becomes 1.0 where the type is float.

        Args:
            value: one value.
            label: what errors call the setting.

        Raises:
            ValueError: it has another type, or is not finite.
        """
        parts, name = _parts(self.type), label or self.name
        if value is None and type(None) in parts:
            return None
        for part in parts:
            kind = _plain_type(part)
            if typing.get_origin(part) is typing.Literal:
                if value in typing.get_args(part):
                    return value
            elif kind is float and isinstance(value, (int, float)) and not isinstance(value, bool):
                checks.number(name, value)
                return float(value)
            elif kind is int and isinstance(value, int) and not isinstance(value, bool):
                checks.integer(name, value, -checks.MOST)
                return value
            elif kind is tuple and isinstance(value, (tuple, list, int, float)) and not isinstance(value, bool):
                return _checked_tuple(name, value, part)
            elif kind in (bool, str) and isinstance(value, kind):
                return value
            elif kind in (object, Any) or (isinstance(kind, type) and kind not in _CHECKED and isinstance(value, kind)):
                return value
            elif kind is Callable and callable(value):
                return value
        literals = [one for part in parts if typing.get_origin(part) is typing.Literal for one in typing.get_args(part)]
        if literals and (len(parts) == 1 or isinstance(value, str)):
            raise checks.unknown(name, value, literals)
        raise ValueError(f'{name}={value!r}: must be {self.type_name}')


_CHECKED = (float, int, tuple, bool, str, type(None))
# What errors and `--describe` call the types.
_WORDS = {
    int: 'an integer',
    float: 'a number',
    bool: 'True or False',
    str: 'a name',
    tuple: 'integers with commas between them',
    type(None): 'None',
    Callable: 'a function',
}
_NUMBERS = 'numbers with commas between them'


def _parts(annotation: Any) -> tuple:
    """The members of a union, or the annotation alone."""
    is_union = isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union
    return typing.get_args(annotation) if is_union else (annotation,)


def _plain_type(annotation: Any) -> Any:
    """`tuple` of `tuple[int, ...]`, and so on."""
    origin = typing.get_origin(annotation)
    return Callable if origin is Callable else origin or annotation


def _type_name(annotation: Any) -> str:
    if typing.get_origin(annotation) is typing.Literal:
        return ' or '.join(map(repr, typing.get_args(annotation)))
    kind = _plain_type(annotation)
    if kind is tuple and float in typing.get_args(annotation):
        return _NUMBERS
    return _WORDS.get(kind, getattr(kind, '__name__', str(kind)))


def _checked_tuple(name: str, value: Any, annotation: Any) -> tuple:
    """The entries in the type that the annotation names first; integers stay integers, and also count as numbers."""
    entries = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    kind = next(iter(typing.get_args(annotation)), None)
    if kind not in (int, float):
        return entries
    accepted = (int,) if kind is int else (int, float)
    if not all(isinstance(entry, accepted) and not isinstance(entry, bool) for entry in entries):
        raise ValueError(f'{name}={value!r}: must be {_type_name(annotation)}')
    if kind is float:
        for entry in entries:
            checks.number(name, entry)
    return tuple(map(kind, entries))


class Schema(dict[str, Setting]):
    """The settings of one registered thing by name, in the order in which they are defined."""

    def pick(self, name: str, label: str) -> Setting:
        """The setting of a name.

        Args:
            name: of the setting.
            label: its owner, for the error.

        Raises:
            ValueError: there is no such setting; the message suggests the nearest.
        """
        if name not in self:
            near = difflib.get_close_matches(name, self, n=1)
            hint = f'; did you mean {label}.{near[0]}?' if near else ''
            known = ', '.join(self) or 'none at all'
            raise ValueError(f'{label}.{name}: no such setting; {label} has {known}{hint}')
        return self[name]

    def checked(self, values: dict[str, Any], label: str, is_bare: bool = False) -> dict[str, Any]:
        """Values by name, each in the type of its setting.

        Args:
            values: by the settings' names.
            label: their owner, for errors.
            is_bare: whether errors leave out the owner.

        Raises:
            ValueError: an unknown name, or a value of another type.
        """
        prefix = '' if is_bare else f'{label}.'
        return {name: self.pick(name, label).checked(value, prefix + name) for name, value in values.items()}

    @property
    def traced(self) -> tuple[str, ...]:
        """Names of the traced settings."""
        return tuple(name for name, setting in self.items() if setting.is_traced)


def traced(default: float) -> Any:
    """A dataclass field for a traced setting: its values are lanes of one compiled program.

    Args:
        default: the value unless another is given.
    """
    return dataclasses.field(default=default, metadata={'traced': True})


def derived(default: Any) -> Any:
    """A dataclass field that is not a setting: `bind` computes it from the settings, the model and the task.

    Args:
        default: its value until then.
    """
    return dataclasses.field(default=default, metadata={'derived': True})


def static(thing: Any) -> Any:
    """A learner with its traced settings at their defaults, so that all lanes of a program share it.

    Args:
        thing: the learner.
    """
    changed = {field.name: field.default for field in dataclasses.fields(thing) if field.metadata.get('traced')}
    return dataclasses.replace(thing, **changed)


def settle(thing: Any) -> None:
    """Checks the settings of a frozen dataclass and converts each to the type of its field; for `__post_init__`.

    Args:
        thing: the instance that is being made.

    Raises:
        ValueError: a value has the wrong type.
    """
    kind: Any = type(thing)
    for name, setting in schema_of(kind).items():
        object.__setattr__(thing, name, setting.checked(getattr(thing, name)))


@functools.cache
def schema_of(thing: Callable[..., Any], skip: int = 0) -> Schema:
    """The settings of a dataclass, or of a builder: its arguments that have a default.

    Args:
        thing: the class or function.
        skip: how many leading arguments of a builder are not settings.

    Raises:
        ValueError: a setting has no default, or its name is not made of a-z, 0-9 and _.
    """
    if inspect.isclass(thing) and not dataclasses.is_dataclass(thing):
        raise ValueError(f'{thing.__name__}: must be a dataclass or a function')
    meanings = meanings_of(thing)
    types_of = typing.get_type_hints(thing)
    found = Schema()
    if dataclasses.is_dataclass(thing):
        for field in dataclasses.fields(thing):
            if field.metadata.get('derived'):
                continue
            is_traced = bool(field.metadata.get('traced'))
            kind = types_of.get(field.name, object)
            found[field.name] = Setting(field.name, kind, field.default, meanings.get(field.name, ''), is_traced)
    else:
        for name, parameter in list(inspect.signature(thing).parameters.items())[skip:]:
            if parameter.default is parameter.empty:
                raise ValueError(f'{thing.__qualname__}: its setting {name!r} needs a default')
            default = parameter.default
            kind = types_of.get(name, object if default is None else type(default))
            found[name] = Setting(name, kind, default, meanings.get(name, ''))
    for name in found:
        checks.name_part('setting', name)
    return found
