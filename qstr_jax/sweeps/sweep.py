"""A sweep: points to run. A base point plus axes over any setting of its task, models and learners."""

import dataclasses
import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from qstr_jax import checks, columns, learners, registry, tasks
from qstr_jax.learners.learner import REGISTRY as LEARNERS
from qstr_jax.models.registered import REGISTRY as MODELS
from qstr_jax.sweeps import presets, sample_sizes
from qstr_jax.sweeps.tune import Tune, parse
from qstr_jax.sweeps.values import distinct
from qstr_jax.tasks.task import REGISTRY as TASKS

# Everyday names of axes.
ALIASES = {'seq_lens': 'seq_len'}


@dataclasses.dataclass(frozen=True, init=False)
class Sweep:
    """Points to run: cells are programs, lanes are numbers that one program takes.

        Sweep(models=('transformer', 'rnn'), seq_lens=(4, 8), learning_rate=(1e-3, 1e-2), rnn={'width': 128})

    Any setting of the task, the models and the learners can be given, by its name where the task or a learner has it,
    or with a scope: `rnn={'width': 128}` or `**{'rnn.width': 128}` for one model, `model={...}` for all models that
    have it, `task={...}`, `learner={...}`, and the name of one learner, link, encoding or probe. Several values make an
    axis. `axes` is one more place for them: `axes={'rnn.width': (64, 128), 'learning_rate': (1e-3, 1e-2)}`.

    Attributes:
        models: registered architectures.
        task: a registered task, or a mapping of its settings, in which `name` names it.
        test_task: what test prompts follow; by default the preset's.
        learners: registered learners. All but 'online' fit n prompts that are drawn once.
        num_samples: n of those learners, in `samples_unit`; () makes each lane search for n*.
        samples_unit: 'prompts', or multiples of 'd', 'qd', 'Nd'.
        num_seeds: seeds 0..num_seeds − 1.
        task_per_lane: draw (u, ω) from the lane's seed; otherwise all lanes share that of `task_seed`.
        task_seed: see there.
        preset: 'published' or 'paper'.
        probes: further columns, see `models.probes`.
        save_params: keep the trained parameters.
        lanes_per_batch: lanes that one program vectorises; None chooses by model and device.
        tune: settings that are tuned, with 'auto' or several values, and how: `{'learning_rate': 'auto'}`, see
            `tune.Tune`. Their best values are found on selection seeds; the sweep's own seeds are run with these.
        given: what was set, as (scope, name, values) triples; scopes are 'task', 'model', 'learner' and registered
            names.

    Raises:
        ValueError: an unknown name, an empty axis or a value of the wrong kind.
    """

    models: tuple[str, ...]
    task: str
    test_task: str
    learners: tuple[str, ...]
    num_samples: tuple[float, ...]
    samples_unit: str
    num_seeds: int
    task_per_lane: bool
    task_seed: int
    preset: str
    probes: tuple[str, ...]
    save_params: bool
    lanes_per_batch: int | None
    tune: Tune | None
    given: tuple[tuple[str, str, tuple], ...]

    def __init__(
        self,
        models: str | Sequence[str] = ('transformer', 'rnn', 'ffn'),
        task: str | Mapping[str, Any] = 'qstr',
        *,
        test_task: str | None = None,
        learners: str | Sequence[str] = ('online',),
        num_samples: float | Sequence[float] = (),
        samples_unit: str = 'prompts',
        num_seeds: int = 5,
        task_per_lane: bool = False,
        task_seed: int = 0,
        preset: str = 'published',
        probes: str | Sequence[str] = (),
        save_params: bool = False,
        lanes_per_batch: int | None = None,
        tune: Mapping[str, Any] | Tune | None = None,
        axes: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        presets.settings(preset)
        task_name = str(task.get('name', 'qstr')) if isinstance(task, Mapping) else task
        if isinstance(task, Mapping):
            settings['task'] = {name: value for name, value in task.items() if name != 'name'}
        vars(self).update(  # which is how a frozen dataclass is filled
            models=distinct('models', models),
            task=task_name,
            test_task=presets.test_task(preset, task_name) if test_task is None else test_task,
            learners=distinct('learners', learners),
            num_samples=distinct('num_samples', num_samples, least=0),
            samples_unit=samples_unit,
            num_seeds=num_seeds,
            task_per_lane=task_per_lane,
            task_seed=task_seed,
            preset=preset,
            probes=distinct('probes', probes, least=0),
            save_params=save_params,
            lanes_per_batch=lanes_per_batch,
            tune=tune if isinstance(tune, Tune) else parse(tune),
        )
        self._check()
        object.__setattr__(self, 'given', self._parsed({**settings, **(axes or {})}, settings, axes or {}))
        for _, name, values in self.given:
            if self.tune and name in self.tune.names:
                raise ValueError(f'{name}={values!r}: is tuned, so it cannot be given')

    def _check(self) -> None:
        for name in self.models:
            MODELS.get(name)
        for name in self.learners:
            LEARNERS.get(name)
        if 'closed_form' in self.learners:
            raise ValueError("learners='closed_form': baselines bring it along; name them in models")
        TASKS.get(self.task)
        checks.choice('test_task', self.test_task, tasks.names())
        checks.choice('samples_unit', self.samples_unit, sample_sizes.UNITS)
        checks.integer('num_seeds', self.num_seeds)
        checks.integer('task_seed', self.task_seed, 0)
        if self.lanes_per_batch is not None:
            checks.integer('lanes_per_batch', self.lanes_per_batch)
        for name in 'task_per_lane', 'save_params':
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f'{name}={getattr(self, name)!r}: must be True or False')
        if self.num_samples and self.learners == ('online',):
            raise ValueError(
                f'num_samples={self.num_samples}: learner online draws fresh prompts and would ignore it; '
                'its budget is max_samples'
            )

    def _parsed(self, merged: Mapping[str, Any], settings: Mapping, axes: Mapping) -> tuple:
        """What was given as sorted (scope, name, values) triples."""
        if twice := set(settings) & set(axes):
            raise ValueError(f'{sorted(twice)[0]}: given both as a setting and as an axis')
        found: dict[tuple[str, str], tuple] = {}
        for key, value in merged.items():
            for scope, name, one in self._scoped(key, value):
                if one is None:
                    continue
                if (scope, name) in found:
                    raise ValueError(f'{name}: given twice, with and without its scope {scope}')
                found[scope, name] = self._values(scope, name, one)
        return tuple((scope, name, values) for (scope, name), values in sorted(found.items()))

    def _scoped(self, key: str, value: Any) -> list[tuple[str, str, Any]]:
        """(scope, name, value) of what was given under a key."""
        if isinstance(value, Mapping):
            of_learners = [name for learner in learners.names() for name in LEARNERS.get(learner).schema]
            if key in (*ALIASES, *TASKS.get(self.task).schema, *of_learners):
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
        if any(name in LEARNERS.get(learner).schema for learner in learners.names()):
            return [('learner', name, value)]
        raise self._unknown(key)

    def _unknown(self, key: str) -> ValueError:
        """The error for a name that no task or learner has as a setting; it proposes the nearest."""
        if key in FIELDS:
            raise ValueError(f'{key}: cannot be an axis; it is the same for all points of a sweep')
        owners = [f'{name}.{key}' for name, entry in registry.entries().items() if key in entry.schema]
        bare = [*FIELDS, *ALIASES, *TASKS.get(self.task).schema]
        bare += [name for learner in self.learners for name in LEARNERS.get(learner).schema]
        near = owners or difflib.get_close_matches(key, [*bare, *registry.SCOPES, *registry.entries()], n=1)
        hint = (
            f'did you mean {near[0]!r}?' if near else '--describe=NAME lists the settings of a task, model or learner'
        )
        return ValueError(f'{key}: no such setting; {hint}')

    def _scope(self, scope: str) -> str:
        """The scope of a name: that of the sweep's own task is 'task'."""
        if scope == self.task:
            return 'task'
        if scope not in registry.SCOPES and scope not in registry.entries():
            raise self._unknown(scope)
        return scope

    def _values(self, scope: str, name: str, value: Any) -> tuple:
        """The checked values of a setting, by the first schema that has it."""
        owners = {'task': [self.task], 'model': self.models, 'learner': self.learners}.get(scope, [scope])
        schemas = {owner: registry.entries()[owner].schema for owner in owners}
        for schema in schemas.values():
            if name in schema:
                return schema[name].values(value, name if scope in ('task', 'learner') else f'{scope}.{name}')
        if scope == 'learner' and any(name in LEARNERS.get(one).schema for one in learners.names()):
            raise ValueError(
                f'{name}={value!r}: would be ignored, since learners={",".join(self.learners)} has no {name}'
            )
        owner, schema = next(iter(schemas.items()))
        schema.pick(name, scope if scope in registry.SCOPES else owner)
        raise AssertionError('pick raises')

    def replace(self, **changes: Any) -> 'Sweep':
        """The sweep with some arguments changed.

        Args:
            **changes: as for `Sweep`.
        """
        kept = {name: getattr(self, name) for name in FIELDS}
        if 'preset' in changes or 'task' in changes:
            kept['test_task'] = None
        settings = {f'{scope}.{name}': values if len(values) > 1 else values[0] for scope, name, values in self.given}
        axes = dict(changes.pop('axes', None) or {})
        for key, value in (*changes.items(), *axes.items()):
            if key not in FIELDS:
                for scope, name, _ in self._scoped(key, value):
                    settings.pop(f'{scope}.{name}', None)
        return Sweep(**{**kept, **changes}, axes={**settings, **axes})

    def settings_of(self, name: str) -> dict[str, Any]:
        """What is given under the name of one registered thing that takes no axes, such as a probe.

        Args:
            name: as registered.

        Raises:
            ValueError: several values.
        """
        found = {setting: values for scope, setting, values in self.given if scope == name}
        for setting, values in found.items():
            if len(values) > 1:
                raise ValueError(f'{name}.{setting}={values!r}: cannot be an axis')
        return {setting: values[0] for setting, values in found.items()}

    def as_json(self) -> dict[str, Any]:
        """The sweep as a dict that JSON can hold; functions by their names."""
        plain = {name: getattr(self, name) for name in FIELDS}
        given = {
            f'{scope}.{name}': [list(one) if isinstance(one, tuple) else columns.plain(one) for one in values]
            for scope, name, values in self.given
        }
        # A sweep that is not tuned is written as before there was tuning, so that both are the same sweep.
        tuned = {'tune': self.tune.as_json()} if self.tune else {}
        plain.pop('tune')
        return {
            **{name: list(v) if isinstance(v, tuple) else v for name, v in plain.items()},
            **tuned,
            'settings': given,
        }


FIELDS = tuple(field.name for field in dataclasses.fields(Sweep) if field.name != 'given')
