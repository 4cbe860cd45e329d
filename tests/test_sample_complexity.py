"""The binary: reduced twins of its configs end to end, overrides, and bad input."""

import subprocess
import sys

import pytest

from experiments import sample_complexity
from qstr_jax import sweeps
from qstr_jax.storage import results
from tests import harness, helpers, small
from tests.helpers import config_module

CONFIGS = helpers.configs_of('sample_complexity')


# The quick suite has one of them, the main job's.
TWINS = [pytest.param(name, marks=[pytest.mark.slow] if name != 'quickstart' else []) for name in CONFIGS]


@pytest.mark.parametrize('name', TWINS)
def test_reduced_twins_run_end_to_end(name, tmp_path):
    config = config_module(name).reduced()
    settings = sample_complexity.settings_from(config)
    rows = sweeps.run(settings, tmp_path, small.quiet())
    sample_complexity.draw(tmp_path, config)
    lanes = len(config.seq_lens) * len(config.sparsity) * config.num_seeds * len(config.models)
    assert len(rows) == lanes
    assert (rows['outcome'] == 'reached').sum() >= lanes / 2
    curves = [f'curves_q{q}.png' for q in config.sparsity] if len(config.sparsity) > 1 else ['curves.png']
    for file in 'figure.png', 'figure.pdf', 'table.md', *curves:
        assert (tmp_path / file).stat().st_size > 50


def test_figure1a_is_the_published_setting():
    settings = sample_complexity.settings_from(config_module('figure1a').get_config())
    cells = sweeps.cells_of(settings)
    assert len(cells) == 18
    columns = dict(cells[0].columns)
    published = {
        'batch_size': 64, 'check_every': 10, 'threshold': 0.7, 'max_samples': 10**6, 'test_samples': 5000,
        'test_task': 'simple_qstr', 'token_dim': 10, 'encoding_scale': 'unscaled', 'link': 'linear',
    }  # fmt: skip
    assert {name: columns[name] for name in published} == published
    assert (settings.num_seeds, settings.learning_rate, settings.weight_decay) == (5, (1e-3,), (0.01,))


def test_overrides_by_the_promised_names(tmp_path):
    """Every override of the issue in one dry run."""
    overrides = (
        'models=transformer,ffn', 'task=simple_qstr', 'seq_lens=8,12', 'sparsity=2', 'token_dim=5', 'encoding_dim=60',
        'encoding_scale=scaled', 'max_coherence=0.5', 'link=hermite2', 'num_heads=3', 'attention=merged',
        'mlp_width=32', 'rnn_cell=lstm', 'rnn_width=10', 'rnn_states=exclusive', 'rnn_readout=mlp',
        'ffn_form=theorem6', 'ffn_widths=20,10', 'risk=pointwise', 'num_seeds=2', 'task_per_lane=True',
        'batch_size=32', 'learning_rate=3e-4', 'weight_decay=0.05', 'threshold=0.5', 'check_every=7',
        'max_samples=10000', 'test_samples=300', 'screen=False', 'preset=paper',
    )  # fmt: skip
    texts = [f'--config.{text}' for text in overrides]
    done = harness.run_binary('sample_complexity', '--config=experiments/configs/figure1a.py', '--dry_run', *texts)
    assert done.returncode == 0, done.stderr
    assert 'ffn-simple_qstr-N12-q2' in done.stdout
    assert '4 cells, 8 lanes' in done.stdout


@pytest.mark.slow
def test_end_to_end_as_a_command_and_once_more(tmp_path):
    """Rows, figure and table; the second call runs nothing and says the same."""
    arguments = [
        '--config=experiments/configs/quickstart.py', f'--workdir={tmp_path / "sweep"}', '--config.models=ffn',
        '--config.seq_lens=2,3', '--config.num_seeds=2', '--config.test_samples=100',
        f'--compilation_cache={tmp_path / "cache"}',
    ]  # fmt: skip
    # In a new Python and with the user's programs; all other binaries of the tests share their imports.
    call = [sys.executable, '-m', 'experiments.sample_complexity', *arguments]
    first = subprocess.run(call, capture_output=True, text=True, cwd=helpers.ROOT, timeout=300)
    assert first.returncode == 0, first.stderr
    assert 'device: cpu' in first.stderr
    rows = {path: path.read_bytes() for path in tmp_path.glob('sweep/rows/*')}
    second = harness.run_binary('sample_complexity', *arguments)
    assert second.returncode == 0
    assert second.stdout == first.stdout
    assert rows == {path: path.read_bytes() for path in tmp_path.glob('sweep/rows/*')}
    assert len(results.load(tmp_path / 'sweep')) == 4


@pytest.mark.parametrize(
    ('override', 'word'),
    [('num_heads=0', 'num_heads'), ('sparsity=20', 'sparsity'), ('models=lstm', 'transformer, rnn, ffn')],
)
def test_bad_input_is_one_line(override, word, tmp_path):
    arguments = [f'--workdir={tmp_path}', f'--config.{override}']
    done = harness.run_binary('sample_complexity', '--config=experiments/configs/figure1a.py', *arguments)
    helpers.assert_one_error(done, word)


@pytest.mark.parametrize(
    ('changes', 'words'),
    [
        ({'plugins': ('no_such_module',)}, "plugins='no_such_module': No module named"),
        ({'x': 'width'}, "x='width': unknown, one of seq_len, sparsity"),
    ],
)
def test_what_is_no_setting_of_a_sweep_is_checked_too(changes, words):
    config = config_module('figure1a').get_config()
    config.update(changes)
    with pytest.raises(ValueError, match=words):
        sample_complexity.settings_from(config)


def test_a_config_of_another_binary_is_named_as_such():
    with pytest.raises(ValueError, match='--config is not of a sweep, it has no plugins'):
        sample_complexity.settings_from(config_module('theorems').get_config())


def test_a_config_with_several_learning_rates_gets_a_figure_each(tmp_path):
    config = config_module('quickstart').reduced()
    config.models, config.seq_lens, config.learning_rate = ('ffn',), (2,), (1e-3, 3e-3)
    sweeps.run(sample_complexity.settings_from(config), tmp_path, small.quiet())
    sample_complexity.draw(tmp_path, config)
    assert {path.name for path in tmp_path.glob('figure_*.png')} == {
        'figure_lr0.001_wd0.01.png', 'figure_lr0.003_wd0.01.png',
    }  # fmt: skip
