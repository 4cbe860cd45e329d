"""Choosing hyperparameters by validation, and the names of curves."""

import numpy as np
import pandas as pd
import pytest

from qstr_jax import analysis
from qstr_jax.analysis import selection
from qstr_jax.report import directory, explorer, section


def rows(**changes):
    """Two settings at two n; the test loss would choose the other one."""
    table = [
        {
            'model': 'ffn', 'learner': 'adamw', 'task': 'qstr', 'sparsity': 1, 'seq_len': 4, 'radius': np.nan,
            'num_samples': n, 'sample_size': n, 'seed': seed,
            'learning_rate': rate, 'weight_decay': 0.1, 'is_search': False,
            'validation_loss': (0.5 if rate == 1e-3 else 0.4) + 0.01 * seed,
            'test_loss': (0.3 if rate == 1e-3 else 0.6) + 0.01 * seed,
        }
        for n in (10, 20) for seed in range(3) for rate in (1e-3, 1e-2)
    ]  # fmt: skip
    return pd.DataFrame(table).assign(**changes)


def test_validation_chooses_and_test_does_not():
    chosen = selection.select(rows())
    assert len(chosen) == 6
    assert set(chosen['learning_rate']) == {1e-2}


def test_each_point_has_a_choice_of_its_own():
    table = rows()
    table.loc[(table['num_samples'] == 20) & (table['learning_rate'] == 1e-3), 'validation_loss'] = 0.1
    chosen = selection.select(table)
    assert dict(chosen.groupby('num_samples')['learning_rate'].first()) == {10: 1e-2, 20: 1e-3}


def test_a_search_is_judged_by_its_validation_samples():
    table = rows(is_search=True, samples_to_threshold=100, sample_size=0)
    table['validation_samples_to_threshold'] = pd.array(
        [300 if rate == 1e-3 else pd.NA for rate in table['learning_rate']], 'Int64'
    )
    table['num_samples'] = np.arange(len(table))  # The n that was found is no setting.
    assert set(selection.select(table)['learning_rate']) == {1e-3}


def test_sensitivity_in_numbers():
    table = selection.sensitivity(rows())
    assert len(table) == 2
    line = table.iloc[0]
    assert (line['chosen'], line['best'], line['worst']) == pytest.approx((0.61, 0.31, 0.61))
    assert line['median'] == pytest.approx((0.31 + 0.61) / 2)
    assert line['num_settings'] == 2


def test_a_setting_that_never_reached_is_the_worst():
    table = rows(is_search=True, sample_size=0)
    table['samples_to_threshold'] = pd.array([50 if r == 1e-3 else pd.NA for r in table['learning_rate']], 'Int64')
    table['validation_samples_to_threshold'] = table['samples_to_threshold']
    line = selection.sensitivity(table, value='samples_to_threshold').iloc[0]
    assert (line['chosen'], line['best'], line['worst']) == (50, 50, np.inf)


def test_curves_of_the_chosen_rows_are_named_by_what_differs():
    table = pd.concat([rows(), rows(learner='constrained', radius=0.5), rows(learner='constrained', radius=2.0)])
    names = [curve.name for curve in analysis.split_curves(selection.select(table), 'sample_size')]
    assert names == ['FFN, adamw', 'FFN, constrained, R = 0.5', 'FFN, constrained, R = 2']
    (curve,) = analysis.split_curves(selection.select(rows()), 'sample_size')
    assert curve.name == 'FFN'


def test_any_setting_can_be_chosen():
    table = rows(ffn_form='flat')
    table['ffn_form'] = np.where(table['learning_rate'] == 1e-2, 'flat', 'tokens')
    assert set(selection.select(table, ('ffn_form',))['learning_rate']) == {1e-3, 1e-2}
    assert set(selection.select(table, ('ffn_form', 'learning_rate'))['ffn_form']) == {'flat'}


def test_rows_without_validation_are_refused():
    with pytest.raises(ValueError, match='validation_loss'):
        selection.select(rows().drop(columns='validation_loss'))


def test_learners_without_a_weight_decay_are_selected_by_what_they_have():
    rows = pd.DataFrame({
        'model': 'transformer', 'learner': 'constrained', 'seq_len': 4, 'seed': [0, 1, 0, 1],
        'learning_rate': [0.1, 0.1, 0.2, 0.2], 'validation_loss': [0.5, 0.4, 0.1, 0.2], 'test_loss': 1.0,
    })  # fmt: skip
    assert set(selection.select(rows)['learning_rate']) == {0.2}
    assert len(selection.select(rows.drop(columns='learning_rate').head(2))) == 2


def test_a_rate_whose_lanes_diverge_is_not_chosen_for_the_one_that_is_left(tmp_path):
    table = rows(outcome='fitted', is_search=False)
    lost = (table['learning_rate'] == 1e-2) & (table['seed'] > 0)
    table.loc[lost, ['outcome', 'validation_loss', 'test_loss']] = 'diverged', np.nan, np.nan
    found = section.Section(name='fits')
    directory.add(found, table, pd.DataFrame())
    [(_, losses)] = found.tables
    assert losses['n = 10'].tolist() == pytest.approx([0.31])
    chosen = explorer._with_choice(table.assign(lane=range(len(table))))
    assert set(chosen.loc[chosen[explorer._CHOSEN], 'learning_rate']) == {1e-3}
    table = table.assign(learning_rate=1e-2)[table['learning_rate'] == 1e-2]
    found = section.Section(name='fits')
    directory.add(found, table, pd.DataFrame())
    assert '4 of 6 lanes with the chosen settings diverged and are not shown.' in [one.text for one in found.words]
