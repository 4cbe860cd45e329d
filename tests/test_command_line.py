"""The command line: what a user can mend there is one line that names it."""

import pathlib
import sys

import pytest
from absl import flags
from ml_collections import config_flags

from experiments import command_line
from experiments.configs import base
from qstr_jax import sweeps
from tests import harness

CONFIGS = pathlib.Path(__file__).parents[1] / 'experiments/configs'


@pytest.fixture
def parse(monkeypatch):
    """`command_line.parse` of arguments, with flags of its own."""
    own = flags.FlagValues()
    config_flags.DEFINE_config_file('config', None, 'Settings.', flag_values=own)
    monkeypatch.setattr(flags, 'FLAGS', own)

    def call(*arguments):
        monkeypatch.setattr(sys, 'argv', ['binary', *arguments])  # where the overrides are read from
        return command_line.parse(sys.argv), own

    return call


def test_settings_are_set(parse):
    name, values = parse(f'--config={CONFIGS / "figure1a.py"}', '--config.seq_lens=8,12')
    assert name == ['binary']
    assert values.config.seq_lens == (8, 12)
    _, values = parse(f'--config={CONFIGS / "figure1a.py"}', '--config.threshold=0.1', '--config.thresholds=0.7,0.5')
    assert dict(sweeps.cells_of(base.to_sweep(values.config))[0].columns)['thresholds'] == '0.7,0.5'


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
        (('figure1a.py:rnn',), 'figure1a.py:rnn'),
        (('sensitivity.py:lstm',), "model='lstm': unknown, one of transformer, rnn, ffn"),
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
