"""Cards of theorems: reduced twins end to end, committed verdicts, verdicts that can fail, resuming, and bad input."""

import dataclasses
import types

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from experiments import cards, exhibit
from experiments.exhibits import card_proposition3
from qstr_jax import models, plots, sweeps
from qstr_jax.analysis import card, check
from qstr_jax.analysis.card import Card, Panel, line, point
from qstr_jax.plots import cards as figures
from qstr_jax.storage import files, records, results
from qstr_jax.sweeps import outputs, programs
from qstr_jax.theory import altered, floors, heads
from tests import harness, helpers, small

CARDS = {name: one for name, one in exhibit.every().items() if isinstance(one, exhibit.CardExhibit)}
RESULTS = helpers.ROOT / 'experiments/results'

# Nothing is trained in these, so their verdicts do not depend on a small budget.
EXACT = ('card_lemma11', 'card_bounds', 'card_theorem7')


# Each has a sweep whose cells compile in seconds; of the others the programs are traced.
RUN = ('card_proposition21', 'card_theorem6')


def traced_only(sweep, workdir, options, cells):
    """`sweeps.run` that traces learners and probes and compiles nothing; what it measures is made up."""
    rows = []
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
@pytest.mark.parametrize('name', CARDS)
def test_reduced_twins_leave_card_and_figure(name, tmp_path, monkeypatch):
    one = CARDS[name]
    (folder,) = one.folders
    if name not in RUN:
        monkeypatch.setattr(exhibit.sweeps, 'run', traced_only)
    one.run(folder, tmp_path, small.quiet(), reduced=True)
    made, entry = one.card(tmp_path), records.read(tmp_path / folder / 'card.json', 'card')
    assert entry['verdict'] == made.verdict
    for number in range(len(made.panels)):
        assert (made.points['panel'] == number).any()
    if name in EXACT:
        assert made.holds, made.verdict
    for suffix in 'png', 'pdf':
        assert (tmp_path / folder / f'figure.{suffix}').stat().st_size > 1000
    if name in RUN:  # The trainings are a results directory, and a card that is lost is made of them.
        stored = results.load(tmp_path / folder)
        wanted = [lane for sweep in one.sweeps(folder, True) for cell in sweeps.cells_of(sweep) for lane in cell.lanes]
        assert len(stored) == len(wanted)
        assert not results.find(tmp_path)  # Tables and reports of a directory above are of other evidence.
        (tmp_path / folder / 'card.json').unlink()
        monkeypatch.setattr(exhibit.sweeps, 'run', lambda sweep, workdir, options, cells: stored)
        one.run(folder, tmp_path, small.quiet(), reduced=True)
        assert one.card(tmp_path).verdict == made.verdict


@pytest.mark.parametrize('name', CARDS)
def test_committed_cards_are_of_the_settings_and_lanes_of_their_files(name):
    """A run of the exhibit would make nothing anew."""
    one, (folder,) = CARDS[name], CARDS[name].folders
    entry = records.read(RESULTS / folder / 'card.json', 'card')
    assert entry['settings'] == one.plain_settings()
    assert entry['verdict'] == one.card(RESULTS).verdict
    if planned := one.planned(folder):
        assert planned == one.done(folder, results.load(RESULTS / folder))


@pytest.mark.parametrize('name', ['card_alignment', 'card_alpha'])
def test_a_committed_verdict_is_that_of_the_committed_rows(name):
    """Of the cards that compute nothing besides."""
    one, (folder,) = CARDS[name], CARDS[name].folders
    stored = results.load(RESULTS / folder)
    rows = {what: cards.rows_of(exhibit.cells_of(sweep), stored) for what, sweep in one.trained().items()}
    made = one.module.card(one.settings(), rows)
    assert made.verdict == one.card(RESULTS).verdict
    assert made.finding == one.card(RESULTS).finding


def test_words_of_cards_are_whole():
    rows = exhibit.numbers.Rows(RESULTS)
    for one in CARDS.values():
        assert one.module.QUESTION.endswith('?')
        assert one.limits(rows).endswith('.')
        assert 'Verdict: holds; ' in one.answer(rows).replace('\n', ' ')
        assert all(str(check) in one.text(rows) for check in one.card(RESULTS).checks)


def small_card(loss=0.9, floor=0.5):
    """A card of one point."""
    points, lines = [point(0, 'a', 1, loss, 0.1)], line(0, 'floor', [0, 1], [floor, floor])
    kept = check.above('loss ≥ floor', loss, floor, 0.1)
    return Card(
        'Statement', 'claim', 'setting', (Panel('p', 'x', 'y'),), pd.DataFrame(points), pd.DataFrame(lines), (kept,)
    )


@pytest.fixture
def stubbed():
    """A card that counts how often it is made, with one setting."""
    calls = []

    @dataclasses.dataclass(frozen=True)
    class Settings:
        seq_lens: tuple[int, ...] = (4,)

    def make(settings, rows):
        calls.append(settings.seq_lens)
        if settings.seq_lens == (9,):
            raise RuntimeError('killed')
        return small_card()

    module = types.ModuleType('card_small')
    vars(module).update(Settings=Settings, REDUCED={}, card=make)
    return exhibit.CardExhibit(module), calls


def test_a_card_is_made_once_per_setting_and_survives_what_comes_after(stubbed, tmp_path):
    one, calls = stubbed
    other, broken = (dataclasses.replace(one, overrides={'seq_lens': lens}) for lens in ((8,), (9,)))
    one.run('cards/small', tmp_path, small.quiet())
    with pytest.raises(RuntimeError, match='killed'):
        broken.run('cards/small', tmp_path, small.quiet())
    one.run('cards/small', tmp_path, small.quiet())
    assert one.card(tmp_path).holds
    assert calls == [(4,), (9,)]
    other.run('cards/small', tmp_path, small.quiet())
    assert calls == [(4,), (9,), (8,)]
    other.run('cards/small', tmp_path, small.quiet(refresh=True))
    assert calls == [(4,), (9,), (8,), (8,)]


def test_damaged_cards_are_named(stubbed, tmp_path):
    files.make_folder(tmp_path / 'cards/small')
    for text in '{"claim": ', 'null', '{"claim": "n"}':
        (tmp_path / 'cards/small/card.json').write_text(text)
        with pytest.raises(files.ResultsError, match=r'card\.json is damaged'):
            stubbed[0].run('cards/small', tmp_path, small.quiet())


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
        Card('', '', '', (), small_card().points, small_card().lines, ())


def test_a_floor_that_is_off_by_one_head_is_crossed():
    """The best reader of two real heads attains its floor, and crosses that of one head."""
    loss, error = heads.oracle(3, 4, 2, 1000)
    rows = pd.DataFrame({'q': [3], 'd': [4], 'heads': [2], 'loss': [loss], 'error': [error]})
    assert check.above('', loss, card_proposition3.floor_of(rows), 4 * error).holds
    assert not check.above('', loss, card_proposition3.floor_of(rows, fewer=1), 4 * error).holds
    assert card_proposition3.floor_of(rows, fewer=2) == 2.0  # no head: the label's variance


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
    checks = card_proposition3.checks_of(verdict_rows(0.05), [(2, 4)], (2, 1))
    assert all(one.holds for one in checks)
    checks = card_proposition3.checks_of(verdict_rows(-0.3), [(2, 4)], (2, 1))
    assert [one.what for one in checks if not one.holds] == [
        'all networks ≥ the printed floor',
        'trained ≥ the sharper floor',
    ]
    assert [(one.count, one.idle) for one in checks[:2]] == [(2, 6), (1, 1)]  # The other floors are zero.
    checks = card_proposition3.checks_of(verdict_rows(1.5), [(2, 4)], (2, 1))  # too high to cross anything
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


def marks(axis):
    """Colour and marker of the points of each series."""
    lines = [line for line in axis.lines if (line.get_gid() or '').startswith('points ')]
    return {line.get_gid().removeprefix('points '): (line.get_color(), line.get_marker()) for line in lines}


def test_a_series_looks_the_same_in_all_panels_of_a_card_and_an_architecture_as_everywhere():
    series = [(0, 'FFN, N = 4'), (0, 'FFN, N = 8'), (0, 'Transformer, N = 4'), (1, 'N = 8'), (1, 'N = 4')]
    series += [(2, 'Transformer'), (2, 'N = 4'), (2, 'FFN, N = 8')]
    points = pd.DataFrame([point(panel, name, 1, 0.0) for panel, name in series])
    panels = tuple(Panel(f'{i}', 'x', 'y', log_y=i == 1) for i in range(3))
    made = dataclasses.replace(small_card(0.9), panels=panels, points=points)
    figure = figures.card_figure(made)
    first, second, third = map(marks, figure.axes[:3])
    assert second['N = 4'] == third['N = 4']
    assert first['FFN, N = 8'] == third['FFN, N = 8']
    transformer, ffn = (plots.looks([model])[model][:2] for model in ('transformer', 'ffn'))
    assert first['Transformer, N = 4'] == third['Transformer'] == transformer
    looks = {name: look for panel in (first, second, third) for name, look in panel.items()}
    assert ffn not in looks.values()  # Two of them are in one panel.
    assert len(set(looks.values())) == len(looks) - 1
    assert 'exact zeros' in figure.get_supxlabel()
    assert 'Bars' not in figure.get_supxlabel()
    assert 'Bars: one standard error' in figures.card_figure(small_card(0.9)).get_supxlabel()


@pytest.mark.parametrize(
    ('name', 'overrides', 'words'),
    [
        ('lemma11', {'seq_len': (8,)}, r'card_lemma11\.seq_len: no such .* did you mean card_lemma11\.seq_lens'),
        ('lemma11', {'seq_lens': ()}, r'card_lemma11\.seq_lens=\(\): give at least one'),
        ('lemma11', {'seq_lens': (0,)}, r'must be an integer, at least 1'),
        ('lemma11', {'links': (3,)}, r'must be names with commas'),
        ('theorem7', {'num_prompts': 0}, r'card_theorem7\.num_prompts=0'),
    ],
)
def test_bad_settings_are_named(name, overrides, words):
    with pytest.raises(ValueError, match=words):
        dataclasses.replace(CARDS[f'card_{name}'], overrides=overrides).settings()


@pytest.mark.slow
def test_the_command_and_a_mistake_in_it(tmp_path):
    words = ('card_theorem7', '--set=seq_lens=4,6', '--set=sparsity=1', '--set=num_prompts=1', f'--workdir={tmp_path}')
    done = harness.run_binary('exhibit', *words)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith('card_theorem7: holds; ✓ |ŷ − y| ≤ 1e-05 in float32')
    assert records.read(tmp_path / 'cards/theorem7/card.json', 'card')['settings']['seq_lens'] == [4, 6]
    done = harness.run_binary('exhibit', 'card_lemma12', f'--workdir={tmp_path}')
    helpers.assert_one_error(done, 'card_lemma12')
    done = harness.run_binary('exhibit', 'figure1a', '--set=seq_lens=4', f'--workdir={tmp_path}')
    helpers.assert_one_error(done, '--set is of cards')


def test_lanes_of_a_card_have_their_own_task_and_are_tested_on_it():
    for one in CARDS.values():
        for sweep in one.trained().values():
            assert sweep.task_per_lane
            assert (sweep.test_task == sweep.task) == (sweep.task != 'first_half')
            for cell in sweeps.cells_of(sweep):
                learner = cell.problem.learner
                assert getattr(learner, 'max_steps', 0) % learner.check_every == 0


def test_json_keeps_a_card_whole():
    points = pd.DataFrame([point(0, 'a', 1, 2.0), point(0, 'a', 2, np.inf, 0.1)])
    lines = pd.DataFrame(line(0, '', [1, 2], [3, 4], of='a'))
    panels, checks = (Panel('p', 'x', 'y', True),), (check.below('b', 1, 2),)
    made = Card('s', 'c', 't', panels, points, lines, checks, 'f')
    back = card.from_json(card.as_json(made))
    assert back.verdict == made.verdict
    assert back.panels == made.panels
    assert back.points['error'].isna().tolist() == [True, False]
    assert back.lines.equals(lines)
