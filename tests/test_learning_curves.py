"""The binary of fixed-sample learners: reduced twins of its configs end to end, figures, bad input."""

import pandas as pd
import pytest

from experiments import learning_curves
from qstr_jax import sweeps
from qstr_jax.cli import base
from qstr_jax.storage import results
from tests import harness, helpers, small

CONFIGS = helpers.configs_of('learning_curves')
FIGURES = {
    'learning_curves': 'learning_curves.png',
    'n_star': 'figure.png',
    'n_star_models': 'figure.png',
    'n_star_models_erm': 'figure.png',
    'theorem6': 'floor.png',
    'theorem6_control': 'floor.png',
}


@pytest.mark.parametrize('name', CONFIGS)
def test_every_config_says_what_it_is_and_is_possible(name):
    assert sweeps.cells_of(base.to_sweep(helpers.config_module(name).get_config()))


@pytest.mark.slow
@pytest.mark.parametrize('name', CONFIGS)
def test_reduced_twins_run_end_to_end(name, tmp_path):
    config = helpers.config_module(name).reduced()
    settings = base.to_sweep(config)
    rows = sweeps.run(settings, tmp_path, small.quiet())
    learning_curves.draw(tmp_path, config)
    assert len(rows) == sum(len(cell.lanes) for cell in sweeps.cells_of(settings))
    assert set(rows['outcome']) <= {'fitted', 'reached', 'censored', 'censored_below'}
    assert (tmp_path / FIGURES[name]).stat().st_size > 5000
    assert (tmp_path / 'sensitivity.md').read_text().startswith('|')
    again = sweeps.run(settings, tmp_path, small.quiet())
    pd.testing.assert_frame_equal(rows, again)
    curves = results.load_curves(tmp_path)
    assert (curves.groupby(['model', 'seq_len', 'seed'])['samples'].count() >= 1).all()


@pytest.mark.parametrize('part', ['wide', 'log_labels', 'wide_labels'])
def test_parts_of_n_star_erm_are_possible(part):
    module = helpers.config_module('n_star_erm')
    cells = sweeps.cells_of(base.to_sweep(module.get_config(part)))
    tasks = [cell.problem.task for cell in cells]
    assert {task.name for task in tasks} == {'random_labels' if part.endswith('labels') else 'qstr'}
    assert [task.encoding_dim for task in tasks] == ([75] * 4 if part.startswith('wide') else [6, 8, 10, 12])
    assert sweeps.cells_of(base.to_sweep(module.reduced(part)))


@pytest.mark.parametrize('model', ['rnn', 'ffn'])
def test_models_without_attention_start_at_two_draws(model):
    cells = sweeps.cells_of(base.to_sweep(helpers.config_module('n_star_models_erm').get_config(model)))
    assert {cell.problem.learner.starts for cell in cells} == {('init', 'init:1')}


def test_overrides_in_a_dry_run():
    done = harness.run_binary(
        'learning_curves', '--config=experiments/configs/n_star.py', '--dry_run',
        '--config.seq_lens=8,16', '--config.num_seeds=2',
        '--config.learners=min_norm,stationary', '--config.models=transformer,ffn',
        '--config.min_norm.epsilon=0.01', '--config.stationary.optimizer=sgd', '--config.stationary.weight_decay=0.1',
        '--config.risk=pointwise', '--config.batch_size=0', '--config.radius=None', '--config.radius_unit=None',
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert '8 cells, 16 lanes' in done.stdout


@pytest.mark.parametrize(
    ('overrides', 'word'),
    [
        (('num_samples=0',), 'num_samples'),
        (('num_samples=0.33', 'samples_unit=Nd'), 'not a whole number'),
        (('learners=erm',), 'learners'),
        (('radius=-1.0',), 'radius'),
        (('budget=1.0',), 'budget'),
        (('weight_decay=0.1',), 'weight_decay=0.1: would be ignored'),
        (('resolution=0.0',), 'resolution'),
    ],
)
def test_bad_input_is_one_line(overrides, word, tmp_path):
    arguments = [f'--workdir={tmp_path}', *(f'--config.{text}' for text in overrides)]
    done = harness.run_binary('learning_curves', '--config=experiments/configs/n_star.py', *arguments)
    helpers.assert_one_error(done, word)
