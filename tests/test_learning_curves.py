"""The binary of fixed-sample learners: reduced twins of its configs end to end, figures, bad input."""

import numpy as np
import pandas as pd
import pytest

from experiments import learning_curves
from experiments.configs import base
from qstr_jax import plots, sweeps
from qstr_jax.storage import results
from tests import harness, helpers, small

CONFIGS = helpers.configs_of('learning_curves')
FIGURES = {
    'learning_curves': 'learning_curves.png',
    'n_star': 'figure.png',
    'n_star_models': 'figure.png',
    'theorem6': 'floor.png',
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


def test_overrides_in_a_dry_run():
    done = harness.run_binary(
        'learning_curves', '--config=experiments/configs/n_star.py', '--dry_run',
        '--config.seq_lens=8,16', '--config.num_seeds=2',
        '--config.learners=min_norm,stationary', '--config.models=transformer,ffn', '--config.optimizer=sgd',
        '--config.epsilon=0.01', '--config.weight_decay=0.1', '--config.risk=pointwise', '--config.batch_size=0',
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert '8 cells, 16 lanes' in done.stdout


@pytest.mark.parametrize(
    ('overrides', 'word'),
    [
        (('num_samples=0',), 'num_samples'),
        (('num_samples=0.33', 'samples_unit=Nd'), 'no integer'),
        (('learners=erm',), 'learners'),
        (('budget=-1.0',), 'budget'),
        (('resolution=0.0',), 'resolution'),
    ],
)
def test_bad_input_is_one_line(overrides, word, tmp_path):
    arguments = [f'--workdir={tmp_path}', *(f'--config.{text}' for text in overrides)]
    done = harness.run_binary('learning_curves', '--config=experiments/configs/n_star.py', *arguments)
    helpers.assert_one_error(done, word)


def rows(**changes):
    """Rows of a search that knows every outcome."""
    outcomes = ['reached', 'reached', 'censored', 'censored_below']
    table = [
        {
            'model': model, 'task': 'qstr', 'sparsity': 1, 'seq_len': n, 'seed': seed, 'outcome': outcome,
            'samples_to_threshold': 10 * n + seed if outcome == 'reached' else pd.NA, 'max_samples': 1000,
            'min_samples': 5, 'threshold': 0.05,
        }
        for model in ('transformer', 'ffn') for n in (8, 16, 64) for seed, outcome in enumerate(outcomes)
    ]  # fmt: skip
    return pd.DataFrame(table).assign(**changes).astype({'samples_to_threshold': 'Int64'})


def test_scaling_draws_every_lane_and_the_median():
    figure = plots.scaling(rows(), 'title', ('note',))
    (axis,) = figure.axes
    assert axis.get_xscale() == axis.get_yscale() == 'log'
    ids = [line.get_gid() for line in axis.lines]
    assert ids.count('reached') == ids.count('censored') == ids.count('censored_below') == 2
    median = next(line for line in axis.lines if line.get_gid() == 'median ffn')
    # 10 n, 10 n + 1, infinite, 5: the middle of four.
    np.testing.assert_allclose(median.get_ydata(), [80.5, 160.5, 640.5])
    assert '△ more than the largest n tried; ▽ the smallest' in figure.get_supxlabel().replace('\n', ' ')
    assert '(known at 0 of 3 N)' in axis.get_legend().get_texts()[0].get_text()
    powers = plots.scaling(rows()[lambda table: table['outcome'] == 'reached']).axes[0].get_legend().get_texts()
    assert powers[0].get_text().startswith('Transformer  $N^{1.00}$ [')


def test_learning_curves_have_a_panel_per_length():
    table = pd.DataFrame([
        {'model': model, 'task': 'qstr', 'seq_len': n, 'seed': seed, 'num_samples': size, 'test_loss': loss / size}
        for model in ('transformer', 'zero') for n in (4, 8) for seed in range(3) for size in (10, 100)
        for loss in (1.0 + seed,)
    ])  # fmt: skip
    figure = plots.learning_curves(table, threshold=0.05)
    assert len(figure.axes) == 2
    median = next(line for line in figure.axes[0].lines if line.get_gid() == 'median transformer')
    np.testing.assert_allclose(median.get_ydata(), [0.2, 0.02])
    figure = plots.learning_curves(table.assign(test_loss=table['test_loss'].where(table['model'] != 'zero', 1e-12)))
    figure.canvas.draw()
    assert figure.axes[0].yaxis.get_major_formatter()(1e-3, 0) == '≤ 0.001'
    with pytest.raises(ValueError, match='num_samples'):
        plots.learning_curves(table.drop(columns='num_samples'))
