"""What is registered by name, with its settings: tasks, models, learners, links, encodings, probes, radius units."""

import dataclasses
import inspect
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any

from qstr_jax import columns
from qstr_jax.settings import Schema, annotations, checks, function_names, schema_of


@dataclasses.dataclass(frozen=True)
class Entry:
    """Something that is registered, by the name that sweeps use."""

    kind: str  # 'task', 'model', 'learner', 'link', 'encoding', 'probe', 'start' or 'radius unit'
    name: str
    builder: Callable[..., Any]  # the class or function that makes it, or the thing itself
    schema: Schema  # its settings

    @property
    def summary(self) -> str:
        """The first line of its documentation; of a thing that applies a function, that function's."""
        thing = self.builder if inspect.isclass(self.builder) else getattr(self.builder, 'apply', self.builder)
        return (inspect.getdoc(thing) or '').split('\n')[0]


# Prefixes of a setting besides the registered names, as in `--config.learner.threshold=0.5`.
SCOPES = ('task', 'model', 'learner')
_ENTRIES: dict[str, Entry] = {}


class Registry:
    """The things of one kind by name. Names are unique across the kinds that have settings, of which they are prefixes.

    A `flag` is the setting that takes such a name; the `leading` arguments of a builder come first and are no settings.
    """

    def __init__(self, kind: str, flag: str, leading: tuple[str, ...] = (), has_settings: bool = True) -> None:
        self.kind, self.flag, self.leading = kind, flag, leading
        self._entries: dict[str, Entry] = _ENTRIES if has_settings else {}

    def add(self, name: str, builder: Any, schema: Schema | None = None) -> None:
        """Registers a thing."""
        checks.name_part(self.kind, name)
        known = self._entries.get(name)
        if name in SCOPES or (known is not None and not self._is_rerun(known, builder)):
            kind = 'scope' if known is None else known.kind
            raise ValueError(f'{self.kind} {name!r} exists already, as a {kind}: choose another name')
        schema = schema_of(builder, self.leading) if schema is None else schema
        # Columns of a model's settings begin with the model's name.
        taken = () if self.kind == 'model' else sorted(columns.RESERVED.intersection(schema))
        if taken:
            raise ValueError(
                f'{self.kind} {name!r}: no setting may be called {taken[0]!r}, which is a column of all rows'
            )
        self._entries[name] = Entry(self.kind, name, builder, schema)
        declare_columns(self._entries[name])
        if known is not None and known.builder is not builder and 'jax' in sys.modules:
            # Programs that were traced by this name, such as that of an encoding, have the former definition.
            sys.modules['jax'].clear_caches()

    def registering(self, name: str) -> Callable[[Any], Any]:
        """Decorator that registers a class or function."""
        if callable(name):
            raise ValueError(f"{self.kind}: the decorator takes a name: write it above as in register('mine')")

        def add(builder: Any) -> Any:
            self.add(name, builder)
            return builder

        return add

    def _is_rerun(self, known: Entry, builder: Any) -> bool:
        """Whether this is the same definition again, as when a notebook cell is run twice."""

        def defined(thing: Any) -> tuple[str, str]:
            function = thing if isinstance(thing, type) else getattr(thing, 'apply', thing)  # a link's function
            return function_names.module_of(thing), getattr(function, '__qualname__', repr(function))

        is_same = defined(known.builder) == defined(builder) and '<lambda>' not in defined(builder)[1]
        return known.kind == self.kind and (known.builder is builder or is_same)

    def get(self, name: object, flag: str | None = None) -> Entry:
        """The entry of a name, which a setting with another name than `flag` may have given."""
        found = self._entries.get(name) if isinstance(name, str) else None
        if found is None or found.kind != self.kind:
            own = '; a name of your own is known once the module that registers it is imported (plugins)'
            raise ValueError(f'{checks.unknown(flag or self.flag, name, self.names())}{own}')
        return found

    def names(self) -> tuple[str, ...]:
        """All names of this kind, in the order in which they were registered."""
        return tuple(entry.name for entry in self._entries.values() if entry.kind == self.kind)


def declare_columns(entry: Entry) -> None:
    """Declares the columns of the settings of a task, model, learner, link or encoding, unless they are declared."""
    role = {'link': 'task', 'encoding': 'task'}.get(entry.kind, entry.kind)
    prefix = f'{entry.name}_' if entry.kind in ('model', 'link', 'encoding') else ''
    for name, setting in entry.schema.items() if role in SCOPES else ():
        columns.declare(prefix + name, 'lane' if setting.is_traced else role, setting.column_type)


def entries() -> Mapping[str, Entry]:
    """Everything that is registered, by name."""
    return types.MappingProxyType(_ENTRIES)


def having(kind: str, setting: str) -> list[Entry]:
    """The things of a kind that have a setting of this name."""
    return [entry for entry in _ENTRIES.values() if entry.kind == kind and setting in entry.schema]


def describe(name: str) -> str:
    """The settings of one registered thing, or the names of all things of a kind, as text."""
    kinds = dict.fromkeys(entry.kind for entry in _ENTRIES.values())
    if name.removesuffix('s') in kinds:
        found = [entry for entry in _ENTRIES.values() if entry.kind == name.removesuffix('s')]
        width = max(len(entry.name) for entry in found)
        return '\n'.join(f'{entry.name:{width}s}  {entry.summary}' for entry in found)
    if name not in _ENTRIES:
        raise checks.unknown('--describe', name, [*kinds, *_ENTRIES])
    entry = _ENTRIES[name]
    lines = [f'{entry.kind} {name}: {entry.summary}']
    for setting in entry.schema.values():
        is_lane = '; values are lanes of one program' if setting.is_traced else ''
        default = getattr(setting.default, '__name__', None) or repr(setting.default)
        lines.append(f'  {name}.{setting.name} = {default}    {annotations.words(setting.type)}{is_lane}')
        lines += [f'      {setting.meaning}'] if setting.meaning else []
    return '\n'.join(lines if entry.schema else [*lines, '  no settings'])
