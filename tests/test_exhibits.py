"""The binaries of single exhibits: reduced twins end to end, and what they draw."""

import types

import numpy as np
import pytest

from experiments import (
    attention_weights,
    heads,
    larger_n,
    runtime,
    sample_complexity,
    sensitivity,
    study,
)
from experiments.configs import base
from qstr_jax import studies, sweeps
from tests import small
from tests.helpers import config_module

STUDIES = {
    'heads': (heads, ('heads.png', 'table.md')),
    'encodings': (sensitivity, ('heatmap_transformer.png', 'table_transformer.md')),
    'attention_weights': (attention_weights, ('separate_q2.png', 'separate_q2_gamma2.pdf', 'table.md')),
}


ALL = ('heads', 'embedding', 'sensitivity', 'encodings', 'attention_weights', 'larger_n')


@pytest.mark.parametrize('name', ALL)
@pytest.mark.parametrize('size', ['get_config', 'reduced'])
def test_every_config_says_what_it_is_and_is_possible(name, size):
    config = getattr(config_module(name), size)()
    assert study.dry_run(config) if config.axes else sweeps.cells_of(base.to_sweep(config))


@pytest.mark.slow
@pytest.mark.parametrize('name', STUDIES)
def test_reduced_studies_run_end_to_end(name, tmp_path, monkeypatch):
    binary, written = STUDIES[name]
    config = config_module(name).reduced()
    monkeypatch.setattr(runtime, 'options', small.quiet)
    study.run(config, tmp_path)
    binary.draw(tmp_path, config)
    for file in written:
        assert (tmp_path / file).stat().st_size > 50
    rows = studies.load(tmp_path)
    assert set(rows['folder']) == set(studies.points(dict(config.axes)))
    assert np.isfinite(rows['test_loss']).all()


@pytest.mark.slow
def test_reduced_larger_n_runs_end_to_end(tmp_path):
    config = config_module('larger_n').reduced()
    sweeps.run(base.to_sweep(config), tmp_path, small.quiet())
    larger_n.draw(tmp_path, config)
    for file in 'figure.png', 'cost.png', 'seconds.md', 'table.md':
        assert (tmp_path / file).stat().st_size > 50


@pytest.mark.parametrize('model', ['transformer', 'rnn', 'ffn'])
def test_the_published_point_is_on_the_grid(model):
    config = config_module('sensitivity').get_config(model)
    settings = base.to_sweep(config)
    assert set(settings.learning_rate) > {config.published['learning_rate']}
    assert set(settings.weight_decay) > {config.published['weight_decay']}
    columns = {}
    for name, point in studies.points(dict(config.axes)).items():
        cell = sweeps.cells_of(sweeps.Sweep(**{**vars(settings), **point}))[0]
        columns[name] = dict(cell.columns)[config.heatmap['panels']]
    assert config.published[config.heatmap['panels']] in columns.values()
    assert len(set(columns.values())) == 3


def test_bad_studies_are_refused_before_anything_runs(tmp_path):
    config = config_module('heads').reduced()
    with pytest.raises(ValueError, match='workdir'):
        study.run(config, None)
    config.axes.num_heads = (1, 0)
    with pytest.raises(ValueError, match='num_heads=0'):
        study.run(config, tmp_path)
    with pytest.raises(ValueError, match=r'axes=\(\)'):
        study.run(config_module('figure1a').get_config(), tmp_path)
    assert not list(tmp_path.iterdir())


def test_floors_belong_to_the_task_of_proposition_3():
    row = {'link': 'norm2', 'indices': 'half', 'tokens': 'half', 'sparsity': 3, 'token_dim': 3}
    row['transformer_num_heads'] = 1
    assert heads.floor_of(row) == pytest.approx(4 / 9)
    assert heads.floor_of({**row, 'link': 'linear'}) == 0


def test_attention_weights_wants_parameters(monkeypatch):
    config = config_module('heads').get_config()
    monkeypatch.setattr(sample_complexity, 'CONFIG', types.SimpleNamespace(value=config))
    monkeypatch.setattr(study, 'main', lambda draw: pytest.fail('runs'))
    with pytest.raises(ValueError, match='save_params=False'):
        attention_weights.run()


def test_heads_draws_one_setting(tmp_path):
    config = config_module('heads').get_config()
    config.axes.mlp_width = (8, 16)
    with pytest.raises(ValueError, match='one setting can be drawn'):
        heads.draw(tmp_path, config)


def test_names_from_the_command_line_are_split():
    config = config_module('attention_weights').get_config()
    config.axes.attention = ('separate,merged',)
    assert list(study.points(config)) == ['attention=separate', 'attention=merged']


def test_a_dry_run_lists_all_points():
    text = study.dry_run(config_module('heads').get_config())
    assert all(f'num_heads={count}' in text for count in range(1, 7))
