"""Whatever the settings, a dry run of every binary ends in success or in one line.

The suite tries most on one binary, since the others share its way; FUZZ=1000 before pytest tries as many on each.
"""

import functools
import importlib
import os

import hypothesis
import pytest
from hypothesis import strategies as st
from ml_collections import config_dict

from qstr_jax.cli import base
from qstr_jax.settings import registry
from tests import helpers

# By name a binary and a config, made small; what is generated comes after.
SMALL = ('seq_lens=3', 'models=ffn', 'num_seeds=2')
BINARIES = {
    'sample_complexity': ('sample_complexity', 'quickstart', SMALL),
    'launch': ('launch', 'quickstart', SMALL),
    'learning_curves': ('sample_complexity', 'learning_curves', ('seq_lens=3',)),
    'figure2': ('sample_complexity', 'figure2', ('seq_lens=3',)),
    'sensitivity': ('sample_complexity', 'sensitivity', ('learning_rate=1e-3',)),
}
NASTY = (
    '', '0', '1', '2', '-1', '3,4', '4,4', '0.5', '1e-3', '1e999', '1e300', '1e-300', 'nan', 'inf', 'None', 'True',
    '()', '{}', '{1: 2}', '[[1], [2]]', '(1,', '((2,), (3, 4))', "'", 'nowhere', '10000000', '99999999999999999999',
    'linear', 'seq_len',
)  # fmt: skip
# What once ended in a traceback, in nonsense or in a full memory; tried every time.
KNOWN = (
    'config.seq_lens.foo=3', 'config.linear.x=3', 'config.models[0]=rnn', 'config.seq_lens=99999999999999999999',
    'config.num_samples=[[1], [2]]', 'config.probes=[[1], [2]]',
    'config.published_samples=3', 'config.published_samples=((1, 2),)',
    'config.notes=(3,)', 'config.x=', 'config.num_seeds=10000000', 'config.axes={"nowhere": (1, 2)}',
    'config.threshold=inf', 'config.learning_rate=1e999', 'config.encoding_dim=1000000000000', 'memory_limit_gb=inf',
    'memory_limit_gb=0', 'checkpoint_seconds=nan', 'num_processes=2', 'num_shards=100000000000', 'coordinator=',
)  # fmt: skip
FLAGS = ('memory_limit_gb', 'checkpoint_seconds', 'num_devices', 'num_processes', 'process_id', 'coordinator')
FLAGS += ('num_shards', 'shard_index', 'compilation_cache', 'distributed')
ODD = (
    'nowhere',
    'seq_lens.foo',
    'task.name.foo',
    'rnn.',
    '.',
    '',
    'models[0]',
    'models.0',
    'linear.x',
    'items',
    '__class__',
)


def flat(config, prefix=''):
    """Names of all settings of a config, with dots."""
    for name in config:
        value = config.get(name)
        yield from (
            flat(value, f'{prefix}{name}.') if isinstance(value, config_dict.ConfigDict) else (f'{prefix}{name}',)
        )


@functools.cache
def names():
    """What can be set on a command line, and what cannot."""
    return (*(f'config.{name}' for name in (*flat(base.get_config()), *ODD) if name != 'plugins'), *FLAGS)


def words():
    """Lists of further words of a command line."""
    nasty = st.sampled_from(NASTY)
    values = st.one_of(nasty, nasty, st.sampled_from(list(registry.entries())), st.floats().map(str))
    axes = st.dictionaries(st.sampled_from(names()).map(lambda name: name.removeprefix('config.')), values)
    word = st.builds('--{}={}'.format, st.sampled_from(names()), values)
    return st.lists(word | axes.map('--config.axes={}'.format), min_size=1, max_size=2)


def end_of(name, *arguments):
    """How a binary ends in this process: what it gives to `sys.exit`."""
    binary, config, small = BINARIES[name]
    module = importlib.import_module(f'experiments.{binary}')
    path = f'{helpers.ROOT}/experiments/exhibits/{config}.py'
    first = f'--config={path}', '--dry_run', '--workdir=nowhere', *(f'--config.{one}' for one in small)
    return helpers.end_of(module, *first, *arguments)


@pytest.mark.usefixtures('_as_before')
@pytest.mark.parametrize('binary', BINARIES)
def test_a_dry_run_ends_in_success_or_in_one_line(binary):
    assert end_of(binary) in (None, 0)
    is_first = binary == 'sample_complexity'

    @hypothesis.settings(
        max_examples=int(os.environ.get('FUZZ', 200 if is_first else 10)), deadline=None, derandomize=True,
        database=None, suppress_health_check=list(hypothesis.HealthCheck),
    )  # fmt: skip
    @hypothesis.given(words())
    def ends_well(arguments):
        code = end_of(binary, *arguments)
        is_line = isinstance(code, str) and code.startswith('error: ') and '\n' not in code
        assert code in (None, 0) or is_line, code

    for word in KNOWN if is_first else ():
        ends_well = hypothesis.example([f'--{word}'])(ends_well)
    ends_well()
