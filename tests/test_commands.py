"""The command that the report gives for a row makes the cell and the lane of that row again."""

import re
import shlex
import sys

import pandas as pd
import pytest
from absl import flags
from ml_collections import config_flags

from qstr_jax import sweeps
from qstr_jax.cli import base
from qstr_jax.report import commands
from tests import helpers

SWEEPS = {
    'axes of all kinds': sweeps.Sweep(
        models=('transformer', 'ffn'), seq_lens=(2, 4), num_seeds=2, task_per_lane=True, learning_rate=(1e-3, 3e-2),
        ffn={'widths': (8, 16)}, transformer={'num_heads': (1, 2)}, link=('linear', 'norm2'), max_samples=6400,
        thresholds=((0.9, 0.8),), check_every=2,
    ),
    'fits and a baseline': sweeps.Sweep(
        models=('ffn', 'ridge'), learners=('adamw',), num_samples=(0.5, 2), samples_unit='Nd', preset='paper',
        test_task='qstr', seq_lens=3, num_seeds=2, task_seed=7, weight_decay=(0.1, 0.2), ffn={'widths': (8,)},
    ),
    'a search': sweeps.Sweep(
        models='ffn', learners=('constrained',), seq_lens=3, num_seeds=1, radius=(0.5, 2.0), max_samples=64,
        min_samples=4, risk='pointwise', ffn={'widths': (8,)},
    ),
    'tuned': sweeps.Sweep(models='ffn', seq_lens=4, num_seeds=1, tune={'learning_rate': 'auto'}),
}  # fmt: skip


def rows_of(sweep):
    """A row of settings for each lane, as in a table that has several cells."""
    cells = sweeps.cells_of(sweep)
    rows = [{**dict(cell.columns), **lane._asdict(), 'cell': cell.id} for cell in cells for lane in cell.lanes]
    return pd.DataFrame(rows).to_dict('records')


@pytest.fixture
def cells_of(monkeypatch):
    """The cells of a command's sweep."""

    def parse(command):
        words = shlex.split(command)
        assert words[:2] == ['python', '-m']
        values = flags.FlagValues()
        config_flags.DEFINE_config_file('config', None, flag_values=values)
        flags.DEFINE_string('workdir', None, '', flag_values=values)
        monkeypatch.setattr(
            sys, 'argv', [words[2], f'--config={base.__file__}', *words[3:]]
        )  # Where config_flags looks for what is overridden.
        values([words[2], f'--config={base.__file__}', *words[3:]])
        return sweeps.cells_of(base.to_sweep(values.config))

    return parse


@pytest.mark.parametrize('name', SWEEPS)
def test_a_command_makes_the_cell_and_the_lane_again(name, cells_of):
    recorded = [other.as_json() for other in SWEEPS.values()]
    rows = rows_of(SWEEPS[name])
    for row in rows[:: max(1, len(rows) // 8)]:
        (cell,) = cells_of(commands.command_of(row, recorded))
        assert cell.id == row['cell']
        wanted = [row[name] for name in cell.lanes[0]._fields]
        assert wanted in [list(lane) for lane in cell.lanes]


def test_a_row_of_no_sweep_has_no_command():
    (row, *_) = rows_of(SWEEPS['tuned'])
    recorded = SWEEPS['tuned'].as_json()
    assert commands.command_of(row, [recorded])
    for changed in {'model': 'rnn'}, {'seq_len': 5}, {'task_seed': 3}, {'learner': 'adamw'}:
        assert commands.command_of({**row, **changed}, [recorded]) == ''
    for foreign in {}, {'models': 3}, {**recorded, 'settings': 7}, {**recorded, 'settings': {'task.seq_len': None}}:
        assert commands.command_of(row, [foreign]) == ''


def test_plugins_are_named_and_words_are_quoted():
    sweep = sweeps.Sweep(models='ffn', seq_lens=4, num_seeds=1)
    (row,) = rows_of(sweep)
    runs = [{'plugins': ['my_model']}, {}]
    assert '--config.plugins=my_model' in shlex.split(
        commands.command_of(row, [sweep.as_json()], commands.plugins_of(runs))
    )
    assert commands.plugins_of([{'plugins': ['one']}, {'plugins': ['one', 'two']}]) == 'one,two'
    hostile = {**sweep.as_json(), 'models': ['; rm -rf x']}
    words = shlex.split(commands.command_of({**row, 'model': '; rm -rf x'}, [hostile]))
    assert '--config.models=; rm -rf x' in words
    probed = sweeps.Sweep(models='ffn', seq_lens=4, num_seeds=1).as_json()
    for probes, module in (
        (['theorem6_floor'], 'theory.oracles'), (['state_size'], 'comparison.suite'),
        (['rounded_states', 'param_norm'], 'theory.network_probes'),
        (['param_norm', 'state_sensitivity'], 'theory.network_probes'),
    ):  # fmt: skip
        command = commands.command_of(row, [probed | {'probes': probes}])
        assert f'--config.plugins=qstr_jax.{module}' in shlex.split(command)
    assert '--config.plugins' not in commands.command_of(row, [probed | {'probes': ['param_norm']}])


@pytest.mark.parametrize('setting', ['starts', 'reference', 'first_params'])
def test_a_start_of_ours_needs_its_plugin_whichever_setting_names_it(setting):
    for name, module in (
        ('construction', 'construction_start'),
        ('mixed:0.3', 'construction_start'),
        ('given', 'partly_given'),
    ):
        assert commands._plugins_for([f'--config.learner.{setting}={name}']) == [f'qstr_jax.theory.{module}']
    assert commands._plugins_for([f'--config.learner.{setting}=attention:0']) == []


@pytest.mark.parametrize('module', commands._REGISTERED)
def test_all_that_a_plugin_of_ours_registers_is_known(module):
    text = (helpers.ROOT / 'qstr_jax' / f'{module.replace(".", "/")}.py').read_text()
    registered = re.findall(r"^@\w+\.register\w*(?:\('(\w+)'\)|\ndef (\w+))", text, re.MULTILINE)
    assert registered
    known = {name.rpartition('=')[2] for name in commands._REGISTERED[module]}
    assert {name or function for name, function in registered} == known


@pytest.mark.parametrize('names', [*([name] for name in SWEEPS), list(SWEEPS)], ids=str)
def test_commands_of_a_table_are_those_of_its_rows(names):
    """Sweeps with a task per lane and with one for all lie in one directory."""
    recorded = [other.as_json() for other in SWEEPS.values()]
    recorded.append(SWEEPS['axes of all kinds'].replace(task_per_lane=False).as_json())
    rows = [row for name in names for row in rows_of(SWEEPS[name])]
    rows = pd.DataFrame([*rows, *({**row, 'task_seed': 0} for row in rows), *({**row, 'task_seed': 5} for row in rows)])
    rows = rows.to_dict('records')
    assert commands.commands_of(rows, recorded) == [commands.command_of(row, recorded) for row in rows]
    assert commands.commands_of([], recorded) == []
