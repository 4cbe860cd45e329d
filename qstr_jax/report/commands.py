"""The command that makes a row again: the sweep that it is from, with one value of each axis.

Built from config.json, whose settings have today's names; the command that was typed may be of an older version.
"""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from qstr_jax import columns

# Settings of lanes that the sweep's own arguments choose.
_LANES = ('seed', 'task_seed', 'sample_size', 'stop_after')
_START = ('--workdir=results/again',)
# Scopes whose settings have columns without a prefix.
_BARE = ('task', 'learner')


def _settings_of_starts(*names: str) -> tuple[str, ...]:
    return tuple(f'{setting}={name}' for setting in ('starts', 'reference', 'first_params') for name in names)


# What each of our own plugins registers: a value of any setting, or of the one that is named.
_REGISTERED = {
    'comparison.suite': ('state_size',),
    'theory.oracles': ('theorem6_oracle', 'theorem6_floor'),
    'theory.capacity': ('random_labels',),
    'theory.construction_norm': ('radius_unit=construction',),
    'theory.construction_start': _settings_of_starts('construction', 'mixed'),
    'theory.partly_given': (*_settings_of_starts('given'), 'partly_given'),
    'theory.altered': ('block_diagonal',),
    'theory.unasked': ('first_half', 'second_half'),
    'theory.network_probes': (
        'late_loss',
        'head_alignment',
        'transition_lipschitz',
        'rounded_states',
        'state_sensitivity',
    ),
}
_PLUGINS = {name: f'qstr_jax.{module}' for module, names in _REGISTERED.items() for name in names}


def command_of(row: Mapping[str, Any], sweeps: Sequence[Mapping[str, Any]], plugins: str = '') -> str:
    """A command line that runs the lanes of a row's point, seeds up to its own; '' if no sweep has such a row.

    What was tuned is given at the value that was chosen. What all rows of a cell share comes first.
    """
    for sweep in reversed(sweeps):  # If several sweeps have the row, the last counts.
        try:
            flags = _flags(row, sweep)
        except (KeyError, TypeError, ValueError, AttributeError):  # A config of another version, or a foreign one.
            continue
        if flags is not None:
            words = [f'--config.{name}={_text(value)}' for name, value in flags.items()]
            modules = ','.join(dict.fromkeys([*filter(None, plugins.split(',')), *_plugins_for(words)]))
            given = [f'--config.plugins={modules}'] if modules else []
            return shlex.join(['python', '-m', 'qstr_jax', *_START, *given, *words])
    return ''


def commands_of(rows: Sequence[Mapping[str, Any]], sweeps: Sequence[Mapping[str, Any]], plugins: str = '') -> list[str]:
    """`command_of` each row of a directory; rows that differ only in their seeds differ in the last word."""
    fixed = {sweep.get('task_seed') for sweep in sweeps}
    lane = [name for name in columns.with_role(rows[0] if rows else (), 'lane') if name not in ('seed', 'task_seed')]
    starts: dict[tuple, str] = {}
    found = []
    for row in rows:
        seed, task_seed = row['seed'], row['task_seed']
        key = (row['cell'], *(row[name] for name in lane), seed == task_seed, task_seed if task_seed in fixed else None)
        if key not in starts:
            starts[key] = command_of(row, sweeps, plugins).rpartition('=')[0]
        found.append(f'{starts[key]}={int(seed) + 1}' if starts[key] else '')
    return found


def plugins_of(runs: Iterable[Mapping[str, Any]]) -> str:
    """The user's modules that had registered something in some runs, with commas between them."""
    return ','.join(dict.fromkeys(module for run in runs for module in run.get('plugins', ())))


def _plugins_for(words: Iterable[str]) -> list[str]:
    """Our own plugins that some words of a command line need, as 'starts=construction:0.5,init' does."""
    given = set()
    for word in words:
        setting, _, values = word.partition('=')
        for value in values.split(','):
            name = value.partition(':')[0]
            given |= {name, f'{setting.rpartition(".")[2]}={name}'}
    return [module for name, module in _PLUGINS.items() if name in given]


def _flags(row: Mapping[str, Any], sweep: Mapping[str, Any]) -> dict[str, Any] | None:
    """The settings of the config by name; None if the row is not of this sweep."""
    learner = row['learner'] if row['learner'] in sweep['learners'] else sweep['learners'][0]
    is_own = row['learner'] in (*sweep['learners'], 'closed_form') and row['model'] in sweep['models']
    if not is_own or (row['task'], row['test_task']) != (sweep['task'], sweep['test_task']):
        return None
    shared = {}
    traced = [name for name in columns.with_role(row, 'lane') if name not in _LANES]
    for key, values in sweep['settings'].items():
        scope, _, name = key.partition('.')
        if scope in (*sweep['models'], *sweep['learners']) and scope not in (row['model'], learner):
            continue
        value = row.get(_column(key, row, learner))
        if _is_given(value) and not _is_among(value, values):
            return None
        if scope in sweep['probes']:  # No row has these.
            shared[key] = values[0]
        elif _is_given(value) and name not in (*traced, 'max_samples'):
            shared[key] = value
    if not sweep['num_samples'] and _is_given(row.get('max_samples')):
        shared['learner.max_samples'] = row['max_samples']
    own = {f'learner.{name}': row[name] for name in traced if _is_given(row[name])}
    return {**_base(row, sweep, learner), **shared, **own, **_lanes_of(row, sweep)}


def _base(row: Mapping[str, Any], sweep: Mapping[str, Any], learner: str) -> dict[str, Any]:
    names = {'models': row['model'], 'task.name': row['task'], 'test_task': row['test_task'], 'learners': learner}
    if sweep.get('test_seq_len'):
        names['test_seq_len'] = sweep['test_seq_len']
    return {**names, 'preset': sweep['preset'], **({'probes': ','.join(sweep['probes'])} if sweep['probes'] else {})}


def _lanes_of(row: Mapping[str, Any], sweep: Mapping[str, Any]) -> dict[str, Any]:
    """What chooses the lanes: seeds and the sample size."""
    task = {'task_per_lane': True} if sweep['task_per_lane'] else {'task_seed': sweep['task_seed']}
    if row['task_seed'] != (row['seed'] if sweep['task_per_lane'] else sweep['task_seed']):
        raise ValueError('a row of other seeds')
    # The largest of a cell's sizes is a part of its program.
    sizes = dict.fromkeys((row['sample_size'], row['max_samples'])) if sweep['num_samples'] else {}
    given = {'num_samples': [*sizes], 'samples_unit': 'prompts'} if sizes else {}
    return {**task, **given, 'num_seeds': int(row['seed']) + 1}


def _column(key: str, row: Mapping[str, Any], learner: str) -> str:
    scope, _, name = key.partition('.')
    if scope in (*_BARE, learner):
        return name
    return f'{row["model"] if scope == "model" else scope}_{name}'


def _is_among(value: Any, values: Sequence[Any]) -> bool:
    """Whether a sweep has a value; usually it is there unchanged, which is quicker to check than equal texts."""
    is_there = any(type(one) is type(value) and one == value for one in values)
    return is_there or _text(value) in map(_text, values)


def _is_given(value: Any) -> bool:
    return value is not None and not pd.isna(value)


def _text(value: Any) -> str:
    """A value on the command line, the same for 5, 5.0 and numpy's 5; lists have commas."""
    if isinstance(value, (list, tuple)):
        return ','.join(map(_text, value))
    if isinstance(value, (bool, str)) or not hasattr(value, '__float__'):
        return str(value)
    number = float(value)
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)
