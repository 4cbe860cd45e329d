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
import re
import typing
from collections.abc import Callable
from typing import Any

from qstr_jax.settings import annotations, checks

# An entry of a docstring: 'name: text' or 'name, other: text'.
_ENTRY = re.compile(r'^\s*([a-z]\w*(?:, [a-z]\w*)*): (.*)$')


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
        is_later: whether rows existed before it: then rows have its column only where it is not at its default.
    """

    name: str
    type: Any
    default: Any
    meaning: str = ''
    is_traced: bool = False
    is_later: bool = False

    @functools.cached_property
    def is_tuple(self) -> bool:
        """Whether one value of this setting is a tuple."""
        return annotations.has_tuples(self.type)

    @property
    def column_type(self) -> str:
        """The type of its column, see `columns.Column`."""
        names = {bool: 'bool', int: 'int', float: 'float'}
        parts = () if self.is_tuple else typing.get_args(self.type) or (self.type,)
        return next((names[part] for part in parts if part in names), 'str')

    def values(self, given: object, label: str = '') -> tuple:
        """The checked values that were given, one or those of an axis; errors call the setting by the label.

        A tuple or list is an axis; for a setting whose values are tuples, only a list of tuples is. A string with
        commas is an axis of names.
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
        """The value in the setting's own type: 1 becomes 1.0 where the type is float."""
        return annotations.checked(label or self.name, value, self.type)


class Schema(dict[str, Setting]):
    """The settings of one registered thing by name, in the order in which they are defined."""

    def pick(self, name: str, label: str) -> Setting:
        """The setting of a name; the error for an unknown one suggests the nearest."""
        if name not in self:
            near = difflib.get_close_matches(name, self, n=1)
            hint = f'; did you mean {label}.{near[0]}?' if near else ''
            known = ', '.join(self) or 'none at all'
            raise ValueError(f'{label}.{name}: no such setting; {label} has {known}{hint}')
        return self[name]

    def checked(self, values: dict[str, Any], label: str, is_bare: bool = False) -> dict[str, Any]:
        """Values by name, each in the type of its setting."""
        prefix = '' if is_bare else f'{label}.'
        return {name: self.pick(name, label).checked(value, prefix + name) for name, value in values.items()}

    @property
    def traced(self) -> tuple[str, ...]:
        """Names of the traced settings."""
        return tuple(name for name, setting in self.items() if setting.is_traced)


def traced(default: float) -> Any:
    """A dataclass field for a traced setting: its values are lanes of one compiled program."""
    return dataclasses.field(default=default, metadata={'traced': True})


def later(default: Any) -> Any:
    """A dataclass field for a static setting that is newer than some rows, see `Setting.is_later`."""
    return dataclasses.field(default=default, metadata={'later': True})


def derived(default: Any) -> Any:
    """A dataclass field that is not a setting: `bind` computes it from the settings, the model and the task."""
    return dataclasses.field(default=default, metadata={'derived': True})


def static(thing: Any) -> Any:
    """A learner with its traced settings at their defaults, so that all lanes of a program share it."""
    traced = {field.name: field.default for field in dataclasses.fields(thing) if field.metadata.get('traced')}
    is_static = all(getattr(thing, name) == default for name, default in traced.items())
    return thing if is_static else dataclasses.replace(thing, **traced)


def validate_fields(thing: Any) -> None:
    """Checks the settings of a frozen dataclass and converts each to the type of its field; for `__post_init__`.

    Raises:
        ValueError: a value has the wrong type.
    """
    kind: Any = type(thing)
    for name, setting in schema_of(kind).items():
        object.__setattr__(thing, name, setting.checked(getattr(thing, name)))


@functools.cache
def schema_of(thing: Callable[..., Any], leading: tuple[str, ...] = ()) -> Schema:
    """The settings of a dataclass, or of a builder: its arguments that have a default.

    Args:
        thing: the class or function.
        leading: names of the arguments of a builder that come first and are not settings.

    Raises:
        ValueError: a setting has no default, or its name is not made of a-z, 0-9 and _; a class is no dataclass, or
            inherits from one without being one itself; a builder is a class, or is not called with `leading`.
    """
    if leading:
        _check_builder(thing, leading)
    elif inspect.isclass(thing) and not dataclasses.is_dataclass(thing):
        raise ValueError(f'{thing.__name__}: must be a dataclass or a function')
    meanings = _meanings_of(thing)
    types_of = typing.get_type_hints(thing)
    found = Schema()
    if dataclasses.is_dataclass(thing):
        _check_decorated(thing, types_of)
        for field in dataclasses.fields(thing):
            if field.metadata.get('derived'):
                continue
            kind = types_of.get(field.name, object)
            marks = (bool(field.metadata.get(mark)) for mark in ('traced', 'later'))
            found[field.name] = Setting(field.name, kind, field.default, meanings.get(field.name, ''), *marks)
    else:
        for name, parameter in list(inspect.signature(thing).parameters.items())[len(leading) :]:
            if parameter.default is parameter.empty:
                raise ValueError(f'{thing.__qualname__}: its setting {name!r} needs a default')
            default = parameter.default
            kind = types_of.get(name, object if default is None else type(default))
            found[name] = Setting(name, kind, default, meanings.get(name, ''))
    for name in found:
        checks.name_part('setting', name)
    return found


def _meanings_of(thing: object) -> dict[str, str]:
    """What a docstring says about each argument."""
    docs = [inspect.getdoc(base) or '' for base in reversed(thing.__mro__[:-1])] if inspect.isclass(thing) else []
    docs = docs or [inspect.getdoc(thing) or '']
    meanings: dict[str, str] = {}
    for doc in docs:
        names: list[str] = []
        for line in doc.splitlines():
            found = _ENTRY.match(line)
            if found:
                names = found[1].split(', ')
                meanings |= dict.fromkeys(names, found[2].strip())
            elif names and line.startswith('        '):
                meanings |= {name: f'{meanings[name]} {line.strip()}' for name in names}
            else:
                names = []
    return meanings


def _check_builder(builder: Callable[..., Any], leading: tuple[str, ...]) -> None:
    """Raises ValueError unless a builder is a function whose first arguments are those that it is called with."""
    name, arguments = builder.__name__, ', '.join(leading)
    if inspect.isclass(builder):
        raise ValueError(
            f'{name}: is a class: register a function ({arguments}, settings with defaults) that returns {name}(…)'
        )
    given = list(inspect.signature(builder).parameters.values())
    for i, wanted in enumerate(leading):
        is_setting = i >= len(given) or (given[i].default is not inspect.Parameter.empty and given[i].name != wanted)
        if is_setting or given[i].kind is inspect.Parameter.KEYWORD_ONLY:
            settings = ''.join(f', {one}' for one in given[i:] if one.name not in leading)
            raise ValueError(f'{name}: is called with {arguments}, so write def {name}({arguments}{settings})')


def _check_decorated(thing: Any, types_of: dict[str, Any]) -> None:
    """Raises ValueError for a class that annotates fields and is no dataclass itself, since they would be lost."""
    for kind in thing.__mro__:
        if hasattr(kind, '__dataclass_fields__') and '__dataclass_fields__' not in vars(kind):
            own = inspect.get_annotations(kind)
            lost = [name for name in own if typing.get_origin(types_of[name]) is not typing.ClassVar]
            if lost:
                raise ValueError(
                    f'{kind.__name__}.{lost[0]}: would be no setting; put @dataclasses.dataclass(frozen=True) above '
                    f'class {kind.__name__}, below what registers it'
                )
