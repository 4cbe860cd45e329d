"""The cells of a sweep, one compiled program each, and their lanes."""

import dataclasses
import functools
import hashlib
import itertools
import json
import math
from collections.abc import Iterator
from typing import Any

from qstr_jax import failures, learners, models, tasks
from qstr_jax.learners.lanes import lane_type
from qstr_jax.learners.problem import Problem
from qstr_jax.settings import function_names, registry
from qstr_jax.sweeps import point, presets
from qstr_jax.sweeps.sweep import Sweep, in_prompts
from qstr_jax.tasks import encoders, links

# Part of every id; raise it when the same settings come to mean something else.
SCHEMA_VERSION = 2
# The most cells and lanes of a sweep; a cell takes milliseconds to make and seconds to compile.
MOST_CELLS, MOST_LANES = 10_000, 100_000

Settings = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Cell:
    """One program: everything static, the columns that all its rows share, and its lanes.

    Attributes:
        model: registered name of the architecture.
        problem: the static side.
        columns: settings as a tuple of (name, value), the constant part of the rows.
        changed: the settings that are not at their default, which the id is made of.
        lanes: the numbers of each lane, NamedTuples of the learner's `lane_settings`.
    """

    model: str
    problem: Problem
    columns: tuple[tuple[str, Any], ...]
    changed: tuple[tuple[str, Any], ...]
    lanes: tuple[Any, ...]

    @functools.cached_property
    def id(self) -> str:
        """A readable, unique name that is safe for files.

        It depends only on the settings that are not at their default, so that a new setting renames no cell.
        """
        task = self.problem.task
        text = json.dumps([SCHEMA_VERSION, *sorted(map(list, self.changed))])
        digest = hashlib.sha256(text.encode()).hexdigest()[:8]
        sparsity = f'-q{task.sparsity}' if hasattr(task, 'sparsity') else ''
        return f'{self.model}-{task.name}-N{task.seq_len}{sparsity}-{digest}'


def cells_of(sweep: Sweep) -> tuple[Cell, ...]:
    """All cells of a sweep, in the order of the values of sparsity and length, then by learner and model.

    A baseline in closed form is one cell, whichever learners are named.

    Args:
        sweep: the points to run.

    Raises:
        ValueError: a setting is impossible, or would be ignored.
    """
    _check_size(sweep)
    found: dict[str, Cell] = {}
    used: set[tuple[str, str]] = set()
    made: dict[tuple, Any] = {}  # learners, which all tasks and models share
    task_axes = _resolved(sweep, 'task', sweep.task)
    # The outer loops, so that cells are sorted by these first.
    names: tuple[str, ...] = ('sparsity', 'seq_len')
    outer = {name: task_axes.pop(name) for name in names if name in task_axes}
    for first in _product(outer):
        for learner, model in itertools.product(sweep.learners, sweep.models):
            for settings in _product(task_axes):
                for cell in _cells_of_model(sweep, {**first, **settings}, learner, model, used, made=made):
                    known = found.setdefault(cell.id, cell)
                    if known is not cell:
                        _check_same(known, cell)
                    if known.lanes != cell.lanes:
                        lanes = dict.fromkeys((*known.lanes, *cell.lanes))
                        found[cell.id] = dataclasses.replace(known, lanes=tuple(lanes))
    _check_used(sweep, used)
    return tuple(found.values())


def _check_same(known_cell: Cell, other_cell: Cell) -> None:
    """Raises ValueError if one id names two programs, by chance or since two functions have the same name."""
    before, now = dict(known_cell.changed), dict(other_cell.changed)
    if differ := sorted(name for name in {**before, **now} if before.get(name) != now.get(name)):
        raise ValueError(
            f'{", ".join(differ)}: two points have the id {known_cell.id} by chance; run them in two sweeps'
        )
    known, other = known_cell.problem, other_cell.problem
    pairs: list[tuple[str, Any, Any]] = [('task', known.task, other.task), ('model', known.module, other.module)]
    for label, one, two in pairs:
        for name in [field.name for field in dataclasses.fields(one)] if one != two else ():
            if getattr(one, name, None) != getattr(two, name, None):
                shown = function_names.plain(getattr(one, name, None))
                raise ValueError(
                    f'{label}.{name}: two different values are called {shown!r}, which would be one cell; '
                    'give each function a name of its own'
                )


def _check_size(sweep: Sweep) -> None:
    """Raises ValueError for more cells or lanes than can be listed, before any is made."""
    num_cells = num_lanes = 0
    num_seeds = sweep.num_seeds + (sweep.tune.num_seeds if sweep.tune else 0)
    num_tasks = _num_tasks(sweep)
    for learner, model in itertools.product(sweep.learners, sweep.models):
        traced = registry.entries()[learner].schema.traced
        own = _resolved(sweep, 'learner', learner)
        static = [values for name, values in own.items() if name not in traced]
        static += _resolved(sweep, 'model', model).values()
        lanes = [own[name] for name in traced if name in own]
        cells = math.prod(map(len, static)) * num_tasks
        num_cells += cells
        num_lanes += cells * math.prod(map(len, lanes)) * max(1, len(sweep.num_samples)) * num_seeds
    for what, count, most in (('cells', num_cells, MOST_CELLS), ('lanes', num_lanes, MOST_LANES)):
        if count > most:
            raise ValueError(f'{num_seeds} seeds and the axes make {count:,} {what}: at most {most:,} in one sweep')


def _num_tasks(sweep: Sweep) -> int:
    """The number of tasks that a sweep asks for, whose links and encodings have axes of their own."""
    axes = _resolved(sweep, 'task', sweep.task)
    parts = [axes.pop(part, (_default(sweep, part),)) for part in ('link', 'encoding')]
    counts = [sum(_num_points(_part(sweep, one)) for one in part) for part in parts]
    return _num_points(axes) * math.prod(counts)


def _num_points(axes: dict[str, tuple]) -> int:
    return math.prod(map(len, axes.values()))


def _default(sweep: Sweep, part: str) -> Any:
    """The link or encoding of a task that no setting names; None for a task without links or encodings."""
    schema = registry.entries()[sweep.task].schema
    return schema[part].default if part in schema else None


def _resolved(sweep: Sweep, kind: str, name: str) -> dict[str, tuple]:
    """The values that the preset and the sweep give to the settings of one task, model or learner."""
    schema = registry.entries()[name].schema
    found: dict[str, tuple] = {}
    for key, value in presets.settings(sweep.preset).items():
        scope, _, setting = key.partition('.')
        if scope in (kind, name) and setting in schema:
            found[setting] = (value,)
    # A setting given under the name of the task, model or learner overrides one given for its kind.
    for wanted in (kind, name):
        found |= {setting: values for scope, setting, values in sweep.given if scope == wanted and setting in schema}
    if kind == 'learner' and sweep.tune:
        found |= {setting: values for setting, values in sweep.tune.choices if setting in schema}
    return found


def _product(axes: dict[str, tuple]) -> Iterator[Settings]:
    """Every combination of the values of some settings."""
    for values in itertools.product(*axes.values()):
        yield dict(zip(axes, values, strict=True))


def _cells_of_model(
    sweep: Sweep, settings: Settings, learner_name: str, model: str, used: set, *, made: dict
) -> Iterator[Cell]:
    """The cells of one model and learner on one task: a program for each combination of their static settings."""
    link, encoding = (settings.get(part, _default(sweep, part)) for part in ('link', 'encoding'))
    link_axes, encoding_axes = _part(sweep, link), _part(sweep, encoding)
    model_axes = _resolved(sweep, 'model', model)
    for link_settings, encoding_settings in itertools.product(_product(link_axes), _product(encoding_axes)):
        task = _task(sweep, settings, (link, link_settings), (encoding, encoding_settings))
        asked = point.Asked(task, _test_task(sweep, task))
        for model_settings in _product(model_axes):
            module = models.build(model, task, **model_settings)
            built = point.Built(model, model_settings, task, module)
            name = learner_name
            if models.is_closed_form(module) and learner_name != 'online':
                name = 'closed_form'
            axes = _learner_axes(sweep, learner_name, name)
            traced = {key: axes.pop(key) for key in registry.entries()[name].schema.traced if key in axes}
            sizes = in_prompts(sweep.num_samples, sweep.samples_unit, task)
            for number, learner_settings in enumerate(_product(axes)):
                key = (learner_name, name, number)
                with failures.named(f'learners={name!r}'):
                    if key not in made:
                        made[key] = _learner(name, learner_settings, {**traced, **_tuned(sweep, name)})
                    learner = made[key].bind(module, task, sizes or (0,))
                if sweep.tune:
                    sweep.tune.grids_of(learner)  # raises if the learner does not have what is tuned
                idle = learner.ignored()
                used |= {('task', key) for key in settings if key not in asked.unused}
                used |= {('model', key) for key in model_settings}
                used |= {('learner', key) for key in (*learner_settings, *traced) if key not in idle}
                yield Cell(
                    model=model,
                    problem=Problem(task=task, test_task=asked.test_task, module=module, learner=learner),
                    columns=point.columns_of(asked, built, learner),
                    changed=point.changed(asked, built, learner),
                    lanes=_lanes(sweep, learner, {**traced, 'sample_size': sizes or (0,)}),
                )


def _part(sweep: Sweep, thing: Any) -> dict[str, tuple]:
    """Axes of the settings of a link or an encoding, which are given under its name."""
    return {setting: values for scope, setting, values in sweep.given if isinstance(thing, str) and scope == thing}


def _task(sweep: Sweep, settings: Settings, link: tuple[Any, Settings], encoding: tuple[Any, Settings]) -> Any:
    """The task of the training prompts, whose link and encoding have settings of their own."""
    parts = {'link': (links, *link), 'encoding': (encoders, *encoding)}
    made = {part: module.get(name, **own) for part, (module, name, own) in parts.items() if own}
    return tasks.build(sweep.task, **{**settings, **made})


def _test_task(sweep: Sweep, task: Any) -> Any:
    """The task of the test prompts: the training task, or that with another name or length."""
    asked = f'test_task={sweep.test_task!r}'
    try:
        if sweep.test_task != task.name:
            task = tasks.sibling(task, sweep.test_task)
        if sweep.test_seq_len in (None, task.seq_len):
            return task
        asked = f'test_seq_len={sweep.test_seq_len}'
        # The encodings keep their dimension, which a factor of ln N would change.
        changes = {'encoding_factor': None} if hasattr(task, 'encoding_factor') else {}
        return dataclasses.replace(task, seq_len=sweep.test_seq_len, **changes)
    except ValueError as error:
        raise ValueError(f'{asked}: {error}') from None


def _learner(name: str, settings: Settings, traced: dict[str, tuple]) -> Any:
    """A learner with its static settings; it is also made with each number of the lanes, which checks these."""
    make = registry.entries()[name].builder
    for setting, values in traced.items():
        for value in values:
            make(**settings, **{setting: value})
    return make(**settings)


def _tuned(sweep: Sweep, name: str) -> dict[str, tuple]:
    """The values of a learner's traced settings that are tuned."""
    grids = sweep.tune.grids if sweep.tune else ()
    return {setting: values for setting, values in grids if setting in registry.entries()[name].schema.traced}


def _learner_axes(sweep: Sweep, asked: str, name: str) -> dict[str, tuple]:
    """Axes of a learner. `closed_form` takes its settings of data and tests from the learner that the sweep names."""
    axes = _resolved(sweep, 'learner', asked)
    if name == asked:
        return axes
    entry = registry.entries()[name]
    no_effect = learners.ClosedForm.STEPS
    kept = {key: values for key, values in axes.items() if key in entry.schema and key not in no_effect}
    return {**kept, **{key: values for scope, key, values in sweep.given if scope == name}}


def _lanes(sweep: Sweep, learner: Any, axes: dict[str, tuple]) -> tuple[Any, ...]:
    """Lanes of a cell: seeds × the values of its learner's traced settings."""
    kind = lane_type(tuple(learner.lane_settings()))
    values = [axes.get(name, (getattr(learner, name),)) for name in kind._fields[2:]]  # after seed and task_seed
    return tuple(
        kind(seed, seed if sweep.task_per_lane else sweep.task_seed, *numbers)
        for seed, *numbers in itertools.product(range(sweep.num_seeds), *values)
    )


def _check_used(sweep: Sweep, used: set[tuple[str, str]]) -> None:
    """Raises ValueError for a setting that has an effect in no cell."""
    here = sweep.scopes
    for scope, name, values in sweep.given:
        kind = scope if scope in registry.SCOPES else registry.entries()[scope].kind
        value = values if len(values) > 1 else values[0]
        if scope not in here:
            raise ValueError(f'{scope}.{name}={value!r}: would be ignored, since the sweep has no {kind} {scope!r}')
        if kind in registry.SCOPES and (kind, name) not in used:
            by = f'task {sweep.task}' if scope == 'task' else f'every {scope}' if scope in registry.SCOPES else scope
            raise ValueError(
                f'{name}={value!r}: would be ignored by {by} with these settings; leave it out, or set it to None'
            )
