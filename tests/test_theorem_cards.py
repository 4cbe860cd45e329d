"""Verdicts of single cards on made-up rows: each can hold, and each can fail."""

import itertools

import jax
import numpy as np
import pandas as pd
import pytest

from qstr_jax import tasks
from qstr_jax.models import Transformer
from qstr_jax.theory import cards, constructions, floors
from qstr_jax.theory.cards import (
    alpha,
    card,
    draws,
    proposition8,
    proposition21,
    states,
    theorem4,
    theorem4_runs,
    theorem6,
    theorem9,
    training,
)


def failing(checks):
    return [check.what for check in checks if not check.holds]


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
    assert failing(theorem6.checks_of(theorem6_rows(0.1))) == []
    own, mean = 'FFNs ≥ the floor of their own (u, training set)', 'mean over draws ≥ 1 − n/(Nd)'
    assert failing(theorem6.checks_of(theorem6_rows(-0.05))) == [own, mean]
    no_power = failing(theorem6.checks_of(theorem6_rows(0.9)))  # All losses are above 1: nothing was tested.
    assert no_power[:2] == [own, mean]


def test_theorem6_counts_only_runs_that_could_have_crossed():
    check = theorem6.checks_of(theorem6_rows(0.25))[0]
    assert (check.count, check.idle) == (6, 6)  # At n = 0.2 N d losses are above 1, at 1.2 the floor is zero.
    assert '6 more could not have failed' in str(check)
    rows = theorem6_rows(0.1)
    rows.loc[:5, 'residual'] = 1.0  # Fits that did not converge are no runs.
    assert theorem6.checks_of(rows)[0].count + theorem6.checks_of(rows)[0].idle == 6
    assert failing(theorem6.checks_of(rows)) == ['share of fits that converged']
    assert '6 of 12 fits did not converge' in theorem6.card_of(theorem6.Settings(), rows).finding


def test_floors_in_bits_of_rows():
    rows = pd.DataFrame({'seq_len': [8, 8], 'held': [8, 16], 'loss': [0.5, 0.5]})
    expected = [floors.proposition8_bits(8, 8), floors.proposition8_bits(16, 8)]
    assert np.allclose(proposition8.floor_of(rows), expected)
    assert np.allclose(proposition8.floor_of(rows, share=0.5), [floors.proposition8_bits(4, 8), expected[0]])


def test_levels_of_the_best_quantiser():
    (low, high), four = states.gaussian_levels(1), states.gaussian_levels(2)
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
    settings = proposition8.Settings(seq_lens=(9,))
    checks = proposition8.checks_of(settings, proposition8_rows(0.32))
    assert failing(checks) == []
    assert (checks[0].count, checks[0].idle) == (1, 1)  # The trained one is above this floor without rounding.
    assert failing(proposition8.checks_of(settings, proposition8_rows(0.2)))[0].startswith('rounded states')
    wide = failing(proposition8.checks_of(settings, proposition8_rows(0.7)))
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
    assert theorem4.card_of(theorem4.Settings(), *theorem4_rows(1.0)).holds
    slow = theorem4.card_of(theorem4.Settings(), *theorem4_rows(0.2))
    assert failing(slow.checks) == ['loss ≤ n^(−1/2) through the first n with loss < 1']
    assert slow.checks[0].count == 1  # The loss of 1.5 and the line's own point could not have failed.
    rate, labels, unseen, given = theorem4_rows(1.0)
    labels.loc[labels['kind'] == 'twisted teacher', 'num_samples'] = 4
    made = theorem4.card_of(theorem4.Settings(), rate, labels, unseen.assign(test_loss=1.1), given)
    assert [what[:12] for what in failing(made.checks)] == ['d_e = 10 ≤ N', 'd_e = 75: it', 'd_e ≤ N/2: l']


def test_samples_from_which_on_a_lane_has_learnt():
    rows = pd.DataFrame({'num_samples': [1, 2, 4, 8], 'test_loss': [0.0, 0.9, 0.0, 0.0]})
    assert theorem4_runs.learnt(rows, 0.1) == 4
    assert theorem4_runs.learnt(rows, 1.0) == 1
    assert theorem4_runs.learnt(rows[:2], 0.1) == np.inf


def theorem9_rows(growth, loss):
    """Rows of memorisers, storing RNNs and trained ones, whose ‖Θ‖² grows like N^growth."""
    rows = pd.DataFrame({'num_samples': [8, 16, 32], 'square': [80.0, 400.0, 2000.0]})
    rows = rows.assign(risk=1e-20, layerwise=rows['square'], bound=1e4)
    stored = pd.DataFrame({'seq_len': [8], 'square': [1e4], 'width': [80], 'error': [1e-12]})
    trained = [
        {'network': 'least norm', 'seq_len': n, 'num_samples': m, 'square': m * n**growth, 'loss': loss}
        for n, m in itertools.product((4, 8), (8, 32))
    ]
    trained.append({'network': 'fresh prompts', 'seq_len': 4, 'num_samples': 10_000, 'square': 90.0, 'loss': 0.1})
    return rows, stored, pd.DataFrame(trained).assign(error=0.01, converged=True)


def test_theorem9_verdict():
    assert failing(theorem9.checks_of(*theorem9_rows(0.1, 1.1))) == []
    found = failing(theorem9.checks_of(*theorem9_rows(1.2, 0.5)))
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
    assert failing(proposition21.checks_of(rows)) == []
    rows.loc[rows['network'] == 'trained, block-diagonal W_QK', 'loss'] -= 0.2
    assert failing(proposition21.checks_of(rows)) == ['trained, block-diagonal ≥ 2(1 − H/q)']


def test_alpha_verdict():
    rows = pd.DataFrame(
        [
            {'seq_len': n, 'lane': 0, 'bound': name, 'samples': 1000 * n, 'reached': True, 'product': 1.0}
            for n in (4, 8)
            for name in alpha.BOUNDS
        ]
    )
    assert failing(alpha.checks_of(rows)) == []
    rows.loc[(rows['bound'] == 'free') & (rows['seq_len'] == 8), 'samples'] = 20_000
    assert len(failing(alpha.checks_of(rows))) == 1
    assert alpha.compare(rows).loc[(8, 0), 'free'] == 20_000
    rows = rows.assign(product=0.01)
    assert failing(alpha.checks_of(rows))[1].startswith('free networks break the bound')


@pytest.mark.slow
def test_training_starts_where_it_is_told_and_ends_with_a_small_step():
    task = tasks.build('qstr', seq_len=3, sparsity=1, token_dim=2, link='linear', encoding_dim=6)

    def params(lane, task_draw):
        return constructions.transformer(task, task_draw, 4.0, 0.05).params

    how = training.Training(steps=6, batch_size=8, learning_rate=1e-3, windows=3, test_samples=64)
    module = Transformer(1, 2, attention='merged', output_bias=False)
    stages = training.windows(task, module, how, 2, params)
    steps, fit = next(stages)
    start_K, _ = training.loss_at(fit)
    assert steps == 0
    assert np.all(start_K < 0.05**2)
    weights = [np.asarray(fit.params_K['params']['out']['kernel'])]
    for steps, fit in stages:  # noqa: B007, the last is looked at
        weights.append(np.asarray(fit.params_K['params']['out']['kernel']))
    assert steps == 6
    moves = [np.abs(b - a).max() for a, b in itertools.pairwise(weights)]
    assert moves[0] > 2 * moves[-1] > 0


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


def test_json_keeps_a_card_whole():
    points = pd.DataFrame([card.point(0, 'a', 1, 2.0), card.point(0, 'a', 2, np.inf, 0.1)])
    lines = pd.DataFrame(card.line(0, '', [1, 2], [3, 4], of='a'))
    panels, checks = (card.Panel('p', 'x', 'y', True),), (card.below('b', 1, 2),)
    made = card.Card('n', 's', 'c', 't', panels, points, lines, checks, 'f')
    back = cards.from_json('n', cards.as_json(made))
    assert back.verdict == made.verdict
    assert back.panels == made.panels
    assert back.points['error'].isna().tolist() == [True, False]
    assert back.lines.equals(lines)
