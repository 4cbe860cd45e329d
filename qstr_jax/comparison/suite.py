"""The frozen points at which architectures are compared: tasks, N, thresholds, seeds, budgets. Versions never change.

Whoever wants other points adds a version. Rows of two versions are never compared.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import pandas as pd

from qstr_jax import columns, sweeps, tasks
from qstr_jax.models import probes
from qstr_jax.outside import LEARNER
from qstr_jax.settings import checks, function_names, registry
from qstr_jax.sweeps import point, tune

# The learning rates among which one is chosen at each point, on a selection seed.
RATES = (1e-3, 3e-3, 1e-2)
# What rows say about that choice.
CHOSEN = {'tuned': 'learning_rate', 'tuned_seeds': str(tune.FIRST_SEED)}


@probes.register
def state_size(params: Any, task_draw: Any, problem: Any) -> dict[str, jax.Array]:
    """Numbers that a model carries from token to token, by its module's `state_size(N)`; NaN where it has none."""
    count = getattr(type(problem.module), 'state_size', None)  # of the class, since a field may have that name
    return {'state_size': jnp.float32(count(problem.module, problem.task.seq_len) if callable(count) else jnp.nan)}


@dataclasses.dataclass(frozen=True)
class Task:
    """One task of a suite."""

    name: str
    about: str  # what it asks, for readers
    threshold: float  # a lane is over at the first check with an error strictly below
    threshold_on: str = 'loss'  # which error: 'loss' or 'error_rate'
    settings: tuple[tuple[str, Any], ...] = ()  # further settings of the task


@dataclasses.dataclass(frozen=True)
class Suite:
    """Points at which every architecture is measured."""

    version: str  # its name; rows are compared within one version
    tasks: tuple[Task, ...]
    seq_lens: tuple[int, ...]
    num_seeds: int  # reported lanes of a point, seeds 0, 1, …; selection has a seed of its own
    max_samples: int  # budget of a lane
    test_samples: int = 1000

    def sweeps_of(
        self, models: str | Sequence[str], seq_lens: Sequence[int] | None = None, **settings: Any
    ) -> list[sweeps.Sweep]:
        """A tuned sweep for each task; `settings` are of models."""
        check_of_models(settings, models)
        if seq_lens is not None and not seq_lens:
            raise ValueError('seq_lens: give at least one, or leave it out for all')
        for seq_len in seq_lens or ():
            checks.choice('seq_lens', seq_len, self.seq_lens)
        return [
            sweeps.Sweep(
                models=models,
                task={'name': task.name, **dict(task.settings)},
                seq_lens=tuple(sorted(seq_lens or self.seq_lens)),
                num_seeds=self.num_seeds,
                tune={'learning_rate': RATES, 'num_seeds': 1},
                probes=('state_size',),
                **self.judged_by(task),
                **settings,
            )
            for task in self.tasks
        ]

    def again(self, task: str, row: Mapping[str, Any], **settings: Any) -> sweeps.Sweep:
        """The sweep that makes one row of lane 0 again."""
        check_of_models(settings)
        one = next(one for one in self.tasks if one.name == task)
        return sweeps.Sweep(
            models=str(row['model']), task={'name': one.name, **dict(one.settings)}, seq_lens=int(row['seq_len']),
            num_seeds=1, learning_rate=float(row['learning_rate']), lanes_per_batch=int(row['lanes_per_batch']),
            **self.judged_by(one), **settings,
        ).without_unused()  # fmt: skip

    def judged_by(self, task: Task) -> dict[str, Any]:
        """How a lane of a task is judged: settings of `Online` that differ from its defaults, and of `judge`."""
        judged: dict[str, Any] = {'threshold': task.threshold, 'max_samples': self.max_samples}
        judged['test_samples'] = self.test_samples
        return judged if task.threshold_on == 'loss' else {**judged, 'threshold_on': task.threshold_on}

    def rows_of(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The rows at the suite's points, whoever trained them."""
        if rows.empty:
            return rows
        found = [rows[self._is_of(rows, task)] for task in self.tasks]
        return pd.concat(found)

    def why_not(self, rows: pd.DataFrame) -> str:
        """'max_samples=6400, the suite has 64000': the first setting in which rows of its tasks differ."""
        for task in self.tasks:
            own = rows[rows['task'].eq(task.name)] if 'task' in rows.columns else rows[:0]
            for name, value in self._wanted(task).items() if len(own) else ():
                found = own[name].iloc[0] if name in own.columns else None
                if found != function_names.plain(value):
                    return f'{name}={found}, the suite has {value}'
            if len(own) and not own['seq_len'].isin(self.seq_lens).any():
                return f'seq_len={own["seq_len"].iloc[0]}, the suite has {", ".join(map(str, self.seq_lens))}'
            if len(own) and not (own['seed'] < self.num_seeds).any():
                return f'seed={own["seed"].min()}, the suite has 0 to {self.num_seeds - 1}'
        return ''

    def _wanted(self, task: Task) -> dict[str, Any]:
        """What all rows of a task say, whoever trained them."""
        own = {**dict(task.settings), **self.judged_by(task)}
        return {'task': task.name, 'test_task': task.name, 'task_seed': 0, **own}

    def _is_of(self, rows: pd.DataFrame, task: Task) -> pd.Series:
        is_of = (rows['seed'] < self.num_seeds) & ~rows['outcome'].isin(('outraced', 'fitted'))
        for name, value in self._wanted(task).items():
            is_of &= rows[name].eq(value) if name in rows.columns else False
        is_asked = pd.Series(False, rows.index)
        for seq_len in self.seq_lens:
            is_asked |= _agrees(rows, _asked(task, seq_len, rows.columns))
        return is_of & is_asked & (rows['learner'].eq(LEARNER) | _agrees(rows, self._fitted(task)))

    def _fitted(self, task: Task) -> dict[str, Any]:
        """What our rows say about their learner, whose settings the suite sets, all but the tuned one."""
        entry = registry.entries()['online']
        learner = entry.builder(**self.judged_by(task))
        return {
            'learner': 'online',
            **{name: getattr(learner, name) for name in entry.schema if name != 'learning_rate'},
        }


def _asked(task: Task, seq_len: int, names: Iterable[str]) -> dict[str, Any]:
    """What rows say about the task, with None for settings that it does not have, such as another test length."""
    built = tasks.build(task.name, **dict(task.settings), seq_len=seq_len)
    return {**dict.fromkeys(columns.with_role(names, 'task')), **point.task_columns(built, built)}


def _agrees(rows: pd.DataFrame, wanted: Mapping[str, Any]) -> pd.Series:
    """Which rows have these values, where they say anything; entries of the board say less than rows."""
    is_same = pd.Series(True, rows.index)
    for name in rows.columns.intersection(list(wanted)):
        is_same &= rows[name].eq(function_names.plain(wanted[name])) | rows[name].isna()
    return is_same


def check_of_models(settings: Mapping[str, Any], models: str | Sequence[str] = ()) -> None:
    """Raises ValueError for a setting that is not a model's; the suite sets those. It suggests one of `models`."""
    for key, value in settings.items():
        entry = registry.entries().get(key.partition('.')[0])
        if key.partition('.')[0] != 'model' and (entry is None or entry.kind != 'model'):
            known = _settings_of((models,) if isinstance(models, str) else models) or ['rnn.width']
            like = next((name for name in known if name.endswith(f'.{key}')), known[0])
            raise ValueError(f'{key}={value!r}: the suite sets all but the settings of models, such as {like}')


def _settings_of(models: Iterable[str]) -> list[str]:
    """'rnn.width' and all other settings of models."""
    found = [entry for name in models if (entry := registry.entries().get(name))]
    return [f'{entry.name}.{setting}' for entry in found for setting in entry.schema]


_TASKS = (
    Task('qstr', 'looks up the token that each position points to', 0.7),
    Task('noisy_keys', 'recalls the value whose key is nearest to a noisy one', 0.7),
    Task('modular_sum', 'tracks the parity of all bits so far', 0.1, 'error_rate'),
)
SUITES = {
    'quick': Suite('quick-1', _TASKS, (8, 16, 32), num_seeds=3, max_samples=64_000),
    'long': Suite('long-1', _TASKS, (8, 16, 32, 64), num_seeds=5, max_samples=640_000),
}


def get(name: str) -> Suite:
    """A suite by name."""
    checks.choice('suite', name, tuple(SUITES))
    return SUITES[name]
