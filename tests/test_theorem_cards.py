"""Verdicts of single cards on made-up rows: each can hold, and each can fail."""

import itertools

import jax
import numpy as np
import pandas as pd
import pytest

from qstr_jax import tasks
from qstr_jax.models import Transformer
from qstr_jax.theory import cards, constructions, floors
from qstr_jax.theory.cards import alpha, card, draws, proposition8, proposition21, theorem6, training


def failing(checks):
    return [check.what for check in checks if not check.holds]


def sweep_rows(shift):
    """Rows as `experiments.learning_curves` leaves them: FFNs `shift` above their floor, the oracle at it."""
    rows = []
    for seed in range(3):
        for size in (5, 10, 30):
            floor = max(0.0, 1 - size / 20 + 0.02 * (seed - 1))
            common = {
                'task': 'simple_qstr',
                'seq_len': 5,
                'token_dim': 4,
                'seed': seed,
                'task_seed': seed,
                'num_samples': size,
                'outcome': 'fitted',
                'test_loss_se': 0.01,
                'learner': 'stationary',
            }
            rows.append({**common, 'model': 'ffn', 'test_loss': floor + shift, 'span_residual': 1e-6})
            rows.append({**common, 'model': 'theorem6_oracle', 'test_loss': floor, 'theorem6_floor': floor})
            rows.append({**common, 'model': 'zero', 'test_loss': 0.0})  # not what the theorem is about
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    ('shift', 'words'),
    [
        (0.1, []),
        (-0.1, ['fitted FFNs ≥ the floor of their own (u, training set)', 'fitted FFNs ≥ 1 − n/(Nd), mean over draws']),
    ],
)
def test_theorem6_takes_rows_of_a_sweep(monkeypatch, shift, words):
    monkeypatch.setattr(theorem6.results, 'load', lambda path: sweep_rows(shift))
    made = cards.make('theorem6', {'rows': 'somewhere'})
    assert failing(made.checks) == words
    assert set(made.points['series']) == {'FFN, stationary', 'oracle'}
    assert 'somewhere' in made.setting


def test_theorem6_wants_ffns_in_the_span(monkeypatch):
    rows = sweep_rows(0.1)
    monkeypatch.setattr(theorem6.results, 'load', lambda path: rows.assign(span_residual=0.1))
    assert failing(cards.make('theorem6', {'rows': 'x'}).checks) == ['rows of W lie in the span: residual ≤ 1e-3']
    monkeypatch.setattr(theorem6.results, 'load', lambda path: rows[rows['model'] != 'ffn'])
    with pytest.raises(ValueError, match=r"theorem6\.rows='x': no rows of the model ffn"):
        cards.make('theorem6', {'rows': 'x'})
    monkeypatch.setattr(theorem6.results, 'load', lambda path: rows.drop(columns='test_loss_se'))
    with pytest.raises(ValueError, match=r"theorem6\.rows='x': rows lack the columns: test_loss_se"):
        cards.make('theorem6', {'rows': 'x'})


def test_floors_in_bits_of_rows():
    rows = pd.DataFrame({'seq_len': [8, 8], 'width': [4, 4], 'bits': [1, 2], 'loss': [0.5, 0.5]})
    expected = [floors.proposition8_bits(8, 8), floors.proposition8_bits(16, 8)]
    assert np.allclose(proposition8.floor_of(rows), expected)
    assert np.allclose(proposition8.floor_of(rows, share=0.5), [floors.proposition8_bits(4, 8), expected[0]])


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
            {'seq_len': n, 'bound': name, 'samples': 1000 * n, 'reached': True, 'product': 1.0}
            for n in (4, 8)
            for name in alpha.BOUNDS
        ]
    )
    assert failing(alpha.checks_of(rows)) == []
    rows.loc[(rows['bound'] == 'free') & (rows['seq_len'] == 8), 'samples'] = 20_000
    assert len(failing(alpha.checks_of(rows))) == 1
    assert alpha.compare(rows).loc[8, 'free'] == pytest.approx(20_000)


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
