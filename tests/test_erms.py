"""Which rows are ERMs, and where ERMs that were found err."""

import pandas as pd
import pytest

from qstr_jax import analysis
from qstr_jax.analysis import erms


def fits(*lanes):
    """Fits of lanes: (n, is_erm, test_loss) each."""
    return pd.DataFrame([
        {'seq_len': 8, 'seed': seed, 'samples': n, 'is_erm': is_erm, 'test_loss': loss, 'threshold': 0.05}
        for seed, lane in enumerate(lanes) for n, is_erm, loss in lane
    ])  # fmt: skip


def test_rows_without_a_reference_are_neither_known_nor_short():
    rows = pd.DataFrame({'is_erm': [True, False, None], 'learner': 'constrained'})
    assert erms.is_known(rows).tolist() == [True, True, False]
    assert erms.is_short(rows).tolist() == [False, True, False]
    old = rows.drop(columns='is_erm')
    assert not erms.is_known(old).any()
    assert not erms.is_short(old).any()


def test_a_fit_without_a_reference_is_an_erm_by_its_own_risk_in_a_ball_alone():
    rows = pd.DataFrame({'learner': ['constrained', 'constrained', 'adamw'], 'train_risk': [1e-5, 2e-3, 1e-5]})
    found = erms.by_own_risk(rows)
    assert erms.is_known(found).tolist() == [True, True, False]
    assert erms.is_short(found).tolist() == [False, True, False]
    assert not erms.is_known(erms.by_own_risk(rows.drop(columns='train_risk'))).any()
    compared = rows.assign(is_erm=[False, True, None])
    assert erms.is_short(erms.by_own_risk(compared)).tolist() == [True, False, False]


def test_only_erms_that_miss_the_threshold_fail():
    first = [(10, True, 1.0), (20, True, 0.05), (40, False, 1.0), (80, True, 0.01)]
    second = [(10, True, 0.5), (20, False, 0.5), (40, True, 0.04)]
    third = [(10, False, 1.0), (20, True, 0.01)]
    found = erms.failing(fits(first, second, third), ['seq_len'])
    assert found.to_dict('records') == [{'seq_len': 8, 'samples': (20 + 10 + 0) / 3, 'num_lanes': 3}]


def test_a_search_whose_largest_miss_is_no_erm_is_a_bound():
    rows = pd.DataFrame({'outcome': ['reached', 'reached', 'reached', 'censored'], 'samples_to_threshold': 80})
    assert not erms.is_at_most(rows).any()
    rows = rows.assign(miss_is_erm=[True, False, None, False])
    assert erms.is_at_most(rows).tolist() == [False, True, False, False]
    assert erms.with_bounds(rows)['outcome'].tolist() == ['reached', erms.AT_MOST, 'reached', 'censored']


def test_a_mean_with_such_a_lane_is_an_upper_bound():
    rows = pd.DataFrame({
        'model': 'transformer', 'learner': 'constrained', 'seq_len': 8, 'seed': [0, 1], 'outcome': 'reached',
        'samples_to_threshold': [400, 500], 'max_samples': 1000, 'miss_is_erm': [True, True],
    })  # fmt: skip
    by = ['model', 'seq_len']
    [exact] = analysis.summarize(rows, by).to_dict('records')
    [bound] = analysis.summarize(rows.assign(miss_is_erm=[True, False]), by).to_dict('records')
    assert not exact['upper_bound']
    assert exact['low'] <= exact['mean'] == bound['mean'] == pytest.approx(20e4**0.5)
    assert bound['upper_bound']
    assert pd.isna(bound['low'])
    assert analysis.samples_table(rows)['N = 8'].tolist() == ['447 (108–1.85k)']
    assert analysis.samples_table(rows.assign(miss_is_erm=False))['N = 8'].tolist() == ['≤ 447']
