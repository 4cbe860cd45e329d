"""The settings of a cell: the columns of its rows, and the settings not at their default, from which its id is made."""

import dataclasses
import functools
from typing import Any

from qstr_jax import failures, models
from qstr_jax.settings import function_names, registry
from qstr_jax.tasks import unused

Settings = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Asked:
    """What follows from one task and its test task, found once for all points that have them."""

    task: Any
    test_task: Any

    @functools.cached_property
    def unused(self) -> frozenset[str]:
        """Names of the task's settings that neither training nor test prompts depend on."""
        with failures.named(f'task={self.task.name!r}'):  # a task's own settings may not be hashable
            return unused.names(self.task) & unused.names(self.test_task)

    @functools.cached_property
    def columns(self) -> Settings:
        """`task_columns` without the settings that are not used."""
        return task_columns(self.task, self.test_task, self.unused)

    @functools.cached_property
    def changed(self) -> Settings:
        """The settings without which this would be another task."""
        task, test_task = self.task, self.test_task
        found = {}
        if test_task.name != task.name:
            found['test_task'] = test_task.name
        if test_task.seq_len != task.seq_len:
            found['test_seq_len'] = test_task.seq_len
        for name, setting in registry.entries()[task.name].schema.items():
            if name != 'seq_len' and not _is_same_without(task, name, setting.default):
                found[f'task.{name}'] = _identity(getattr(task, name))
        return found


@dataclasses.dataclass(frozen=True)
class Built:
    """A model on a task, and which of its settings made it, found once for all learners."""

    model: str  # registered name of the architecture
    given: Settings  # those that a preset or the sweep sets
    task: Any
    module: Any

    @functools.cached_property
    def settings(self) -> Settings:
        """All settings of the model; a default that depends on the task is read from the module."""
        schema = registry.entries()[self.model].schema
        defaults = {name: self.given.get(name, setting.default) for name, setting in schema.items()}
        return {name: getattr(self.module, name, value) for name, value in defaults.items()}

    @functools.cached_property
    def needed(self) -> Settings:
        """The given settings, without those that do not change the module."""
        needed = dict(self.given)
        for name in sorted(self.given):
            without = {key: value for key, value in needed.items() if key != name}
            if self._makes_module(without):
                needed = without
        return needed

    def _makes_module(self, settings: Settings) -> bool:
        try:
            return bool(models.build(self.model, self.task, **settings) == self.module)
        except ValueError:
            return False


def columns_of(asked: Asked, built: Built, learner: Any) -> tuple[tuple[str, Any], ...]:
    """(name, value) of columns that all rows share; those of a model, link or encoding have its name in front."""
    found = {
        'model': built.model,
        'task': asked.task.name,
        'test_task': asked.test_task.name,
        'learner': learner.name,
        **asked.columns,
    }
    ignored = learner.ignored()
    for name, setting in registry.entries()[learner.name].schema.items():
        value = getattr(learner, name)
        # `max_samples` is in every row, since it is also the number of stored prompts. An empty tuple sets nothing.
        is_said = value != () and not (setting.is_later and value == setting.default)
        if not setting.is_traced and is_said and (name not in ignored or name == 'max_samples'):
            found[name] = value
    if learner.is_search is not None:
        found['is_search'] = learner.is_search
    found |= {f'{built.model}_{name}': value for name, value in built.settings.items()}
    return tuple((name, function_names.plain(value)) for name, value in found.items())


def changed(asked: Asked, built: Built, learner: Any) -> tuple[tuple[str, Any], ...]:
    """The names of model, task and learner, N, and the settings without which this would be another cell.

    A setting that is given at its default is left out, even if the default depends on other settings.
    """
    task = asked.task
    found = {'model': built.model, 'task': task.name, 'learner': learner.name, 'seq_len': task.seq_len}
    found |= asked.changed
    ignored = learner.ignored()
    for name, setting in registry.entries()[learner.name].schema.items():
        is_idle = name in ignored and name != 'max_samples'
        if not setting.is_traced and not is_idle and getattr(learner, name) != setting.default:
            value = getattr(learner, name)
            found[f'learner.{name}'] = value if isinstance(value, tuple) else function_names.plain(value)
    if learner.is_search:
        found['learner.is_search'] = True
    found |= {f'model.{name}': function_names.plain(value) for name, value in built.needed.items()}
    return tuple(found.items())


def task_columns(task: Any, test_task: Any, without: frozenset[str] = frozenset()) -> Settings:
    """The columns that say what was asked, before their values are made plain."""
    found: Settings = {'task': task.name, 'test_task': test_task.name}
    if test_task.seq_len != task.seq_len:
        found['test_seq_len'] = test_task.seq_len
    found |= {name: getattr(task, name) for name in registry.entries()[task.name].schema if name not in without}
    parts: list[Any] = [getattr(task, name, None) for name in ('link', 'encoding') if name not in without]
    for part in parts:
        given = dict(getattr(part, 'settings', ()))  # Those that are not at their default.
        entry = registry.entries().get(getattr(part, 'name', ''))
        for name, setting in entry.schema.items() if entry and entry.kind in ('link', 'encoding') else ():
            found[f'{part.name}_{name}'] = given.get(name, setting.default)
    return found


def _is_same_without(task: Any, name: str, default: Any) -> bool:
    """Whether a task is the same when one setting has its default."""
    try:
        return bool(dataclasses.replace(task, **{name: default}) == task)
    except ValueError:
        return False


def _identity(value: Any) -> Any:
    """The value of a task's setting in the id: its plain form, with the settings of a link or an encoding."""
    settings = getattr(value, 'settings', ())
    return [function_names.plain(value), *map(list, settings)] if settings else function_names.plain(value)
