"""Runs beside the floors of their own draw."""

import pandas as pd
import pytest

from qstr_jax import plots
from qstr_jax.analysis import floors


def rows():
    base = {'task': 'simple_qstr', 'seq_len': 5, 'token_dim': 2, 'task_seed': 0, 'learner': 'stationary',
            'test_loss_se': 0.01, 'converged': True, 'span_residual': 1e-6}  # fmt: skip
    table = []
    for seed, floor in ((0, 0.45), (1, 0.55)):
        oracle = {'model': 'theorem6_oracle', 'learner': 'closed_form', 'theorem6_floor': floor, 'test_loss': floor}
        for more in (oracle, {'model': 'ffn', 'test_loss': 0.5}, {'model': 'transformer', 'test_loss': 0.1}):
            table.append({**base, 'num_samples': 5, 'seed': seed, **more})
    return pd.DataFrame(table)


def test_every_run_gets_its_own_floor():
    joined = floors.with_floor(rows())
    assert list(joined['floor']) == [0.45] * 3 + [0.55] * 3
    assert (joined['load'] == 0.5).all()
    ffn = joined[joined['model'] == 'ffn']
    assert list(ffn['margin']) == pytest.approx([0.05, -0.05])
    assert ffn['is_bound'].all()
    assert not joined[joined['model'] == 'transformer']['is_bound'].any()


def test_a_crossed_floor_is_counted():
    table = floors.floor_table(floors.with_floor(rows())).set_index('model')
    assert table.loc['ffn', 'num_below'] == 1
    assert table.loc['ffn', 'worst_se'] == pytest.approx(-5)
    assert table.loc['transformer', 'num_below'] == 2
    assert table.loc['theorem6_oracle', 'num_below'] == 0
    assert table.loc['ffn', 'printed_floor'] == 0.5


@pytest.mark.parametrize(
    ('margin', 'standard_error', 'is_below'),
    [(-0.02, 0.01, False), (-0.04, 0.01, True), (0.04, 0.01, False), (-1e-6, 1e-9, False), (-1e-4, 1e-9, True)],
)
def test_a_run_is_below_its_floor_beyond_noise_and_rounding(margin, standard_error, is_below):
    """More than three standard errors, and more than 1e-5."""
    run = rows().iloc[[1]].assign(load=1.0, floor=0.0, printed_floor=0.0)
    table = floors.floor_table(run.assign(margin=margin, test_loss=margin, test_loss_se=standard_error))
    assert table['num_below'].tolist() == [is_below]


def test_runs_without_an_oracle_are_refused():
    with pytest.raises(ValueError, match='theorem6_oracle'):
        floors.with_floor(rows()[lambda table: table['model'] == 'ffn'])
    table = rows()
    table.loc[table['model'] == 'ffn', 'seed'] = 7
    with pytest.raises(ValueError, match='no oracle for'):
        floors.with_floor(table)


def test_the_floor_is_that_of_the_theorem():
    assert floors.theorem6_floor(5, 5, 2) == 0.5
    assert floors.theorem6_floor(0, 5, 2) == 1
    assert floors.theorem6_floor(11, 5, 2) == 0
    with pytest.raises(ValueError, match='seq_len'):
        floors.theorem6_floor(1, 0, 2)
    with pytest.raises(ValueError, match='num_samples'):
        floors.theorem6_floor(-1, 5, 2)


def test_draws_of_other_tasks_are_not_mixed_up():
    other = rows().assign(link='mean')
    other.loc[other['model'] == 'theorem6_oracle', 'theorem6_floor'] = 0.3
    joined = floors.with_floor(pd.concat([rows().assign(link='linear', encoding_dim=None), other]))
    assert set(joined.loc[joined['link'] == 'mean', 'floor']) == {0.3}
    assert set(joined.loc[joined['link'] == 'linear', 'floor']) == {0.45, 0.55}


def test_runs_that_learnt_nothing_are_counted_and_not_drawn():
    lost = rows()
    lost.loc[(lost['model'] == 'ffn') & (lost['seed'] == 1), 'test_loss'] = 1.2
    figure = plots.loss_against_floor(floors.with_floor(lost))
    [mean] = [line for line in figure.axes[0].get_lines() if line.get_gid() == 'mean ffn']
    assert list(mean.get_ydata()) == [0.5]
    words = ' '.join(figure.get_supxlabel().split())
    assert 'not drawn: runs that err by 1 or more, as predicting nothing does: 1' in words
