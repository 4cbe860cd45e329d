"""Verdicts of single cards on made-up rows: each can hold, and each can fail."""

import itertools

import jax
import numpy as np
import pandas as pd
import pytest

from experiments import cards
from experiments.exhibits import (
    card_alpha,
    card_bounds,
    card_proposition8,
    card_proposition21,
    card_theorem4,
    card_theorem6,
    card_theorem9,
)
from qstr_jax import sweeps, tasks
from qstr_jax.storage import files
from qstr_jax.theory import draws, floors
from tests import small


def failing(checks):
    return [one.what for one in checks if not one.holds]


def theorem6_rows(shift):
    """Rows of FFNs `shift` above their floor with the oracle at it, and of one Transformer below."""
    rows = []
    for lane, load in itertools.product(range(3), (0.2, 0.5, 0.8, 1.2)):
        floor = max(0.0, 1 - load + 0.02 * (lane - 1))
        row = {'network': 'FFN', 'task': 'qstr', 'seq_len': 5, 'num_samples': 20 * load, 'lane': lane, 'load': load}
        row |= {'loss': floor + shift, 'error': 0.0, 'residual': 1e-4, 'off_span': 1e-6, 'floor': floor}
        rows.append(row | {'oracle': floor, 'oracle_error': 0.01})
    rows.append({**rows[1], 'network': 'Transformer', 'loss': 0.01})
    return pd.DataFrame(rows)


def test_theorem6_verdict():
    assert failing(card_theorem6.checks_of(theorem6_rows(0.1))) == []
    own, mean = 'FFNs ≥ the floor of their own (u, training set)', 'mean over draws ≥ 1 − n/(Nd)'
    assert failing(card_theorem6.checks_of(theorem6_rows(-0.05))) == [own, mean]
    no_power = failing(card_theorem6.checks_of(theorem6_rows(0.9)))  # All losses are above 1: nothing was tested.
    assert no_power[:2] == [own, mean]


def test_theorem6_counts_only_runs_that_could_have_crossed():
    own = card_theorem6.checks_of(theorem6_rows(0.25))[0]
    assert (own.count, own.idle) == (6, 6)  # At n = 0.2 N d losses are above 1, at 1.2 the floor is zero.
    assert '6 more could not have failed' in str(own)
    rows = theorem6_rows(0.1)
    rows.loc[:5, 'residual'] = 1.0  # Fits that did not converge are no cards.
    assert card_theorem6.checks_of(rows)[0].count + card_theorem6.checks_of(rows)[0].idle == 6
    assert failing(card_theorem6.checks_of(rows)) == ['share of fits that converged']
    assert '6 of 12 fits did not converge' in card_theorem6.card_of(card_theorem6.Settings(), rows).finding


def test_floors_in_bits_of_rows():
    rows = pd.DataFrame({'seq_len': [8, 8], 'held': [8, 16], 'loss': [0.5, 0.5]})
    expected = [floors.proposition8_bits(8, 8), floors.proposition8_bits(16, 8)]
    assert np.allclose(card_proposition8.floor_of(rows), expected)
    assert np.allclose(card_proposition8.floor_of(rows, share=0.5), [floors.proposition8_bits(4, 8), expected[0]])


def test_levels_of_the_best_quantiser():
    (low, high), four = card_proposition8.gaussian_levels(1), card_proposition8.gaussian_levels(2)
    assert -low == pytest.approx(high) == pytest.approx(np.sqrt(2 / np.pi))
    assert four == pytest.approx([-1.51, -0.4528, 0.4528, 1.51], abs=1e-3)  # Max's table


def proposition8_rows(loss):
    """Rows of the storing RNN with one bit per token, and of a trained RNN that was rounded."""
    common = {'seq_len': 9, 'lane': 0, 'above': 4.0, 'below': 2.0, 'error': 1e-3}
    stored = {**common, 'network': 'storing RNN', 'width': 9, 'plain': 0.0}
    trained = {**common, 'network': 'trained', 'width': 4, 'plain': 0.2}
    return pd.DataFrame(
        [
            {**stored, 'bits': 0, 'held': np.inf, 'loss': 0.0},
            {**stored, 'bits': 1, 'held': 8, 'loss': loss},
            {**trained, 'bits': 0, 'held': np.inf, 'loss': 0.2},
            {**trained, 'bits': 2, 'held': 16, 'loss': 0.3},
        ]
    )


def test_proposition8_verdict():
    settings = card_proposition8.Settings(seq_lens=(9,))
    checks = card_proposition8.checks_of(settings, proposition8_rows(0.32))
    assert failing(checks) == []
    assert (checks[0].count, checks[0].idle) == (1, 1)  # The trained one is above this floor without rounding.
    assert failing(card_proposition8.checks_of(settings, proposition8_rows(0.2)))[0].startswith('rounded states')
    wide = failing(card_proposition8.checks_of(settings, proposition8_rows(0.7)))
    assert [what[:15] for what in wide] == ['the storing RNN', 'a wrong floor, ']


def theorem4_rows(falls):
    """Rows of the five measurements, where losses of constrained ERM fall like n^(−falls)."""
    rate = pd.DataFrame({'num_samples': [100, 400, 1600], 'lane': 0, 'seq_len': 40, 'is_erm': True})
    rate = rate.assign(test_loss=[1.5, 0.4, 0.4 * 4**-falls], test_loss_se=0.01, train_risk=0.0)
    kinds = {'seq_len': [40, 40], 'encoding_dim': [10, 75]}
    labels = pd.concat(
        [
            pd.DataFrame({'kind': 'random labels', **kinds, 'num_samples': [100, 200]}),
            pd.DataFrame({'kind': 'twisted teacher', **kinds, 'num_samples': [0, 60]}),
        ]
    )
    unseen = pd.DataFrame({'encoding_dim': [8, 75], 'test_loss': [0.3, 1.2], 'test_loss_se': 0.01})
    losses = {'nothing given': [2, 2, 0.01], 'attention given': [0.01] * 3, 'link given': [2, 0.01, 0.01]}
    given = [rate.assign(part=part, test_loss=loss) for part, loss in losses.items()]
    return rate, labels, unseen, pd.concat(given)


def test_theorem4_verdict():
    assert card_theorem4.card_of(card_theorem4.Settings(), *theorem4_rows(1.0)).holds
    slow = card_theorem4.card_of(card_theorem4.Settings(), *theorem4_rows(0.2))
    assert failing(slow.checks) == ['loss ≤ n^(−1/2) through the first n with loss < 1']
    assert slow.checks[0].count == 1  # The loss of 1.5 and the line's own point could not have failed.
    rate, labels, unseen, given = theorem4_rows(1.0)
    labels.loc[labels['kind'] == 'twisted teacher', 'num_samples'] = 4
    made = card_theorem4.card_of(card_theorem4.Settings(), rate, labels, unseen.assign(test_loss=1.1), given)
    assert [what[:12] for what in failing(made.checks)] == ['d_e = 10 ≤ N', 'd_e = 75: tw', 'd_e ≤ N/2: l']


def test_samples_from_which_on_a_lane_has_learnt():
    rows = pd.DataFrame({'num_samples': [1, 2, 4, 8], 'test_loss': [0.0, 0.9, 0.0, 0.0]})
    assert card_theorem4.learnt(rows, 0.1) == 4
    assert card_theorem4.learnt(rows, 1.0) == 1
    assert card_theorem4.learnt(rows[:2], 0.1) == np.inf


def theorem9_rows(growth, loss):
    """Rows of memorisers, storing RNNs and trained ones, whose ‖Θ‖² grows like N^growth."""
    rows = pd.DataFrame({'num_samples': [8, 16, 32] * 2, 'square': [80.0, 400.0, 2000.0] * 2})
    rows = rows.assign(risk=1e-20, layerwise=rows['square'], bound=1e4)
    stored = pd.DataFrame({'seq_len': [8], 'square': [1e4], 'width': [80], 'error': [1e-12]})
    trained = [
        {'network': 'least norm', 'seq_len': n, 'num_samples': m, 'lane': k, 'square': m * n**growth, 'loss': loss}
        for n, m, k in itertools.product((4, 8, 16), (8, 32), (0, 1))
    ]
    fresh = {'network': 'fresh prompts', 'seq_len': 4, 'num_samples': 10_000, 'lane': 0, 'square': 90.0, 'loss': 0.1}
    trained.append(fresh)
    return rows, stored, pd.DataFrame(trained).assign(error=0.01, converged=True)


def test_theorem9_verdict():
    assert failing(card_theorem9.checks_of(*theorem9_rows(0.1, 1.1))) == []
    found = failing(card_theorem9.checks_of(*theorem9_rows(1.2, 0.5)))
    assert [what[:14] for what in found] == ['the least norm', '‖Θ‖² at given ', 'least norm fit']


def test_proposition21_verdict():
    rows = []
    for count, blocked, free in ((1, 1.05, 0.2), (2, 0.1, None)):
        common = {'q': 2, 'heads': count, 'error': 0.01}
        rows.append({**common, 'network': 'trained, block-diagonal W_QK', 'loss': blocked})
        if count == 1:
            rows.append({**common, 'network': 'trained, free W_QK', 'loss': free})
            rows.append({**common, 'network': 'best reader, block-diagonal W_QK', 'loss': 1.0})
            rows.append({**common, 'network': 'best reader, free W_QK', 'loss': 1e-20})
        else:
            rows.append({**common, 'network': 'Lemma 11', 'loss': 1e-4})
    rows = pd.DataFrame(rows)
    assert failing(card_proposition21.checks_of(rows)) == []
    rows.loc[rows['network'] == 'trained, block-diagonal W_QK', 'loss'] -= 0.2
    assert failing(card_proposition21.checks_of(rows)) == ['trained, block-diagonal ≥ 2(1 − H/q)']


def test_alpha_verdict():
    rows = pd.DataFrame(
        [
            {'seq_len': n, 'lane': 0, 'bound': name, 'samples': 1000 * n, 'reached': True, 'product': 1.0}
            for n in (4, 8)
            for name in (card_alpha.FREE, card_alpha.INVERSE, card_alpha.ZERO)
        ]
    )
    assert failing(card_alpha.checks_of(rows)) == []
    rows.loc[(rows['bound'] == 'free') & (rows['seq_len'] == 8), 'samples'] = 20_000
    assert len(failing(card_alpha.checks_of(rows))) == 1
    assert card_alpha.compare(rows).loc[(8, 0), 'free'] == 20_000
    rows = rows.assign(product=0.01)
    assert failing(card_alpha.checks_of(rows))[1].startswith('free networks break the bound')


def test_exponents_are_those_of_the_analysis():
    x = np.array([8.0, 16.0, 32.0])
    found = cards.exponent(np.repeat(x, 2), 3 * np.repeat(x, 2) ** 1.5)
    assert (found.value, found.low, found.high) == pytest.approx((1.5, 1.5, 1.5), abs=1e-6)
    noisy = cards.exponent(np.repeat(x, 2), np.repeat(x, 2) ** 1.5 * np.tile([0.9, 1.1], 3))
    assert noisy.low < 1.5 < noisy.high
    assert cards.power('N', x, x) == 'N^1.00'  # One lane each has no interval.
    assert cards.power('N', x[:2], x[:2]) == 'no exponent of N (only 2 N, 3 needed)'


def test_a_card_takes_the_rows_of_its_own_lanes():
    """A directory may have rows of other settings; what is missing is an error."""
    mine, other = (sweeps.cells_of(small.settings(models='ffn', learning_rate=rate)) for rate in (1e-3, 1e-2))
    lanes = [(cell.id, lane) for cells in (other, mine) for cell in cells for lane in cell.lanes]
    rows = pd.DataFrame([{'cell': cell, **lane._asdict(), 'samples_to_threshold': None} for cell, lane in lanes])
    found = cards.rows_of(mine, rows)
    assert found[['seed', 'learning_rate']].to_numpy().tolist() == [[0, 1e-3], [1, 1e-3]]
    assert 'samples_to_threshold' not in found  # A column that only the others have.
    with pytest.raises(files.ResultsError, match='1 lanes of the cell ffn-qstr-N3-q1'):
        cards.rows_of(mine, rows[:-1])


def test_bounds_verdict():
    sizes = itertools.product((card_bounds.TRANSFORMER, card_bounds.RNN), (16, 64), (1e6, 1e8, 1e10))
    rows = pd.DataFrame(sizes, columns=['network', 'seq_len', 'num_samples'])
    rows['bound'] = 100 * np.log(rows['seq_len']) / np.sqrt(rows['num_samples'])
    rows['bound'] *= 20
    tail = pd.DataFrame({'exact': [0.5, 0.01], 'bound': [1.0, 0.1]})
    assert failing(card_bounds.checks_of(rows, tail)) == []
    assert card_bounds.first_below(rows)['num_samples'].tolist() == pytest.approx(
        [(2000 * np.log(n)) ** 2 for n in (16, 64)] * 2
    )
    slow = rows.assign(bound=rows['bound'] * rows['num_samples'] ** 0.1)
    assert failing(card_bounds.checks_of(slow, tail))[0].startswith('the bounds fall as')
    steep = rows.assign(bound=rows['bound'] * rows['seq_len'])
    assert [what[:20] for what in failing(card_bounds.checks_of(steep, tail.assign(exact=0.3)))] == [
        'n for a bound below ',
        'Lemma 12: bound ≥ P(',
    ]


def test_draws_agree_between_precisions_and_labels_are_exact():
    task = tasks.build('qstr', seq_len=4, sparsity=2, token_dim=3, link='sum', encoding_dim=8)
    _, single = draws.draw(task, 2, 'float32')
    with jax.enable_x64(True):
        double_draw, double = draws.draw(task, 2)
        u_QxD = np.asarray(double_draw.link['u_QxD'])
        x_NxD, t_NxQ = np.asarray(double.x_NxD[0]), np.asarray(double.t_NxQ[0])
        expected_N = np.sum(x_NxD[t_NxQ] * u_QxD[None], axis=(1, 2)) / np.sqrt(2)
        assert double.y_N.dtype == np.float64
        np.testing.assert_allclose(double.y_N[0], expected_N, rtol=1e-14)
    np.testing.assert_array_equal(single.x_NxD, np.asarray(double.x_NxD, np.float32))
    np.testing.assert_allclose(single.y_N, double.y_N, atol=1e-5)
