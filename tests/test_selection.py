"""Choosing hyperparameters by validation, and the names of curves."""

import numpy as np
import pandas as pd
import pytest

from qstr_jax.analysis import selection


def rows(**changes):
    """Two settings at two n; the test loss would choose the other one."""
    table = [
        {
            'model': 'ffn', 'learner': 'adamw', 'task': 'qstr', 'sparsity': 1, 'seq_len': 4, 'budget': 0.0,
            'num_samples': n, 'seed': seed, 'learning_rate': rate, 'weight_decay': 0.1, 'is_search': False,
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
    table = rows(is_search=True, samples_to_threshold=100)
    table['validation_samples_to_threshold'] = pd.array(
        [300 if rate == 1e-3 else pd.NA for rate in table['learning_rate']], 'Int64'
    )
    # What n was found is no part of the point then.
    table['num_samples'] = np.arange(len(table))
    assert set(selection.select(table)['learning_rate']) == {1e-3}


def test_sensitivity_in_numbers():
    table = selection.sensitivity(rows())
    assert len(table) == 2
    line = table.iloc[0]
    assert (line['chosen'], line['best'], line['worst']) == pytest.approx((0.61, 0.31, 0.61))
    assert line['median'] == pytest.approx((0.31 + 0.61) / 2)
    assert line['num_settings'] == 2


def test_a_setting_that_never_reached_is_the_worst():
    table = rows(is_search=True)
    table['samples_to_threshold'] = pd.array([50 if r == 1e-3 else pd.NA for r in table['learning_rate']], 'Int64')
    table['validation_samples_to_threshold'] = table['samples_to_threshold']
    line = selection.sensitivity(table, value='samples_to_threshold').iloc[0]
    assert (line['chosen'], line['best'], line['worst']) == (50, 50, np.inf)


def test_curves_are_named_by_what_differs():
    table = pd.concat([rows(), rows(learner='constrained', budget=0.5), rows(learner='constrained', budget=2.0)])
    assert set(selection.name_curves(table)['model']) == {
        'ffn adamw R = 0', 'ffn constrained R = 0.5', 'ffn constrained R = 2',
    }  # fmt: skip
    assert set(selection.name_curves(rows())['model']) == {'ffn'}


def test_rows_without_validation_are_refused():
    with pytest.raises(ValueError, match='validation_loss'):
        selection.select(rows().drop(columns='validation_loss'))
