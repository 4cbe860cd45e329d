"""A sweep: points to run. A base point plus axes over any setting of its task, models and learners."""

import copy
import dataclasses
import math
from collections.abc import Container, Mapping, Sequence
from typing import Any

from qstr_jax import tasks
from qstr_jax.learners.learner import REGISTRY as LEARNERS
from qstr_jax.models.registered import REGISTRY as MODELS
from qstr_jax.settings import checks, function_names, registry
from qstr_jax.sweeps import presets
from qstr_jax.sweeps.scopes import Scopes
from qstr_jax.sweeps.tune import Tune, parse
from qstr_jax.tasks.task import REGISTRY as TASKS

# Units of sample sizes, each a product of a task's properties: prompts, and the units of the theory.
UNITS: dict[str, tuple[str, ...]] = {
    'prompts': (),
    'd': ('token_dim',),
    'qd': ('sparsity', 'token_dim'),
    'Nd': ('seq_len', 'token_dim'),
}
# More than any device holds: without a limit the compiler would try sizes for hours.
MOST_LANES_PER_BATCH = 4096


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
        test_task: what test prompts follow; by default the task itself, except with the preset 'published'.
        test_seq_len: N of the test prompts, where task and architectures allow another; None is the training N.
        learners: registered learners. All but 'online' fit n prompts that are drawn once.
        num_samples: n of those learners, in `samples_unit`; () makes each lane search for n*.
        samples_unit: 'prompts', or multiples of 'd', 'qd', 'Nd'.
        num_seeds: seeds 0..num_seeds − 1.
        task_per_lane: draw (u, ω) from the lane's seed; otherwise all lanes share that of `task_seed`.
        task_seed: see `task_per_lane`.
        preset: 'standard', 'published' (tests on simple-qSTR, as the published code) or 'paper'.
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
    test_seq_len: int | None
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
        test_seq_len: int | None = None,
        learners: str | Sequence[str] = ('online',),
        num_samples: float | Sequence[float] = (),
        samples_unit: str = 'prompts',
        num_seeds: int = 5,
        task_per_lane: bool = False,
        task_seed: int = 0,
        preset: str = 'standard',
        probes: str | Sequence[str] = (),
        save_params: bool = False,
        lanes_per_batch: int | None = None,
        tune: Mapping[str, Any] | Tune | None = None,
        axes: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        presets.settings(preset)
        if isinstance(task, Mapping):
            settings['task'] = {name: value for name, value in task.items() if name != 'name'}
            task = str(task.get('name', 'qstr'))
        test_task = presets.test_task(preset, task) if test_task is None else test_task
        models, learners = _distinct('models', models), _distinct('learners', learners)
        num_samples, probes = _distinct('num_samples', num_samples, least=0), _distinct('probes', probes, least=0)
        tune = tune if isinstance(tune, Tune) else parse(tune, learners)
        # A frozen dataclass does not allow assignments.
        vars(self).update({name: value for name, value in locals().items() if name in FIELDS})
        self._check()
        if not isinstance(axes or {}, Mapping):
            raise ValueError(f"axes={axes!r}: give a mapping, such as {{'rnn.width': (64, 128)}}")
        object.__setattr__(self, 'given', self._scopes.triples(settings, axes or {}))
        if self.tune:
            self._check_tuned(self.tune)

    def _check(self) -> None:
        for name in self.models:
            MODELS.get(name)
        for name in self.learners:
            LEARNERS.get(name)
        if 'closed_form' in self.learners:
            raise ValueError("learners='closed_form': baselines bring it along; name them in models")
        TASKS.get(self.task)
        checks.choice('test_task', self.test_task, tasks.names())
        checks.choice('samples_unit', self.samples_unit, UNITS)
        checks.integer('num_seeds', self.num_seeds)
        checks.integer('task_seed', self.task_seed, 0)
        for name in 'lanes_per_batch', 'test_seq_len':
            if getattr(self, name) is not None:
                checks.integer(name, getattr(self, name))
        if (self.lanes_per_batch or 0) > MOST_LANES_PER_BATCH:
            raise ValueError(f'lanes_per_batch={self.lanes_per_batch}: must be at most {MOST_LANES_PER_BATCH}')
        for name in 'task_per_lane', 'save_params':
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f'{name}={getattr(self, name)!r}: must be True or False')
        if self.task_per_lane and self.task_seed:
            raise ValueError(f'task_seed={self.task_seed}: would be ignored, since task_per_lane is True')
        if self.samples_unit != 'prompts' and not self.num_samples:
            raise ValueError(f'samples_unit={self.samples_unit!r}: would be ignored without num_samples')
        if self.num_samples and self.learners == ('online',):
            raise ValueError(
                f'num_samples={self.num_samples}: learner online draws fresh prompts and would ignore it; '
                'its budget is max_samples'
            )

    def _check_tuned(self, tune: Tune) -> None:
        """Raises ValueError where a reported lane would choose its own settings, or a tuned setting is given."""
        for name, last in (('num_seeds', self.num_seeds - 1), ('task_seed', self.task_seed)):
            if last >= (first := tune.seeds[0]):
                given = f'{name}={getattr(self, name)}'
                raise ValueError(f'{given}: seeds from {first:,} on are those that choose tuned settings')
        for scope, name, values in self.given:
            if name in tune.names and (scope == 'learner' or scope in LEARNERS.names()):
                raise ValueError(f'{name}={values!r}: is tuned, so it cannot be given')

    @property
    def _scopes(self) -> Scopes:
        return Scopes(task=self.task, models=self.models, learners=self.learners, arguments=FIELDS)

    @property
    def scopes(self) -> frozenset[str]:
        """The scopes that can have an effect; of learners also `closed_form`, which baselines bring along."""
        given = {name: values for scope, name, values in self.given if scope == 'task'}
        schema = TASKS.get(self.task).schema
        parts = [given.get(part, (schema[part].default,)) for part in ('link', 'encoding') if part in schema]
        named = [value for values in parts for value in values if isinstance(value, str)]
        return frozenset(
            (*registry.SCOPES, *self.models, *self.learners, 'closed_form', *map(str, self.probes), *named)
        )

    def without_unused(self, kept: Container[str] = ()) -> 'Sweep':
        """The sweep without settings of models, learners and other things that it does not have.

        Args:
            kept: names such as 'rnn.width' that stay in any case, so that `cells_of` refuses them.
        """
        used = self.scopes
        found = copy.copy(self)
        given = tuple(one for one in self.given if one[0] in used or f'{one[0]}.{one[1]}' in kept)
        object.__setattr__(found, 'given', given)
        return found

    def replace(self, **changes: Any) -> 'Sweep':
        """The sweep with some arguments of `Sweep` changed, without the settings of what these take away."""
        kept = {name: getattr(self, name) for name in FIELDS}
        if self.test_task == presets.test_task(self.preset, self.task):  # otherwise it was chosen
            kept['test_task'] = None
        settings = {f'{scope}.{name}': values if len(values) > 1 else values[0] for scope, name, values in self.given}
        axes = dict(changes.pop('axes', None) or {})
        for key, value in (*changes.items(), *axes.items()):
            if key not in FIELDS or (key == 'task' and isinstance(value, Mapping)):
                for scope, name, _ in self._scopes.of(key, value):
                    settings = {given: one for given, one in settings.items() if not _is_under(given, scope, name)}
        changed = Sweep(**{**kept, **changes}, axes={**settings, **axes})
        own = {key for key in settings if key.partition('.')[0] in self.scopes}
        return changed.without_unused({f'{scope}.{name}' for scope, name, _ in changed.given} - own)

    def settings_of(self, name: str) -> dict[str, Any]:
        """What is given under the name of one registered thing that takes no axes, such as a probe.

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
            f'{scope}.{name}': [list(one) if isinstance(one, tuple) else function_names.plain(one) for one in values]
            for scope, name, values in self.given
        }
        # A sweep that is not tuned is written as before there was tuning, so that both are the same sweep.
        tuned = {'tune': self.tune.as_json()} if self.tune else {}
        plain.pop('tune')
        if self.test_seq_len is None:  # written as before there was this setting
            plain.pop('test_seq_len')
        return {
            **{name: list(v) if isinstance(v, tuple) else v for name, v in plain.items()},
            **tuned,
            'settings': given,
        }


FIELDS = tuple(field.name for field in dataclasses.fields(Sweep) if field.name != 'given')


def _distinct(name: str, value: Any, least: int = 1) -> tuple:
    """A tuple of distinct values, from one value or several; names may be one string with commas."""
    values = value if isinstance(value, (tuple, list)) else (value,)
    parts = [part.split(',') if isinstance(part, str) else [part] for part in values]
    flat = [part.strip() if isinstance(part, str) else part for inner in parts for part in inner]
    found = tuple(part for part in flat if part != '')
    if len(found) < least:
        raise ValueError(f'{name}=(): give at least one')
    if any(value in found[:i] for i, value in enumerate(found)):
        raise ValueError(f'{name}={found}: a value is given twice')
    return found


def in_prompts(values: tuple[float, ...], unit: str, task: Any) -> tuple[int, ...]:
    """Sample sizes in prompts."""
    checks.choice('samples_unit', unit, UNITS)
    sizes = []
    for value in values:
        checks.positive('num_samples', value)
        factors = UNITS[unit]
        missing = [name for name in factors if not hasattr(task, name)]
        if missing:
            raise ValueError(f'samples_unit={unit!r}: task {task.name} has no {missing[0]}; count in prompts')
        size = math.prod(getattr(task, name) for name in factors)
        exact = value * size
        if exact > checks.MOST:
            raise ValueError(f'num_samples={value!r}: {exact:g} prompts, must be at most {checks.MOST:,}')
        if abs(exact - round(exact)) > 1e-6 * exact:
            raise ValueError(
                f'num_samples={value!r}: {value:g} {unit} = {exact:g} prompts, not a whole number ({unit} = {size})'
            )
        sizes.append(round(exact))
    return tuple(dict.fromkeys(sizes))


def _is_under(given: str, scope: str, name: str) -> bool:
    """Whether a given setting is of a scope, or of a thing of that kind, such as 'online.threshold' of 'learner'."""
    there, _, setting = given.partition('.')
    entry = registry.entries().get(there)
    return setting == name and (there == scope or (entry is not None and entry.kind == scope))
