"""The command line: what a user can mend there is one line that names it."""

import math
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
from ml_collections import config_flags

from qstr_jax import sweeps
from qstr_jax.cli import base, runtime
from qstr_jax.storage import names
from qstr_jax.storage.files import ResultsError
from tests import harness, helpers

CONFIGS = pathlib.Path(__file__).parents[1] / 'experiments/exhibits'


def test_settings_are_set(parse):
    name, values = parse(f'--config={CONFIGS / "figure1a.py"}', '--config.seq_lens=8,12')
    assert name == ['binary']
    assert values.config.seq_lens == (8, 12)
    _, values = parse(f'--config={CONFIGS / "figure1a.py"}', '--config.threshold=0.1', '--config.thresholds=0.7,0.5')
    assert dict(sweeps.cells_of(base.to_sweep(values.config))[0].columns)['thresholds'] == '0.7,0.5'
    _, values = parse(f'--config={CONFIGS / "figure1a_tuned.py"}', '--config.tune.margin=2')
    tune = base.to_sweep(values.config).tune
    assert (tune.margin, tune.num_seeds) == (2, 3)


@pytest.mark.parametrize(
    ('arguments', 'line'),
    [
        (('figure1a.py', '--config.seq_lenss=8'), 'no setting \'seq_lenss\'. Did you mean "seq_lens"'),
        (('figure1a.py', '--config.zzz=8'), "no setting 'zzz'"),
        (('figure1a.py', '--config.num_seeds=many'), 'num_seeds=many: invalid literal'),
        (('figure1a.py', '--setting=1'), "Unknown command line flag 'setting'"),
        (('figure1a.py', 'seq_lens=8'), "unknown argument 'seq_lens=8': settings are --config.NAME=VALUE"),
        (('nothing.py',), 'nothing.py'),
        (('nothing.py', '--config.seq_lens=8'), 'nothing.py'),
        (('figure1a.py', '--config.seq_lens.foo=3'), "no setting 'seq_lens.foo'"),
        (('figure1a.py', '--config.linear.x=3'), "no setting 'linear.x'"),
        (('figure1a.py', '--config.models[0]=rnn'), "no setting 'models[0]'"),
        (('figure1a.py', '--config.=3'), "no setting ''"),
        (('figure1a.py:rnn',), 'figure1a.py:rnn'),
        (('figure1a.py', '--config.model=ffn'), 'is a group of settings: did you mean --config.models=ffn?'),
        (('figure1a.py', '--config.learner=online'), 'did you mean --config.learners=online?'),
        (('figure1a.py', '--config.task=mytask'), 'did you mean --config.task.name=mytask?'),
        (('figure1a.py', '--config.tune=auto'), 'did you mean --config.tune.learning_rate=auto?'),
        (('figure1a.py', '--config.rnn=64'), 'give --config.rnn.SETTING=VALUE; --describe=rnn lists them'),
        (
            ('figure1a.py', '--config.ffn.learning_rate=0.1'),
            "no setting 'ffn.learning_rate': it is of the learner, --config.learning_rate=VALUE",
        ),
        (('figure1a.py', '--config.width=8'), "no setting 'width': it is of rnn, --config.rnn.width=VALUE"),
        (
            ('figure1a.py', '--config.plugins=my_models.py'),
            "plugins='my_models.py': give the name of the module, my_models",
        ),
        (
            ('figure1a.py', '--config.plugins=mine/my_models.py'),
            'give the name of the module, my_models, with PYTHONPATH=mine',
        ),
        (('sensitivity.py:lstm',), "part='lstm': unknown, one of transformer, ffn, rnn"),
    ],
)
def test_what_is_wrong_is_one_line(parse, arguments, line):
    config, *rest = arguments
    with pytest.raises(SystemExit) as error:
        parse(f'--config={CONFIGS / config}', *rest)
    message = error.value.code
    assert message.startswith('error: ')
    assert line in message
    assert '\n' not in message


@pytest.mark.parametrize(
    ('module', 'argument', 'line'),
    [
        ('notebooks', 'quickstart', "error: unknown argument 'quickstart'"),
        ('report', '--wordir=x', "error: Unknown command line flag 'wordir'. Did you mean: workdir ?"),
        ('report', 'nowhere', "error: 'nowhere': no such directory"),
        ('table1', '--output', 'error: Missing value for flag --output'),
    ],
)
def test_binaries_without_a_config(module, argument, line, tmp_path):
    done = harness.run_binary(module, argument, folder=tmp_path)
    assert (done.returncode, done.stderr.strip()) == (1, line)


QUICKSTART = f'--config={CONFIGS / "quickstart.py"}'


@pytest.mark.parametrize(
    ('module', 'arguments', 'line'),
    [
        ('report', ['--workdir=a', '--coordinator=here:1'], '--coordinator: this binary does not use it'),
        ('table1', ['--workdir=a', '--num_shards=2'], '--num_shards: this binary does not use it'),
        ('table1', ['--workdir=a', '--output=a,b'], '--output=a,b: give one directory'),
        ('status', ['--workdir=a', '--output=b'], '--output: this binary does not use it'),
        ('site', ['--workdir=a'], '--workdir: this binary does not use it'),
        ('accelerators', ['--draw_only', '--workdir=a'], '--workdir: this binary does not use it'),
        ('benchmark', ['--output=a'], '--output: this binary does not use it'),
        ('sample_complexity', [QUICKSTART, '--workdir=a', '--output=a,b'], '--output: this binary does not use it'),
        ('sample_complexity', [QUICKSTART, '--dry_run', '--coordinator=here:1'], '--coordinator: --dry_run does not'),
        ('exhibit', ['quickstart', '--output=a'], '--output: this binary does not use it'),
        ('exhibit', ['quickstart', '--draw_only', '--num_devices=1'], '--num_devices: --draw_only does not use it'),
        ('exhibit', ['card_alpha', '--draw_only', '--set=seeds=1'], '--set: --draw_only does not use it'),
        ('exhibit', ['card_alpha', '--draw_only', '--workdir=.'], "'cards/alpha' has no card.json: run card_alpha"),
        ('gallery', ['--reduced'], '--reduced: this binary does not use it'),
        ('sample_complexity', ['--describe=rnn', '--workdir=a'], '--workdir: --describe does not use it'),
        ('accelerators', ['--draw_only', '--devices=v5e'], '--devices: --draw_only does not use it'),
        ('launch', [QUICKSTART, '--workdir=a', '--shard_index=0'], '--shard_index: --executor=slurm does not use it'),
        ('launch', [QUICKSTART, '--workdir=a', '--describe=rnn'], '--describe: --executor=slurm does not use it'),
        ('launch', [QUICKSTART, '--workdir=a', '--executor=local', '--cpus=1'], '--cpus: --executor=local does not'),
        ('launch', [QUICKSTART, '--workdir=a', '--nowait', '--poll_seconds=1'], '--poll_seconds: --nowait does not'),
    ],
)  # fmt: skip
def test_flags_that_would_be_ignored_are_errors(module, arguments, line, tmp_path):
    done = harness.run_binary(module, *arguments, folder=tmp_path)
    helpers.assert_one_error(done, line)
    assert not list(tmp_path.iterdir())


@helpers.needs_torch
def test_a_flag_of_a_section_that_is_not_measured_is_an_error(tmp_path):
    done = harness.run_binary('benchmark', '--sections=steps', '--run_seeds=1', folder=tmp_path)
    helpers.assert_one_error(done, 'runs is not among the --sections')


@pytest.mark.parametrize('levels', [1800, 3000])
def test_a_directory_of_thousands_of_levels_is_one_line(tmp_path, levels):
    deep = '/'.join(['a'] * levels)
    done = harness.run_binary('sample_complexity', QUICKSTART, f'--workdir={deep}', folder=tmp_path)
    assert done.returncode == 1
    assert 'Traceback' not in done.stderr
    assert done.stderr.strip().splitlines()[-1].startswith('error: ')
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize('flag', ['workdir', 'output'])
def test_a_directory_whose_name_is_no_utf_8_is_one_line(tmp_path, flag):
    arguments = {'workdir': 'experiments/results', 'output': str(tmp_path), flag: os.fsdecode(b'run\xff')}
    done = harness.run_binary('table1', *(f'--{name}={value}' for name, value in arguments.items()))
    helpers.assert_one_error(done, r"'run\udcff': the name is no UTF-8, rename it")


@pytest.mark.parametrize(
    ('source', 'reason'),
    [
        ('def get_config(): return {}[3]', 'KeyError: 3 (mine.py, line 1)'),
        ('def get_config(: pass', 'SyntaxError: invalid syntax (mine.py, line 1)'),
        ('import sys\nsys.exit(3)', 'SystemExit: 3 (mine.py, line 2)'),
        ('import sys\ndef get_config(): sys.exit()', 'SystemExit (mine.py, line 2)'),
    ],
)
def test_a_config_that_fails_is_one_line_that_names_the_place(parse, tmp_path, source, reason):
    (tmp_path / 'mine.py').write_text(source)
    with pytest.raises(SystemExit) as error:
        parse(f'--config={tmp_path / "mine.py"}')
    assert error.value.code == f'error: --config={tmp_path / "mine.py"}: {reason}'


def test_a_part_of_a_config_without_parts_is_one_line(parse):
    with pytest.raises(SystemExit) as error:
        parse('--config=experiments/exhibits/windows.py:qstr_4')
    config = '--config=experiments/exhibits/windows.py:qstr_4'
    assert error.value.code == f'error: {config}: this config has no parts; leave out :qstr_4'


@pytest.mark.parametrize(
    ('given', 'line'),
    [
        ({'memory_limit_gb': math.inf}, '--memory_limit_gb=inf: must be positive and finite'),
        ({'memory_limit_gb': 0.0}, '--memory_limit_gb=0: must be positive and finite'),
        ({'checkpoint_seconds': math.nan}, 'checkpoint_seconds=nan: must be finite'),
        ({'num_processes': 2}, '--num_processes=2: needs --coordinator=HOST:PORT or --distributed'),
        ({'coordinator': 'here'}, '--coordinator=here: give HOST:PORT'),
        ({'coordinator': ''}, '--coordinator=: give HOST:PORT'),
        (
            {'coordinator': 'here:1', 'num_processes': 2, 'process_id': 2},
            '--process_id=2, --num_processes=2: need 0 ≤ process_id < num_processes',
        ),
        ({'shard_index': 3, 'num_shards': 3}, 'shard_index=3, num_shards=3: need 0 ≤ shard_index < num_shards'),
    ],
)
def test_flags_of_the_run_are_checked_before_any_work(given, line):
    with helpers.flag_values(**given), pytest.raises(ValueError, match=re.escape(line)):
        runtime.check()


def test_a_learners_reference_is_nothing_that_a_figure_takes():
    config = base.get_config(models=('ffn',), learners=('adamw',), num_samples=(8,), reference='init')
    (cell,) = sweeps.cells_of(base.to_sweep(config))
    assert cell.problem.learner.reference == 'init'


def test_a_configs_task_may_be_a_name():
    config = base.get_config(task='noisy_keys', seq_lens=(4,))
    (cell, *_) = sweeps.cells_of(base.to_sweep(config))
    assert cell.problem.task.name == 'noisy_keys'


def test_directories_are_split_on_commas_and_expanded(tmp_path, monkeypatch):
    monkeypatch.setenv('HOME', str(tmp_path))
    for name in ('a1', 'a2', 'b'):
        (tmp_path / name).mkdir()
    with helpers.flag_values(workdir=['~/a*, ~/b']):
        found = runtime.workdirs([f'{tmp_path}/a1'])
    assert found == [str(tmp_path / name) for name in ('a1', 'a2', 'b')]


def test_an_address_that_cannot_be_reached_is_one_line(monkeypatch):
    def refuse(path):
        raise ImportError('Please install gcsfs\nto use it')

    with pytest.raises(ResultsError, match='--output=ftp://x: unknown kind of address'):
        runtime.reachable('output', 'ftp://x')
    monkeypatch.setattr(names.epath, 'Path', refuse)
    with pytest.raises(ResultsError, match=r'^--output=gs://x: ImportError: Please install gcsfs [(]'):
        runtime.reachable('output', 'gs://x')


@pytest.mark.parametrize(
    ('typed', 'line'),
    [
        (('ffn.widths=8,8', 'models=rnn'), 'ffn.widths=(8, 8): would be ignored, since the sweep has no model'),
        (('min_norm.epsilon=0.1',), "would be ignored, since the sweep has no learner 'min_norm'"),
        (('models=rnn', "axes={'ffn.widths': ((8,), (9,))}"), 'ffn.widths=((8,), (9,)): would be ignored'),
        (('models=rnn', 'ffn.widths=None'), ''),
        (('models=ffn,rnn', 'ffn.widths=8,8', 'online.threshold=0.5'), ''),
        (('models=ridge', 'learners=adamw', 'num_samples=8', 'adamw.test_samples=50'), ''),
    ],
)
def test_what_was_typed_must_have_an_effect_but_a_config_may_have_settings_of_what_is_left_out(parse, typed, line):
    # Its own are of the RNN, which some of these leave out.
    _, values = parse(f'--config={CONFIGS / "quickstart.py"}', *(f'--config.{text}' for text in typed))
    sweep = base.to_sweep(values.config, config_flags.get_override_values(values['config']))
    if line:
        with pytest.raises(ValueError, match=re.escape(line)):
            sweeps.cells_of(sweep)
    else:
        sweeps.cells_of(sweep)


@pytest.mark.parametrize('error', [AssertionError(), RuntimeError("Unknown backend 'cuda'. (set JAX_PLATFORMS='' …)")])
def test_a_platform_that_is_not_there_is_one_line(monkeypatch, error):
    def devices():
        raise error

    monkeypatch.setattr(runtime.jax, 'devices', devices)
    with pytest.raises(ValueError, match='no such device here: ') as caught:
        runtime._check_platform()
    assert 'set JAX_PLATFORMS' not in str(caught.value)


def test_commands_multiply_in_full_float32():
    """Of a GPU or TPU, whose own choice would be less; a program says so on any machine."""
    program = (
        'import jax; from absl import flags; from qstr_jax.cli import runtime; '
        'flags.FLAGS(["", "--compilation_cache="]); runtime.start(); '
        'print(jax.jit(lambda x: x @ x).lower(jax.numpy.ones((2, 2))).as_text())'
    )
    done = subprocess.run([sys.executable, '-c', program], capture_output=True, text=True, check=True, cwd=helpers.ROOT)
    assert 'precision = [HIGHEST, HIGHEST]' in done.stdout


def test_more_devices_than_there_are_is_an_error():
    with pytest.raises(ValueError, match='num_devices=99: there are'):
        sweeps.run(sweeps.Sweep(models='zero'), 'nowhere', sweeps.Options(num_devices=99))


def test_help_lists_the_flags_that_a_command_uses():
    command = [sys.executable, '-m', 'qstr_jax', 'compare', '--help']
    told = subprocess.run(command, capture_output=True, text=True, cwd=helpers.ROOT, check=False).stdout
    assert 'Your architecture beside all others' in told
    assert '--suite:' in told
    assert '--workdir:' in told
    assert 'dry_run' not in told


@pytest.mark.slow
def test_a_damaged_file_is_said_once(tmp_path):
    """A directory is read for its table, for each figure and more."""
    folder = tmp_path / 'quickstart'
    shutil.copytree(CONFIGS.parent / 'results/quickstart', folder)
    damaged = sorted((folder / 'rows').iterdir())[0]
    damaged.write_bytes(damaged.read_bytes()[:300])
    command = [sys.executable, '-m', 'experiments.exhibit', 'quickstart', '--draw_only', f'--workdir={tmp_path}']
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stderr
    assert printed.count(f'left out: {damaged} is damaged') == 1
