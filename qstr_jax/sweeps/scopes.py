"""Whose settings a sweep is given: those of its task, its models, its learners, or of one thing by its name."""

import dataclasses
import difflib
from collections.abc import Mapping
from typing import Any

from qstr_jax.learners.learner import REGISTRY as LEARNERS
from qstr_jax.settings import registry
from qstr_jax.tasks.task import REGISTRY as TASKS

# Everyday names of axes.
ALIASES = {'seq_lens': 'seq_len'}
# The argument that takes the name of a task, model or learner, for users who give the name to the scope instead.
NAMED_BY = {'model': 'models', 'learner': 'learners', 'task': 'task.name'}


def whose(setting: str) -> tuple[str, str] | None:
    """Who has a setting of this name, and how it is given, as ('the learner', 'learning_rate'); None if nobody has."""
    for kind in ('task', 'learner'):
        if registry.having(kind, setting):
            return f'the {kind}', setting
    owners = [name for name, entry in registry.entries().items() if setting in entry.schema]
    return (owners[0], f'{owners[0]}.{setting}') if owners else None


def _of_others(given: str, kind: str, name: str, setting: str) -> ValueError:
    """The error for a setting that only other tasks or learners have."""
    have = ', '.join(entry.name for entry in registry.having(kind, setting))
    return ValueError(f'{given}: {kind} {name} has no such setting; {kind}s that have it: {have}')


@dataclasses.dataclass(frozen=True)
class Scopes:
    """The scopes of the settings of a sweep with this task, these models and learners."""

    task: str
    models: tuple[str, ...]
    learners: tuple[str, ...]
    arguments: tuple[str, ...]  # names of the sweep's own arguments, which are not settings

    def triples(self, settings: Mapping[str, Any], axes: Mapping[str, Any]) -> tuple[tuple[str, str, tuple], ...]:
        """What was given as sorted (scope, name, values) triples."""
        if twice := set(settings) & set(axes):
            raise ValueError(f'{sorted(twice)[0]}: given both as a setting and as an axis')
        found: dict[tuple[str, str], tuple] = {}
        for key, value in {**settings, **axes}.items():
            for scope, name, one in self.of(key, value):
                if one is None:
                    continue
                if (scope, name) in found:
                    raise ValueError(f'{name}: given twice, with and without its scope {scope}')
                found[scope, name] = self._values(scope, name, one)
        return tuple((scope, name, values) for (scope, name), values in sorted(found.items()))

    def of(self, key: str, value: Any) -> list[tuple[str, str, Any]]:
        """(scope, name, value) of what was given under a key."""
        if isinstance(value, Mapping):
            if key in (*ALIASES, *TASKS.get(self.task).schema) or registry.having('learner', key):
                raise ValueError(f'{key}={value!r}: give one value, or several with commas between them')
            return [(self._scope(key), str(name), one) for name, one in value.items()]
        if '.' in key:
            scope, _, name = key.partition('.')
            return [(self._scope(scope), name, value)]
        name = ALIASES.get(key, key)
        if name == 'sample_size':
            raise ValueError('sample_size: give num_samples, which counts in samples_unit')
        if name in TASKS.get(self.task).schema:
            return [('task', name, value)]
        if registry.having('learner', name):
            return [('learner', name, value)]
        if name in NAMED_BY:
            raise ValueError(f'{name}={value!r}: has settings, not names; did you mean {NAMED_BY[name]}={value!r}?')
        if name in registry.entries():
            raise ValueError(
                f'{name}={value!r}: give its settings by name, as {name}={{…}}; --describe={name} lists them'
            )
        raise self._unknown(key, f'{key}={value!r}')

    def _unknown(self, key: str, given: str) -> ValueError:
        """The error for a name that no task or learner has as a setting; it proposes the nearest."""
        if key in self.arguments:
            raise ValueError(f'{key}: cannot be an axis; it is the same for all points of a sweep')
        owner = whose(key)
        if owner == ('the task', key):
            return _of_others(given, 'task', self.task, key)
        bare = [*self.arguments, *ALIASES, *TASKS.get(self.task).schema]
        bare += [name for learner in self.learners for name in LEARNERS.get(learner).schema]
        near = (
            [owner[1]] if owner else difflib.get_close_matches(key, [*bare, *registry.SCOPES, *registry.entries()], n=1)
        )
        hint = (
            f'did you mean {near[0]!r}?' if near else '--describe=NAME lists the settings of a task, model or learner'
        )
        return ValueError(f'{key}: no such setting; {hint}')

    def _scope(self, scope: str) -> str:
        """The scope of a name: that of the sweep's own task is 'task'."""
        if scope == self.task:
            return 'task'
        if scope not in registry.SCOPES and scope not in registry.entries():
            raise self._unknown(scope, scope)
        return scope

    def _values(self, scope: str, name: str, value: Any) -> tuple:
        """The checked values of a setting, by the first schema that has it."""
        owners = {'task': [self.task], 'model': self.models, 'learner': self.learners}.get(scope, [scope])
        schemas = {owner: registry.entries()[owner].schema for owner in owners}
        for schema in schemas.values():
            if name in schema:
                return schema[name].values(value, name if scope in ('task', 'learner') else f'{scope}.{name}')
        if scope == 'learner' and registry.having('learner', name):
            raise ValueError(
                f'{name}={value!r}: would be ignored, since learners={",".join(self.learners)} has no {name}'
            )
        owner, schema = next(iter(schemas.items()))
        known = whose(name)
        for kind in ('task', 'learner'):
            if registry.entries()[owner].kind == kind and known == (f'the {kind}', name):
                raise _of_others(f'{scope}.{name}={value!r}', kind, owner, name)
        if known and not difflib.get_close_matches(name, schema, n=1):
            raise ValueError(f'{scope}.{name}: {scope} has no such setting; it is of {known[0]}, give {known[1]}')
        schema.pick(name, scope if scope in registry.SCOPES else owner)
        raise AssertionError('pick raises')
