"""The binaries of single exhibits: reduced twins end to end, and what they draw."""

import numpy as np
import pytest

from experiments import (
    attention_weights,
    heads,
    larger_n,
    learning_curves,
    n_star_erm,
    sensitivity,
)
from qstr_jax import sweeps
from qstr_jax.cli import base, sample_complexity
from qstr_jax.storage import results
from qstr_jax.sweeps import listing
from qstr_jax.theory import floors_of_rows
from tests import small
from tests.helpers import config_module

# By config: the binary, the files that it leaves, and the column and values of what was a study of folders.
EXHIBITS = {
    'heads': (heads, ('heads.png', 'table.md'), ('transformer_num_heads', {1, 2})),
    'embedding': (heads, ('heads.png', 'table.md'), ('encoding_dim', {5, 9})),
    'encodings': (
        sensitivity,
        ('heatmap_transformer.png', 'table_transformer.md'),
        ('encoding_scale', {'unscaled', 'scaled'}),
    ),
    'attention_weights': (
        attention_weights,
        ('separate_q2.png', 'separate_q2_gamma2.pdf', 'table.md'),
        ('transformer_attention', {'separate'}),
    ),
    'n_star_erm': (n_star_erm, ('figure.png', 'table.md', 'growth.md', 'lines.md'), ('reference', {'construction'})),
}
ALL = ('heads', 'embedding', 'sensitivity', 'encodings', 'attention_weights', 'larger_n', 'n_star_erm')


@pytest.mark.parametrize('name', ALL)
@pytest.mark.parametrize('size', ['get_config', 'reduced'])
def test_every_config_says_what_it_is_and_is_possible(name, size):
    config = getattr(config_module(name), size)()
    sweep = base.to_sweep(config)
    assert sweeps.cells_of(sweep)
    base.check_drawn(config, sweep)


@pytest.mark.slow
@pytest.mark.parametrize('name', EXHIBITS)
def test_reduced_exhibits_run_end_to_end(name, tmp_path):
    binary, written, (column, values) = EXHIBITS[name]
    config = config_module(name).reduced()
    sweeps.run(base.to_sweep(config), tmp_path, small.quiet())
    binary.draw(tmp_path, config)
    for file in written:
        assert (tmp_path / file).stat().st_size > 50
    rows = results.load(tmp_path)
    assert set(rows[column]) == values
    assert np.isfinite(rows['test_loss']).all()


@pytest.mark.slow
@pytest.mark.parametrize('model', ['transformer', 'ffn'])
def test_reduced_sensitivity_runs_end_to_end(model, tmp_path):
    """Learning rate and weight decay are lanes, widths are cells, of one directory."""
    config = config_module('sensitivity').reduced(model)
    sweeps.run(base.to_sweep(config), tmp_path, small.quiet())
    sensitivity.draw(tmp_path, config)
    assert (tmp_path / f'heatmap_{model}.png').stat().st_size > 5000
    rows = results.load(tmp_path)
    assert rows['cell'].nunique() == 2
    assert len(rows) == 2 * 2 * 2 * config.num_seeds


@pytest.mark.slow
def test_reduced_larger_n_runs_end_to_end(tmp_path):
    config = config_module('larger_n').reduced()
    sweeps.run(base.to_sweep(config), tmp_path, small.quiet())
    larger_n.draw(tmp_path, config)
    for file in 'figure.png', 'cost.png', 'seconds.md', 'table.md':
        assert (tmp_path / file).stat().st_size > 50
    assert 'nan' not in (tmp_path / 'seconds.md').read_text()


@pytest.mark.slow
def test_heads_draws_a_figure_for_each_further_setting(tmp_path):
    config = config_module('heads').reduced()
    config.transformer.num_heads = 1
    config.transformer.mlp_width = (8, 16)
    sweeps.run(base.to_sweep(config), tmp_path, small.quiet())
    heads.draw(tmp_path, config)
    names = {path.name for path in tmp_path.glob('*.png')}
    assert names == {'heads_transformer_mlp_width-8.png', 'heads_transformer_mlp_width-16.png'}


@pytest.mark.parametrize('model', ['transformer', 'rnn', 'ffn'])
def test_the_published_point_is_on_the_grid(model):
    config = config_module('sensitivity').get_config(model)
    cells = sweeps.cells_of(base.to_sweep(config))
    lanes = [lane for cell in cells for lane in cell.lanes]
    assert {lane.learning_rate for lane in lanes} > {config.published['learning_rate']}
    assert {lane.weight_decay for lane in lanes} > {config.published['weight_decay']}
    widths = {dict(cell.columns)[config.heatmap['panels']] for cell in cells}
    assert config.published[config.heatmap['panels']] in widths
    assert len(widths) == len(cells) == 3


def test_bad_settings_are_refused_before_anything_runs():
    config = config_module('heads').reduced()
    config.transformer.num_heads = (1, 0)
    with pytest.raises(ValueError, match='num_heads=0'):
        sweeps.cells_of(base.to_sweep(config))
    config.transformer.num_heads = ()
    with pytest.raises(ValueError, match=r'transformer.num_heads=\(\): give at least one'):
        base.to_sweep(config)


def test_floors_belong_to_the_task_of_proposition_3():
    row = {'link': 'norm2', 'indices': 'half', 'tokens': 'half', 'sparsity': 3, 'token_dim': 3}
    row['transformer_num_heads'] = 1
    assert floors_of_rows.head_floor(row) == pytest.approx(4 / 9)
    assert floors_of_rows.head_floor({**row, 'link': 'linear'}) == 0
    assert floors_of_rows.head_floor({**row, 'transformer_num_heads': None}) == 0


@pytest.mark.parametrize(
    ('binary', 'config', 'changes', 'words'),
    [
        (attention_weights, 'heads', {}, 'save_params=False: the trained parameters are what is drawn'),
        (attention_weights, 'heads', {'save_params': True, 'models': ('ffn',)}, 'models=ffn: attention is drawn'),
        (learning_curves, 'quickstart', {}, 'learners=online: .* such as adamw'),
        (sensitivity, 'quickstart', {}, 'heatmap.x is missing'),
        (n_star_erm, 'n_star_models', {}, 'learners=adamw: this binary draws ERMs in a ball'),
        (sample_complexity, 'learning_curves', {}, 'num_samples=.* draws samples to a threshold'),
    ],
)
def test_a_binary_refuses_before_any_work_what_it_cannot_draw(binary, config, changes, words):
    config = config_module(config).get_config()
    config.update(changes)
    check = getattr(binary, 'check_samples', None) or binary.check
    with pytest.raises(ValueError, match=words):
        check(config, base.to_sweep(config))


def test_names_from_the_command_line_are_split():
    config = config_module('attention_weights').get_config()
    config.transformer.attention = 'separate,merged'
    config.sparsity = 1
    cells = sweeps.cells_of(base.to_sweep(config))
    assert [cell.problem.module.attention for cell in cells] == ['separate', 'merged']


def test_a_dry_run_lists_all_points():
    text = listing.describe(base.to_sweep(config_module('heads').get_config()))
    assert '6 cells, 18 lanes' in text
