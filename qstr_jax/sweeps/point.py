"""The settings of a cell: as columns of its rows, and those that are not at their default, which name it."""

import dataclasses
from typing import Any

from qstr_jax import columns, models, registry
from qstr_jax.learners.problem import Problem
from qstr_jax.sweeps.values import plain_value

Settings = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Point:
    """One point without its lane: what a cell is made of.

    Attributes:
        model: registered name of the architecture.
        given: settings of the model that do not have their default, or were given.
        problem: the static side.
    """

    model: str
    given: Settings
    problem: Problem

    def columns(self) -> tuple[tuple[str, Any], ...]:
        """Constant columns of the rows; settings of a model, link or encoding are `<name>_<setting>`."""
        task, learner = self.problem.task, self.problem.learner
        found = {('model', 'model'): self.model, ('task', 'task'): task.name}
        found['task', 'test_task'] = self.problem.test_task.name
        found['learner', 'learner'] = learner.name
        for setting in registry.entries()[task.name].schema:
            found['task', setting] = getattr(task, setting)
        for part in (getattr(task, 'link', None), getattr(task, 'encoding', None)):
            found |= {('task', f'{part.name}_{name}'): value for name, value in getattr(part, 'settings', ())}
        schema = registry.entries()[learner.name].schema
        for setting in schema:
            # What is kept of a fixed sample is a number of every row, whether a search looks at it or not.
            if setting not in schema.traced and (setting not in learner.ignored() or setting == 'max_samples'):
                found['learner', setting] = getattr(learner, setting)
        if hasattr(learner, 'is_search'):
            found['learner', 'is_search'] = learner.is_search
        for setting, value in self._model_settings().items():
            found['model', f'{self.model}_{setting}'] = value
        for role, name in found:
            columns.declare(name, role, 'str')
        return tuple((name, plain_value(value)) for (_, name), value in found.items())

    def _model_settings(self) -> Settings:
        """All settings of the model, those that were left out as the module has them."""
        schema = registry.entries()[self.model].schema
        defaults = {name: self.given.get(name, setting.default) for name, setting in schema.items()}
        return {name: getattr(self.problem.module, name, value) for name, value in defaults.items()}

    def changed(self) -> tuple[tuple[str, Any], ...]:
        """Settings that are not at their default: to leave one of them out would make something else."""
        task, test_task, learner = self.problem.task, self.problem.test_task, self.problem.learner
        found = {'model': self.model, 'task': task.name, 'learner': learner.name, 'seq_len': task.seq_len}
        if test_task.name != task.name:
            found['test_task'] = test_task.name
        for name, setting in registry.entries()[task.name].schema.items():
            if name != 'seq_len' and not _is_same_without(task, name, setting.default):
                found[f'task.{name}'] = _identity(getattr(task, name))
        for name, setting in registry.entries()[learner.name].schema.items():
            is_idle = name in learner.ignored() and name != 'max_samples'
            if not setting.is_traced and not is_idle and getattr(learner, name) != setting.default:
                found[f'learner.{name}'] = getattr(learner, name)
        if getattr(learner, 'is_search', False):
            found['learner.is_search'] = True
        for name in self.given:
            others = {key: value for key, value in self.given.items() if key != name}
            if not self._is_same_module(task, others):
                found[f'model.{name}'] = plain_value(self.given[name])
        return tuple(found.items())

    def _is_same_module(self, task: Any, settings: Settings) -> bool:
        try:
            return bool(models.build(self.model, task, **settings) == self.problem.module)
        except ValueError:
            return False


def _is_same_without(task: Any, name: str, default: Any) -> bool:
    """Whether a task would be the same with the default of one setting."""
    try:
        return bool(dataclasses.replace(task, **{name: default}) == task)
    except ValueError:
        return False


def _identity(value: Any) -> Any:
    """A task's setting as the id knows it: names, and the settings of a link or an encoding."""
    settings = getattr(value, 'settings', ())
    return [plain_value(value), *map(list, settings)] if settings else plain_value(value)
