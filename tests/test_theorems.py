"""Cards of theorems: reduced twins end to end, verdicts that can fail, resuming, and bad input."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from experiments import theorems
from experiments.configs import theorems as config_file
from qstr_jax import models, sweeps
from qstr_jax.cli import base
from qstr_jax.plots import cards as figures
from qstr_jax.storage import files, results
from qstr_jax.sweeps import outputs, programs
from qstr_jax.theory import altered, cards, floors
from qstr_jax.theory.cards import check, heads, proposition3
from qstr_jax.theory.cards.card import Card, Panel, line, point
from tests import harness, helpers

# Nothing is trained in these, so their verdicts do not depend on a small budget.
EXACT = ('lemma11', 'bounds', 'theorem7')


def test_config_says_what_it_is_and_lists_all_cards():
    assert all(word in config_file.__doc__ for word in ('Command:', 'Runtime:', 'Expect:'))
    config = config_file.get_config()
    assert tuple(config.cards) == cards.names()
    for name in cards.names():
        assert cards.settings(name, dict(config[name])) == cards.settings(name)


# Each has a sweep whose cells compile in seconds; of the others the programs are traced.
RUN = ('proposition21', 'theorem6')


def traced_only(sweep, workdir, options=None):
    """`sweeps.run` that traces learners and probes and compiles nothing; what it measures is made up."""
    cells, rows = sweeps.cells_of(sweep), []
    functions = outputs.probes_of(sweep)
    outputs.check(cells, functions)
    for cell in cells:
        problem = cell.problem
        data_K, state_K = jax.eval_shape(lambda lanes_K, p=problem: p.learner.init(lanes_K, p), one_lane(cell))
        params, task_draw = (jax.tree.map(first, tree) for tree in (state_K.params, data_K.task_draw))
        probed = [
            jax.eval_shape(lambda params, draw, f=f, p=problem: f(params, draw, p), params, task_draw)
            for f in functions.values()
        ]
        made_up = {name: 0.5 for columns in probed for name in columns}
        made_up |= {'test_loss': 0.5, 'test_loss_se': 0.01, 'train_risk': 0.2, 'norm': 3.0, 'is_erm': True}
        made_up |= {'outcome': 'reached', 'converged': True}
        for lane in cell.lanes:
            num_samples = getattr(lane, 'sample_size', problem.learner.max_samples)
            rows.append(
                {**dict(cell.columns), **lane._asdict(), **made_up, 'num_samples': num_samples, 'cell': cell.id}
            )
    return pd.DataFrame(rows)


def one_lane(cell):
    return programs.lane_arrays(cell.lanes[:1])


def first(leaf):
    """The shape of the first lane's part."""
    return jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype)


@pytest.mark.slow
@pytest.mark.parametrize('name', cards.names())
def test_reduced_twins_leave_entry_and_figure(name, tmp_path, monkeypatch):
    if name not in RUN:
        monkeypatch.setattr(cards, 'run', traced_only)
    monkeypatch.setattr(theorems.runtime, 'options', lambda: sweeps.Options(progress=False, num_devices=1))
    overrides = dict(config_file.reduced()[name])
    made = theorems.make_one(name, overrides, tmp_path)
    entry = theorems.read(tmp_path / 'cards.json')[name]
    assert {'statement', 'claim', 'setting', 'verdict', 'holds', 'checks', 'points', 'lines', 'seconds'} <= set(entry)
    assert entry['holds'] == made.holds == all(one['holds'] for one in entry['checks'])
    assert entry['verdict'] == made.verdict == cards.from_json(name, entry).verdict
    for number in range(len(made.panels)):
        assert (made.points['panel'] == number).any()
    if name in EXACT:
        assert made.holds, made.verdict
    for suffix in 'png', 'pdf':
        assert (tmp_path / f'{name}.{suffix}').stat().st_size > 1000
    if name in RUN:  # The trainings are a results directory, and a card that is lost is made of them.
        stored = results.load(tmp_path / 'cards' / name)
        assert len(stored) == sum(
            len(c.lanes) for s in cards.sweeps(name, overrides).values() for c in sweeps.cells_of(s)
        )
        assert not results.find(tmp_path)  # Tables and reports of a directory above are of other evidence.
        monkeypatch.setattr(cards, 'run', lambda sweep, workdir, options: stored)
        assert cards.make(name, overrides, tmp_path / name).verdict == made.verdict


def test_a_card_that_trains_needs_a_directory():
    with pytest.raises(ValueError, match='theorem6: trains networks, so it needs a workdir'):
        cards.make('theorem6')


def small_card(loss=0.9, floor=0.5):
    """A card of one point."""
    points, lines = [point(0, 'a', 1, loss, 0.1)], line(0, 'floor', [0, 1], [floor, floor])
    kept = check.above('loss ≥ floor', loss, floor, 0.1)
    return Card(
        'small',
        'Statement',
        'claim',
        'setting',
        (Panel('p', 'x', 'y'),),
        pd.DataFrame(points),
        pd.DataFrame(lines),
        (kept,),
    )


@pytest.fixture
def stubbed(monkeypatch):
    """`cards.make` that counts its calls and does no work; the card 'theorem9' breaks."""
    calls = []

    def make(name, overrides=(), workdir=None, options=None):
        calls.append(name)
        if name == 'theorem9':
            raise RuntimeError('killed')
        return small_card()

    monkeypatch.setattr(cards, 'make', make)
    monkeypatch.setattr(theorems.runtime, 'options', sweeps.Options)
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
    assert check.above('', [0.5, 0.45], 0.5, 0.1).holds
    crossed = check.above('', [0.9, 0.35, 0.7], 0.5, 0.1)
    assert (crossed.holds, crossed.crossed, crossed.count, crossed.value) == (False, 1, 3, 0.35)
    assert not check.above('', [np.nan], 0.5).holds
    assert not check.below('', [0.9, 1.1], 1.0).holds
    assert not check.near('', 1.5, 1.0, 0.1).holds
    assert check.near('', 1.3, 1.0, 0.1).holds
    assert check.fails('other', crossed).holds
    some = check.above('', [0.9, 0.4], [0.5, 0.0], can_fail=[True, False])
    assert (some.holds, some.count, some.idle) == (True, 1, 1)
    nothing = check.above('floor', [0.9], [0.0], can_fail=[False])
    assert not nothing.holds
    assert not check.fails('', nothing).holds
    assert str(nothing) == '✗ floor: no point could have failed, of 1'
    with pytest.raises(ValueError, match='no points'):
        check.below('', [], 1.0)
    assert small_card(0.3).conclusion == 'DOES NOT HOLD, 1 of 1 checks fail'
    assert '✗ (1 of 1 points cross) loss ≥ floor' in small_card(0.3).verdict
    with pytest.raises(ValueError, match='no checks'):
        Card('empty', '', '', '', (), small_card().points, small_card().lines, ())


def test_a_floor_that_is_off_by_one_head_is_crossed():
    """The best reader of two real heads attains its floor, and crosses that of one head."""
    loss, error = heads.oracle(3, 4, 2, 1000)
    rows = pd.DataFrame({'q': [3], 'd': [4], 'heads': [2], 'loss': [loss], 'error': [error]})
    assert check.above('', loss, proposition3.floor_of(rows), error, tolerance=4).holds
    assert not check.above('', loss, proposition3.floor_of(rows, fewer=1), error, tolerance=4).holds
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
    assert all(one.holds for one in checks)
    checks = proposition3.checks_of(verdict_rows(-0.3), [(2, 4)], (2, 1))
    assert [one.what for one in checks if not one.holds] == [
        'all networks ≥ the printed floor',
        'trained ≥ the sharper floor',
    ]
    assert [(one.count, one.idle) for one in checks[:2]] == [(2, 6), (1, 1)]  # The other floors are zero.
    checks = proposition3.checks_of(verdict_rows(1.5), [(2, 4)], (2, 1))  # too high to cross anything
    assert not next(one for one in checks if 'wrong floor' in one.what).holds


def test_block_diagonal_scores_ignore_the_other_blocks():
    module = models.Transformer(1, 4, attention='merged')
    z_NxE = jax.random.normal(jax.random.key(0), (3, 5))
    params = module.init(jax.random.key(1), z_NxE)
    params = {'params': params['params']}
    masked = altered.BlockDiagonal(module=module, token_dim=2)
    moved = jax.tree.map(lambda leaf: leaf, params)
    qk_HxExE = params['params']['attention']['qk_HxExE']
    moved['params']['attention'] = {'qk_HxExE': qk_HxExE.at[:, 2:, :2].add(5.0)}
    assert jnp.allclose(masked.apply(params, z_NxE), masked.apply(moved, z_NxE))
    assert not jnp.allclose(module.apply(params, z_NxE), module.apply(moved, z_NxE))
    moved['params']['attention'] = {'qk_HxExE': qk_HxExE.at[:, :2, :2].add(5.0)}
    assert not jnp.allclose(masked.apply(params, z_NxE), masked.apply(moved, z_NxE))


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
