"""Cards of theorems: reduced twins end to end, verdicts that can fail, resuming, and bad input."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from experiments import theorems
from experiments.configs import theorems as config_file
from qstr_jax import learners, models
from qstr_jax.cli import base
from qstr_jax.learners.problem import Problem
from qstr_jax.plots import cards as figures
from qstr_jax.storage import files
from qstr_jax.theory import cards, floors
from qstr_jax.theory.cards import card, fits, fixed_sample, heads, proposition3
from tests import harness, helpers

# Nothing is trained in these, so their verdicts do not depend on a small budget.
EXACT = ('lemma11', 'theorem7')


def test_config_says_what_it_is_and_lists_all_cards():
    assert all(word in config_file.__doc__ for word in ('Command:', 'Runtime:', 'Expect:'))
    config = config_file.get_config()
    assert tuple(config.cards) == cards.names()
    for name in cards.names():
        assert cards.settings(name, dict(config[name])) == cards.settings(name)


def traced_only(task, module, learner, *, sizes, seeds, test_task=None, **values):
    """`fixed_sample.run` that traces the learner's first state and compiles nothing; its columns are made up."""
    bound = learner.bind(module, task, tuple(sizes))
    problem = Problem(task=task, test_task=test_task or task, module=module, learner=bound)
    seeds_K = jnp.asarray(seeds)
    traced_K = {name: jnp.full(len(sizes), value) for name, value in values.items()}
    assert set(bound.own_lane_settings()) == set(traced_K)
    lanes_K = learners.lane(bound, seed=seeds_K, task_seed=seeds_K, sample_size=jnp.asarray(sizes), **traced_K)
    jax.eval_shape(lambda lanes_K: bound.init(lanes_K, problem), lanes_K)
    columns = {
        'test_loss': 0.5,
        'test_loss_se': 0.01,
        'train_risk': 0.2,
        'norm': 3.0,
        'is_erm': True,
        'converged': True,
    }
    columns = {name: np.full(len(sizes), value) for name, value in columns.items()}
    return fixed_sample.Fits(problem, None, None, columns)


@pytest.mark.slow
@pytest.mark.parametrize('name', cards.names())
def test_reduced_twins_leave_entry_and_figure(name, tmp_path, monkeypatch):
    if name in ('theorem4', 'theorem9'):  # Eight programs, whose learners the card of Theorem 6 and others run.
        monkeypatch.setattr(fixed_sample, 'run', traced_only)
    overrides = dict(config_file.reduced()[name])
    made = theorems.make_one(name, overrides, tmp_path)
    entry = theorems.read(tmp_path / 'cards.json')[name]
    assert {'statement', 'claim', 'setting', 'verdict', 'holds', 'checks', 'points', 'lines', 'seconds'} <= set(entry)
    assert entry['holds'] == made.holds == all(check['holds'] for check in entry['checks'])
    assert entry['verdict'] == made.verdict == cards.from_json(name, entry).verdict
    for number in range(len(made.panels)):
        assert (made.points['panel'] == number).any()
    if name in EXACT:
        assert made.holds, made.verdict
    for suffix in 'png', 'pdf':
        assert (tmp_path / f'{name}.{suffix}').stat().st_size > 1000


def small_card(loss=0.9, floor=0.5):
    """A card of one point."""
    points, lines = [card.point(0, 'a', 1, loss, 0.1)], card.line(0, 'floor', [0, 1], [floor, floor])
    check = card.above('loss ≥ floor', loss, floor, 0.1)
    return card.Card(
        'small',
        'Statement',
        'claim',
        'setting',
        (card.Panel('p', 'x', 'y'),),
        pd.DataFrame(points),
        pd.DataFrame(lines),
        (check,),
    )


@pytest.fixture
def stubbed(monkeypatch):
    """`cards.make` that counts its calls and does no work; the card 'theorem9' breaks."""
    calls = []

    def make(name, overrides=(), progress=False):
        calls.append(name)
        if name == 'theorem9':
            raise RuntimeError('killed')
        return small_card()

    monkeypatch.setattr(cards, 'make', make)
    return calls


def test_a_card_is_made_once_per_setting_and_survives_what_comes_after(stubbed, tmp_path):
    theorems.make_one('lemma11', {}, tmp_path)
    with pytest.raises(RuntimeError, match='killed'):
        theorems.make_one('theorem9', {}, tmp_path)
    assert theorems.make_one('lemma11', {}, tmp_path).holds
    assert stubbed == ['lemma11', 'theorem9']
    theorems.make_one('lemma11', {'seq_lens': (8,)}, tmp_path)
    assert stubbed == ['lemma11', 'theorem9', 'lemma11']
    assert set(theorems.read(tmp_path / 'cards.json')) == {'lemma11'}


def test_damaged_cards_are_named(tmp_path):
    for text in '{"lemma11": ', '{"lemma11": null}', '{"lemma11": {"claim": "n"}}':
        (tmp_path / 'cards.json').write_text(text)
        with pytest.raises(files.ResultsError, match=r'cards\.json is damaged'):
            theorems.make_one('lemma11', {}, tmp_path)


def test_checks_can_fail():
    assert card.above('', [0.5, 0.45], 0.5, 0.1).holds
    crossed = card.above('', [0.9, 0.35, 0.7], 0.5, 0.1)
    assert (crossed.holds, crossed.crossed, crossed.count, crossed.value) == (False, 1, 3, 0.35)
    assert not card.above('', [np.nan], 0.5).holds
    assert not card.below('', [0.9, 1.1], 1.0).holds
    assert not card.near('', 1.5, 1.0, 0.1).holds
    assert card.near('', 1.3, 1.0, 0.1).holds
    assert card.fails('other', crossed).holds
    some = card.above('', [0.9, 0.4], [0.5, 0.0], can_fail=[True, False])
    assert (some.holds, some.count, some.idle) == (True, 1, 1)
    nothing = card.above('floor', [0.9], [0.0], can_fail=[False])
    assert not nothing.holds
    assert not card.fails('', nothing).holds
    assert str(nothing) == '✗ floor: no point could have failed, of 1'
    with pytest.raises(ValueError, match='no points'):
        card.below('', [], 1.0)
    assert small_card(0.3).conclusion == 'DOES NOT HOLD, 1 of 1 checks fail'
    assert '✗ (1 of 1 points cross) loss ≥ floor' in small_card(0.3).verdict
    with pytest.raises(ValueError, match='no checks'):
        card.Card('empty', '', '', '', (), small_card().points, small_card().lines, ())


def test_a_floor_that_is_off_by_one_head_is_crossed():
    """The best reader of two real heads attains its floor, and crosses that of one head."""
    loss, error = heads.oracle(3, 4, 2, 1000)
    rows = pd.DataFrame({'q': [3], 'd': [4], 'heads': [2], 'loss': [loss], 'error': [error]})
    assert card.above('', loss, proposition3.floor_of(rows), error, tolerance=4).holds
    assert not card.above('', loss, proposition3.floor_of(rows, fewer=1), error, tolerance=4).holds
    assert proposition3.floor_of(rows, fewer=2) == 2.0  # no head: the label's variance


def verdict_rows(shift):
    """Rows of a Proposition 3 card whose trained losses lie `shift` above the floor."""
    rows = []
    for q, d, count in ((2, 4, 1), (2, 4, 2), (2, 1, 1), (2, 1, 2)):
        floor = floors.head_floor(count, q, d, late=True)
        common = {'q': q, 'd': d, 'heads': count, 'error': 0.01}
        rows.append({**common, 'network': 'trained', 'loss': floor + shift})
        name, loss = ('best reader', floor) if count < q else ('Lemma 11', 0.0)
        rows.append({**common, 'network': name, 'loss': loss})
    return pd.DataFrame(rows)


def test_the_verdict_of_a_heads_card_is_computed():
    checks = proposition3.checks_of(verdict_rows(0.05), [(2, 4)], (2, 1))
    assert all(check.holds for check in checks)
    checks = proposition3.checks_of(verdict_rows(-0.3), [(2, 4)], (2, 1))
    assert [check.what for check in checks if not check.holds] == [
        'all networks ≥ the printed floor',
        'trained ≥ the sharper floor',
    ]
    assert [(check.count, check.idle) for check in checks[:2]] == [(2, 6), (1, 1)]  # The other floors are zero.
    checks = proposition3.checks_of(verdict_rows(1.5), [(2, 4)], (2, 1))  # too high to cross anything
    assert not next(check for check in checks if 'wrong floor' in check.what).holds


def test_block_diagonal_scores_ignore_the_other_blocks():
    module = models.Transformer(1, 4, attention='merged')
    z_NxE = jax.random.normal(jax.random.key(0), (3, 5))
    params = module.init(jax.random.key(1), z_NxE)
    params = {'params': params['params']}
    masked = heads.BlockDiagonal(module, 2)
    moved = jax.tree.map(lambda leaf: leaf, params)
    qk_HxExE = params['params']['attention']['qk_HxExE']
    moved['params']['attention'] = {'qk_HxExE': qk_HxExE.at[:, 2:, :2].add(5.0)}
    assert jnp.allclose(masked.apply(params, z_NxE), masked.apply(moved, z_NxE))
    assert not jnp.allclose(module.apply(params, z_NxE), module.apply(moved, z_NxE))
    moved['params']['attention'] = {'qk_HxExE': qk_HxExE.at[:, :2, :2].add(5.0)}
    assert not jnp.allclose(masked.apply(params, z_NxE), masked.apply(moved, z_NxE))


def test_slope():
    x = np.array([8.0, 16.0, 32.0])
    assert fits.slope(x, 3 * x**1.5) == pytest.approx((1.5, 0), abs=1e-6)
    assert np.isnan(fits.slope(x[:2], x[:2])[1])


def test_figure_of_a_card_that_does_not_hold_says_so():
    figure = figures.card_figure(small_card(0.3))
    assert 'DOES NOT HOLD' in figure.get_supxlabel()
    assert 'Statement. claim' in figure.get_suptitle()


def test_figure_of_a_card_holds_the_error_bars():
    (axis,) = figures.card_figure(small_card(loss=0.9)).axes
    assert axis.get_ylim()[1] > 0.9 + 0.1


@pytest.mark.parametrize(
    ('name', 'overrides', 'words'),
    [
        ('lemma12', {}, "cards='lemma12': unknown, one of lemma11"),
        ('lemma11', {'seq_len': (8,)}, r'lemma11\.seq_len: unknown, one of seq_lens'),
        ('lemma11', {'seq_lens': ()}, r'lemma11\.seq_lens=\(\): must be a tuple'),
        ('lemma11', {'seq_lens': (0,)}, r'must be an integer, at least 1'),
        ('lemma11', {'links': (3,)}, r'entries must be like'),
        ('theorem7', {'num_prompts': 0}, r'theorem7\.num_prompts=0'),
    ],
)
def test_bad_settings_are_named(name, overrides, words):
    with pytest.raises(ValueError, match=words):
        cards.settings(name, overrides)


def test_cards_come_as_a_tuple_or_as_one_string():
    config = config_file.get_config()
    config.cards = ('lemma11,theorem7',)
    assert theorems.chosen_cards(config) == ('lemma11', 'theorem7')
    config.cards = ('',)
    with pytest.raises(ValueError, match=r'cards=\(\): give at least one'):
        theorems.chosen_cards(config)
    with pytest.raises(ValueError, match='not of cards'):
        theorems.chosen_cards(base.get_config())


def command(*arguments):
    """Runs the binary as a user would."""
    return harness.run_binary('theorems', '--config=experiments/configs/theorems.py', *arguments)


@pytest.mark.slow
def test_the_command_and_a_mistake_in_it(tmp_path):
    done = command(
        f'--workdir={tmp_path}',
        '--config.cards=theorem7',
        '--config.theorem7.seq_lens=4,6',
        '--config.theorem7.sparsity=1,',
        '--config.theorem7.num_prompts=1',
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith('theorem7: holds; ✓ |ŷ − y| ≤ 1e-05 in float32')
    assert theorems.read(tmp_path / 'cards.json')['theorem7']['settings']['seq_lens'] == [4, 6]
    done = command(f'--workdir={tmp_path}', '--config.cards=lemma11,lemma12')
    helpers.assert_one_error(done, "cards='lemma12': unknown, one of lemma11, ")
