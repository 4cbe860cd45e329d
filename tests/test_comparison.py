"""An architecture beside all others: suites are frozen, verdicts are right, cards and boards are made of rows."""

import dataclasses
import json
import re
import types

import numpy as np
import pandas as pd
import pytest
from flax import linen as nn
from scipy import stats

import qstr_jax
from qstr_jax import models, sweeps
from qstr_jax.cli import board as cli_board
from qstr_jax.cli import compare, runtime
from qstr_jax.comparison import board, entries, paired, suite
from qstr_jax.comparison import card as cards
from qstr_jax.models import probes
from qstr_jax.settings import registry
from qstr_jax.storage import files, results
from qstr_jax.storage.files import ResultsError
from qstr_jax.sweeps import outputs
from tests import helpers, small

TINY = suite.Suite(
    'tiny-1', (suite.Task('qstr', 'looks up a token', 0.9),), (3, 4), num_seeds=2, max_samples=1920, test_samples=64
)
WIDTH = {'ffn.widths': (8,)}


def test_suites_never_change():
    """Other points are another version: whoever changes these numbers makes old rows and new ones incomparable."""
    said = {name: files.digest(json.loads(json.dumps(dataclasses.asdict(one)))) for name, one in suite.SUITES.items()}
    assert said == {'quick': 'cb61c4ce', 'long': 'fdf1266c'}
    assert suite.RATES == (1e-3, 3e-3, 1e-2)


class Sized(nn.Module):
    """A module that may say how much it carries; a field of that name, as of many SSMs, says nothing."""

    state_size: int = 16

    @nn.compact
    def __call__(self, z_NxE):
        return nn.Dense(1)(z_NxE)[:, 0]


class Counted(Sized):
    def state_size(self, seq_len):
        return 3 * seq_len


class Miscounted(Sized):
    def state_size(self):
        return 3


@pytest.mark.parametrize(('kind', 'numbers'), [(Sized, np.nan), (Counted, 12), (Miscounted, None)])
def test_the_state_size_is_what_a_method_says(kind, numbers, own_entries):
    models.register('sized')(lambda task: kind())
    cell = small.cell('sized', seq_lens=4, probes='state_size')
    probe = {'state_size': probes.get('state_size')}
    if numbers is None:
        with pytest.raises(ValueError, match=r"^models='sized', probes='state_size': TypeError: .*size\(\) takes 1"):
            outputs.check([cell], probe)
    else:
        assert outputs.check([cell], probe)[cell.id]['state_size'].columns == ('state_size',)
        np.testing.assert_equal(float(suite.state_size(None, None, cell.problem)['state_size']), numbers)


def lanes(entry, logs, budget=64_000, task='qstr'):
    """Rows of one entry at N = 8, 16, … with the log samples of its lanes; more than the budget is censored."""
    rows = []
    for seq_len, own in zip((8, 16, 32), logs, strict=False):
        for seed, log in enumerate(own):
            learns = np.exp(log) < budget
            rows.append({
                'entry': entry, 'task': task, 'seq_len': seq_len, 'seed': seed, 'max_samples': budget,
                'outcome': 'reached' if learns else 'censored', 'samples_to_threshold': np.exp(log) if learns else None,
                'batch_size': 64, 'check_every': 10,
            })  # fmt: skip
    return pd.DataFrame(rows).astype({'samples_to_threshold': 'Float64'})


def says(mine, other):
    return [one.says for one in paired.verdicts(lanes('mine', mine), lanes('other', other))]


def test_what_is_clear_is_said_and_what_is_not_is_not():
    near = [[9.0, 9.1, 9.2], [9.9, 10.0, 10.2]]
    far = [[8.0, 8.1, 8.2], [11.0, 10.9, 11.3]]
    assert says(far, near) == ['better', 'worse']
    assert says([[8.9, 9.3, 9.1], [9.5, 10.4, 10.2]], near) == ['cannot say', 'cannot say']
    assert says([[12.0] * 3], [[12.0] * 3]) == ['neither learns']
    assert says([[8.0]], [[9.0]]) == ['cannot say']  # one lane has no variance


def test_a_card_names_the_others_of_whom_the_same_holds_together():
    rivals = pd.concat([
        lanes('near', [[9.0, 9.1, 9.2], [9.9, 10.0, 10.2]]), lanes('far', [[11.0, 11.1, 11.2], [12.0] * 3]),
        lanes('far_too', [[11.0, 11.2, 11.1], [12.0] * 3]),
    ])  # fmt: skip
    verdicts = paired.verdicts(lanes('mine', [[9.1, 9.0, 9.2], [12.0] * 3]), rivals)
    assert cards.sentences(verdicts, 3) == [
        'significantly fewer samples than far, far_too (N = 8)',
        'significantly more samples than near (N = 16)',
        '3 lanes cannot say whether fewer or more than near (N = 8)',
        'does not learn within the budget; nor, at the same N, does any of far, far_too (N = 16)',
    ]
    assert cards.sentences([one for one in verdicts if one.says == 'better'], 2)[0].endswith('all 2 others (N = 8)')


def test_the_quiet_lanes_of_other_n_do_not_make_noisy_ones_sure():
    other = [[9.0, 9.0, 9.0]] * 3
    assert says([[9.0, 9.02, 9.04], [9.0, 9.02, 9.04], [7.4, 8.6, 8.4]], other)[2] == 'cannot say'


def test_lanes_are_paired_by_their_prompts():
    """A seed that is hard for both hides no difference between them."""
    hard = np.array([[8.0, 9.5, 10.0], [8.2, 10.4, 9.1]])
    assert says(hard - 0.5, hard) == ['better', 'better']
    assert says(hard[:, ::-1] - 0.5, hard) == ['cannot say', 'cannot say']


def test_a_lane_that_used_up_its_budget_is_a_bound():
    one = paired.verdicts(lanes('mine', [[9.0, 9.1, 9.2]]), lanes('other', [[12.0] * 3]))[0]
    assert one.is_bound
    assert one.says == 'better'
    assert one.text.startswith('within the budget')


@pytest.mark.parametrize('noise', [(0.3, 0.3, 0.3), (0.05, 0.05, 0.5)], ids=str)
def test_a_wrong_statement_is_rare(noise):
    """Without a difference, some statement of a card with five others is wrong in at most about 5 % of cards."""
    random, wrong, num_cards = np.random.default_rng(0), 0, 60

    def drawn(entry):
        return lanes(entry, random.normal(9, np.array(noise)[:, None], (3, 3)))

    for _ in range(num_cards):
        others = pd.concat([drawn(f'e{i}') for i in range(5)])
        wrong += any(one.says in ('better', 'worse') for one in paired.verdicts(drawn('mine'), others))
    assert wrong / num_cards < 0.12


@pytest.mark.parametrize(
    ('p', 'num_hold'), [([0.01, 0.02, 0.03], 3), ([0.01, 0.03, 0.04], 1), ([0.02, 0.001, 0.04], 3), ([0.02] * 3, 0)]
)
def test_holm_tests_the_smallest_first_and_ends_at_the_first_that_fails(p, num_hold):
    one = paired.verdicts(lanes('mine', [[8.0, 8.1]]), lanes('other', [[9.0, 9.1]]))[0]
    held = paired._by_holm([one._replace(seq_len=place, p=value, says='better') for place, value in enumerate(p)])
    assert [verdict.says for verdict in held].count('better') == num_hold


def test_an_interval_that_excludes_1_is_not_said_to_say_nothing():
    """With one N and many others the corrected test may not decide where the interval does."""
    rivals = pd.concat([lanes(f'e{i}', [[9.0, 9.1, 9.2]]) for i in range(20)])
    for shift, says, less in (-0.9, 'fewer', 'fewer'), (0.9, 'more', 'more'):
        found = paired.verdicts(lanes('mine', [[9.0 + shift, 9.4 + shift, 9.2 + shift]]), rivals)
        assert {one.says for one in found} == {says}
        assert all((one.high < 1) or (one.low > 1) for one in found)
        doubt = f"{less}, but not significant among the card's 20 statements"
        assert found[0].text.endswith(f'times the samples: {doubt}')
        [sentence] = cards.sentences(found, 20)
        assert sentence == f'{doubt.replace(",", " samples,")}, than all 20 others (N = 8)'


def test_equal_differences_within_one_check_say_nothing():
    assert says([[9.02, 9.02, 9.02]], [[9.0, 9.0, 9.0]]) == ['cannot say']
    assert says([[9.02 + 2, 9.02 + 2, 9.02 + 2]], [[9.0, 9.0, 9.0]]) == ['worse']


@pytest.fixture(scope='module')
def measured(tmp_path_factory):
    """A results directory of the tiny suite, its card, and its folder on a board."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(suite.SUITES, 'quick', TINY)
        folder = tmp_path_factory.mktemp('compare')
        workdir, options = folder / 'mine', sweeps.Options(progress=False, num_devices=1)
        cards = qstr_jax.compare('ffn', workdir, options=options, **WIDTH)
        before = {path: path.read_bytes() for path in (workdir / 'rows').iterdir()}
        again = qstr_jax.compare(None, workdir)
        assert again['ffn']['rows'] == cards['ffn']['rows']
        assert repr(again).startswith('ffn on qstr: ')
        assert before == {path: path.read_bytes() for path in (workdir / 'rows').iterdir()}
        board.submit(workdir, folder / 'board', suite='quick', settings=WIDTH)
    return folder


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setitem(suite.SUITES, 'quick', TINY)


def test_a_task_ends_where_no_lane_learns(tmp_path, monkeypatch):
    hard = dataclasses.replace(TINY, tasks=(dataclasses.replace(TINY.tasks[0], threshold=1e-9),))
    monkeypatch.setitem(suite.SUITES, 'quick', hard)
    options = sweeps.Options(progress=False, num_devices=1)
    for folder, given in ('ended', {}), ('every', {'every_point': True}):
        qstr_jax.compare('ffn', tmp_path / folder, options=options, **given, **WIDTH)
    ended, every = (results.load(tmp_path / folder).set_index('cell') for folder in ('ended', 'every'))
    assert ended['seq_len'].tolist() == [3, 3]
    assert every['seq_len'].tolist() == [3, 3, 4, 4]
    pd.testing.assert_frame_equal(ended, every.loc[ended.index.unique(), ended.columns])
    assert '| –' in (tmp_path / 'ended/card.md').read_text()
    qstr_jax.compare('ffn', tmp_path / 'ended', every_point=True, options=options, **WIDTH)
    resumed = results.load(tmp_path / 'ended').set_index('cell')
    pd.testing.assert_frame_equal(resumed, every[resumed.columns])


def test_only_a_tuned_sweep_can_end_where_no_lane_learns(tmp_path):
    sweep = sweeps.Sweep(models='ffn', seq_lens=4)
    with pytest.raises(ValueError, match='until_none_learns=True: would be ignored'):
        sweeps.run_all([sweep], tmp_path / 'new', until_none_learns=True)
    assert not (tmp_path / 'new').exists()


def test_the_card_is_one_small_page_without_network(measured):
    page = (measured / 'mine/card.html').read_text()
    assert len(page) < 1_000_000
    assert "default-src 'none'" in page
    assert 'http' not in page.replace('http-equiv', '')
    assert '<script' not in page
    card = json.loads((measured / 'mine/card.json').read_text())
    assert len(card['rows']) == 4
    assert all(str(seq_len) in card['tasks'][0]['lines'][0]['samples'] for seq_len in TINY.seq_lens)
    text = (measured / 'mine/card.md').read_text()
    assert '| ffn' in text
    assert 'ffn stands first' in text
    assert ('of a ratio' in page, 'of a ratio' in text) == (True, False)  # only the page has ratios
    assert ('pooled' in page, 'pooled' in text) == (True, True)
    assert ('<th>steps/s' in page, 'steps/s' in text) == (False, False)  # no other entry has a speed
    assert card['tasks'][0]['lines'][0]['steps_per_second'] != '–'
    assert (measured / 'mine/card.png').read_bytes().startswith(b'\x89PNG')


@pytest.mark.parametrize(('speeds', 'is_shown'), [(['9', '–', '–'], False), (['9', '8', '–'], True), ([], False)])
def test_a_speed_is_shown_beside_another(speeds, is_shown):
    line = {'entry': 'e', 'is_outside': False, 'samples': {}, 'exponent': '–', 'parameters': '–', 'state_size': '–'}
    assert ('steps/s' in cards.table([{**line, 'steps_per_second': one} for one in speeds], [8])) == is_shown


@pytest.mark.usefixtures('tiny')
def test_an_entry_is_checked_bit_for_bit(measured, tmp_path):
    folder = measured / 'board/ffn'
    assert [one.text.rpartition(': ')[2] for one in board.check(folder, num_lanes=1)] == ['the same bit for bit']
    entry, rows = board.read(folder)
    rows.loc[:, 'test_loss'] *= 1 + 1e-6
    (tmp_path / 'ffn').mkdir()
    files.write_table(tmp_path / 'ffn/rows.parquet', rows)
    files.write_json(tmp_path / 'ffn/entry.json', entry)
    other = board.check(tmp_path / 'ffn', num_lanes=1)[0]
    assert 'test_loss' in other.text
    assert other.holds


@pytest.mark.usefixtures('tiny')
@pytest.mark.parametrize(
    ('column', 'value'),
    [
        ('entry', 'other'),
        ('suite', 'quick-1'),
        ('seq_len', 5),
        ('num_samples', 5000),
        ('seed', 7),
        ('outcome', 'fitted'),
        ('outcome', 'censored_below'),
        ('seed', -1),
        ('seed', 0.5),
        ('num_samples', 0),
        ('num_samples', 641),
        ('num_samples', 'x'),
        ('num_parameters', '<script>'),
        ('steps_per_second', np.inf),
        ('state_size', True),
        ('learning_rate', -1.0),
        ('batch_size', 0),
        ('lanes_per_batch', None),
        ('outcome', 'censored'),
        ('test_loss', 0.95),
        ('learner', ['online']),
    ],
)
def test_rows_that_no_run_leaves_are_refused(measured, tmp_path, column, value):
    entry, rows = board.read(measured / 'board/ffn')
    right = rows[rows['seq_len'] == 3].assign(outcome='reached', num_samples=640, test_loss=0.5)
    right, wrong = (
        one.assign(samples_to_threshold=one['num_samples'])
        for one in (right, right.assign(**{column: [value] * len(right)}))
    )
    (tmp_path / 'ffn').mkdir()
    files.write_json(tmp_path / 'ffn/entry.json', entry)
    files.write_table(tmp_path / 'ffn/rows.parquet', right)
    board.read(tmp_path / 'ffn')
    files.write_table(tmp_path / 'ffn/rows.parquet', wrong)
    with pytest.raises(ResultsError, match=r'rows.parquet is damaged'):
        board.read(tmp_path / 'ffn')


@pytest.mark.usefixtures('tiny')
def test_what_is_large_or_a_link_is_no_entry(measured, tmp_path):
    entry, rows = board.read(measured / 'board/ffn')
    (tmp_path / 'link').symlink_to(measured / 'board/ffn')
    with pytest.raises(ResultsError, match='symbolic link'):
        board.read(tmp_path / 'link')
    (tmp_path / 'ffn').mkdir()
    files.write_json(tmp_path / 'ffn/entry.json', entry)
    for wrong in rows.assign(program='x' * 2**19), pd.concat([rows] * 1000), rows.head(0):
        files.write_table(tmp_path / 'ffn/rows.parquet', wrong)
        with pytest.raises(ResultsError, match='rows'):
            board.read(tmp_path / 'ffn')


@pytest.mark.usefixtures('tiny')
def test_other_settings_are_refused_before_anything_runs(measured, monkeypatch):
    monkeypatch.setattr(sweeps, 'run_all', lambda *given: pytest.fail('it ran'))
    with pytest.raises(ValueError, match=r"ffn_widths=.*has rows with '8'; give each setting"):
        qstr_jax.compare('ffn', measured / 'mine', **{'ffn.widths': (9,)})


@pytest.mark.usefixtures('tiny')
def test_a_lane_that_diverged_may_have_an_infinite_loss(measured, tmp_path):
    entry, rows = board.read(measured / 'board/ffn')
    lost = {'outcome': 'diverged', 'samples_to_threshold': None, 'train_loss': np.inf, 'test_loss': np.nan}
    (tmp_path / 'ffn').mkdir()
    files.write_json(tmp_path / 'ffn/entry.json', entry)
    files.write_table(tmp_path / 'ffn/rows.parquet', rows.assign(**lost))
    assert len(board.read(tmp_path / 'ffn')[1]) == len(rows)


@pytest.mark.usefixtures('tiny')
def test_an_entry_has_all_lanes_of_its_points(measured, tmp_path):
    entry, rows = board.read(measured / 'board/ffn')
    (tmp_path / 'ffn').mkdir()
    files.write_json(tmp_path / 'ffn/entry.json', entry)
    files.write_table(tmp_path / 'ffn/rows.parquet', rows[rows['seq_len'] == 3])
    board.read(tmp_path / 'ffn')
    files.write_table(tmp_path / 'ffn/rows.parquet', rows[rows['seed'] == 1])
    with pytest.raises(ResultsError, match='rows that no run of the suite leaves, such as qstr, N = 3, seed 1'):
        board.read(tmp_path / 'ffn')


@pytest.mark.usefixtures('tiny')
def test_a_submission_without_some_lanes_of_a_point_is_refused(measured, tmp_path, monkeypatch):
    rows = results.load(measured / 'mine')
    monkeypatch.setattr(results, 'load', lambda _: rows[rows['seed'] == 1])
    with pytest.raises(ValueError, match='has 1 of 2 lanes of qstr, N = 3; give the same command without --submit'):
        board.submit(measured / 'mine', tmp_path / 'board', suite='quick')
    assert not (tmp_path / 'board').exists()


def test_shorter_prompts_come_first():
    assert all(sweep.as_json()['settings']['task.seq_len'] == [3, 4] for sweep in TINY.sweeps_of('ffn', (4, 3)))


@pytest.mark.usefixtures('tiny')
def test_rates_that_were_chosen_in_another_way_are_refused(measured, monkeypatch):
    rows = results.load(measured / 'mine')
    for change in {'tuned_seeds': '0 1'}, {'tuned': None}:
        changed = rows.assign(**change)
        monkeypatch.setattr(results, 'load', lambda _, changed=changed: changed)
        with pytest.raises(ValueError, match='were not chosen as the suite does'):
            entries.of_directory(measured / 'mine', TINY)


@pytest.mark.usefixtures('tiny')
def test_several_values_of_a_setting_are_refused_before_anything_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(sweeps, 'run_all', lambda *given: pytest.fail('it ran'))
    with pytest.raises(ValueError, match='ffn_widths: has values'):
        qstr_jax.compare('ffn', tmp_path, **{'ffn.widths': ((8,), (9,))})


@pytest.mark.usefixtures('tiny')
def test_a_submission_without_the_module_of_its_model_is_refused(measured, tmp_path, own_entries):
    qstr_jax.register_model('forgotten')(lambda task: None)
    rows = results.load(measured / 'mine')
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(results, 'load', lambda _: rows.assign(model='forgotten'))
        with pytest.raises(ValueError, match="does not make 'forgotten'"):
            board.submit(measured / 'mine', tmp_path, suite='quick')
    assert not (tmp_path / 'forgotten').exists()


@pytest.mark.usefixtures('tiny')
def test_the_source_of_a_plugin_is_submitted_and_no_folder_is_overwritten(measured, tmp_path, monkeypatch):
    (tmp_path / 'my_empty.py').write_text('# nothing\n')
    monkeypatch.syspath_prepend(tmp_path)
    given = {'suite': 'quick', 'settings': WIDTH, 'source': 'https://example.org'}
    folder = board.submit(measured / 'mine', tmp_path / 'board', plugins=('my_empty',), **given)
    assert (folder / 'my_empty.py').read_text() == '# nothing\n'
    assert board.read(folder)[0]['plugins'] == ['my_empty']
    with pytest.raises(ValueError, match='is there already'):
        board.submit(measured / 'mine', tmp_path / 'board', **given)
    with pytest.raises(ValueError, match="plugins='json'"):
        board.submit(measured / 'mine', tmp_path / 'other', plugins=('json',), **given)
    for name in 'sys', 'no_package.module':
        with pytest.raises(ValueError, match=f"plugins='{name}'.*one file"):
            board.submit(measured / 'mine', tmp_path / 'other', plugins=(name,), **given)
    assert not (tmp_path / 'other').exists()


def test_an_entry_has_a_folder_for_each_suite(measured, tmp_path, monkeypatch):
    monkeypatch.setitem(suite.SUITES, 'long', TINY)
    folder = board.submit(measured / 'mine', tmp_path, suite='long', settings=WIDTH)
    assert folder.name == 'ffn_long'
    assert 'board check board/ffn_long' in (folder / 'README.md').read_text()
    assert len(board.read(folder)[1]) == 4
    with pytest.raises(ResultsError, match='not of this entry'):
        board.read(folder.rename(tmp_path / 'ffn'))


@pytest.mark.usefixtures('tiny')
def test_the_page_shows_each_entry_on_each_task(measured):
    page = board.page(measured / 'board')
    ((name, picture),) = board.pictures(measured / 'board').items()
    assert picture.startswith(b'\x89PNG')
    assert f'(board/{name})' in board.page(measured / 'board', [name])
    assert '.png' not in page
    assert '## qstr, tiny-1' in page
    assert '| ffn' in page


def test_the_committed_rows_are_those_of_the_board():
    made = board.all_rows(helpers.ROOT / 'board')
    pd.testing.assert_frame_equal(made, entries.reference())
    assert entries.REFERENCE.stat().st_size < 1_000_000


def test_rows_of_a_foreign_loop_are_compared_as_any_others(tmp_path):
    points = suite.SUITES['quick']
    for seed in range(4):
        given = points.judged_by(points.tasks[0]) | ({'max_samples': 1280} if seed == 3 else {})
        judge = qstr_jax.judge('qstr', 8, seed, **given)
        judge.check(judge.labels, 640)
        qstr_jax.outside.write_rows(tmp_path / 'mine', 'torch_net', [judge], num_parameters=100)
    with pytest.warns(UserWarning, match='left out: 1 of 4 rows, such as max_samples=1280, the suite has 64000'):
        card = qstr_jax.compare(None, tmp_path / 'mine')['torch_net']
    assert card['tasks'][0]['lines'][0]['entry'] == 'torch_net'
    known = {'better', 'worse', 'fewer', 'more', 'cannot say', 'neither learns'}
    assert {one['says'] for one in card['tasks'][0]['pairs']} <= known
    sentence = card['tasks'][0]['says'][0]
    assert sentence.startswith('significantly fewer samples than all ')
    shown = cards.Cards(torch_net=card)
    assert repr(shown).startswith(f'torch_net on qstr: {sentence}')
    assert len(repr(shown).splitlines()) == 3
    assert '<td>torch_net (outside)</td>' in shown._repr_html_()
    folder = board.submit(tmp_path / 'mine', tmp_path / 'board', suite='quick')
    assert board.missing(board.read(folder)[1], 'quick')[:2] == ['qstr, N = 16', 'qstr, N = 32']
    with pytest.raises(ValueError, match=r"README.md: still has the line 'What it is.'"):
        board.check(folder)
    (folder / 'README.md').write_text('# torch_net')
    assert board.check(folder) == []  # nobody can run it again


@pytest.mark.parametrize(
    'given',
    [{'options': sweeps.Options()}, {'seq_lens': [8]}, {'every_point': True}, WIDTH, {'ffn.bias': False}],
    ids=str,
)
def test_what_would_be_ignored_without_models_is_an_error(tmp_path, given):
    with pytest.raises(ValueError, match='would be ignored, since without models nothing is run'):
        qstr_jax.compare(None, tmp_path, **given)


def outside_row(workdir, model='torch_net', samples=640, seed=0, measures=None, **settings):
    """A row of a foreign loop on the quick suite."""
    points = suite.SUITES['quick']
    judge = qstr_jax.judge({'name': 'qstr', **settings}, 8, seed, **points.judged_by(points.tasks[0]))
    judge.check(judge.labels, samples)
    return qstr_jax.outside.write_rows(workdir, model, [judge], **(measures or {}))


@pytest.mark.parametrize('measures', [{'state_size': 'big'}, {'state_size': -7}, {'num_parameters': 0}], ids=str)
def test_a_value_that_no_card_can_show_is_a_line_with_its_column(tmp_path, measures):
    outside_row(tmp_path, measures=measures)
    with pytest.raises(ValueError, match=f'{tmp_path}: {next(iter(measures))}: must be'):
        qstr_jax.compare(None, tmp_path)


def test_no_submission_is_left_that_the_board_does_not_read(tmp_path):
    for seed in range(3):
        outside_row(tmp_path / 'mine', seed=seed, samples=500, measures={'batch_size': 64, 'check_every': 10})
    with pytest.raises(ValueError, match='seed 0: num_samples is no multiple of batch_size × check_every'):
        board.submit(tmp_path / 'mine', tmp_path / 'board', suite='quick')
    assert not (tmp_path / 'board').exists()


def test_a_name_in_a_file_of_rows_leads_nowhere_else(tmp_path):
    workdir = tmp_path / 'results'
    cell = outside_row(workdir)['cell'].iloc[0]
    for kind in 'rows', 'curves':
        table = files.read_table(workdir / kind / f'{cell}.parquet', cell)
        table = table.assign(model='../elsewhere') if kind == 'rows' else table
        files.write_table(workdir / kind / 'other.parquet', table, 'other')
    with pytest.raises(ResultsError, match=r'elsewhere.*cannot be a name'):
        qstr_jax.compare(None, workdir)
    assert not (tmp_path / 'elsewhere').exists()


def test_a_foreign_model_with_the_name_of_an_entry_is_said_to_replace_it(tmp_path):
    outside_row(tmp_path, 'mamba2')
    with pytest.warns(UserWarning, match="mamba2: stands on the card in place of the board's entry"):
        card = qstr_jax.compare(None, tmp_path)['mamba2']
    assert [line['entry'] for line in card['tasks'][0]['lines']].count('mamba2') == 1


@pytest.mark.parametrize('settings', [{'token_dim': 3}, {'sparsity': 2}, {'encoding_dim': 12}], ids=str)
def test_rows_of_another_task_are_not_of_the_suite(tmp_path, settings):
    outside_row(tmp_path, **settings)
    assert entries.of_directory(tmp_path, suite.SUITES['quick']).empty


@pytest.mark.usefixtures('tiny')
@pytest.mark.parametrize(
    'change',
    [
        {'batch_size': 8}, {'optimizer': 'adam'}, {'weight_decay': 0.1}, {'learner': 'stationary'},
        {'test_seq_len': 9}, {'outcome': 'outraced'}, {'outcome': 'fitted'},
    ],
    ids=str,
)  # fmt: skip
def test_nor_are_those_of_another_learner(measured, change):
    rows = results.load(measured / 'mine')
    assert len(TINY.rows_of(rows)) == 4
    assert TINY.rows_of(rows.assign(**change)).empty


def test_the_speed_is_that_of_the_seconds_after_compilation():
    batch = {'cell': 'a', 'program': 'now', 'wall_seconds': 2.0, 'compile_seconds': 5.0}
    batches = [batch, {**batch, 'program': 'replaced'}]
    rows = pd.DataFrame({'cell': 'a', 'program': 'now', 'steps': [10, 30]})
    speed = entries._speed([{'device': 'd', 'batches': batches}], rows)
    assert speed['steps_per_second'].tolist() == [20.0]


@pytest.mark.parametrize(
    ('models', 'key', 'like'),
    [('mamba2', 'width', 'mamba2.width'), (['rnn', 'ffn'], 'widths', 'ffn.widths'), ((), 'width', 'rnn.width')],
)
def test_a_setting_without_its_model_is_answered_with_one_of_the_model(models, key, like):
    with pytest.raises(ValueError, match=f'{key}=50: the suite sets all but the settings of models, such as {like}$'):
        suite.check_of_models({key: 50}, models)


def test_an_entry_of_the_board_is_no_results_directory():
    with pytest.raises(ResultsError, match=r'it is an entry of the board: read its rows\.parquet with pandas'):
        qstr_jax.load(helpers.ROOT / 'board/gla')


@pytest.mark.parametrize('settings', [{'max_samples': 1000}, {'learner.batch_size': 8}, {'qstr': {'sparsity': 2}}])
def test_only_models_have_settings(settings):
    with pytest.raises(ValueError, match='the suite sets all but'):
        TINY.sweeps_of('ffn', **settings)


@pytest.mark.parametrize(
    'given',
    [
        {'models': ['nobody']}, {'plugins': ['my_missing']}, {'suite': 'other'}, {'seq_lens': ['x']}, {'seq_lens': []},
        {'seq_lens': ['9'], 'models': ['ffn']}, {'settings': '3'}, {'models': None},
        {'seq_lens': ['8']}, {'every_point': True}, {'settings': "{'suite': 'long'}", 'models': ['ffn']},
        {'settings': "{'ffn.widths': (8,)}"}, {'source': 'https://example.org'},
    ],
    ids=str,
)  # fmt: skip
def test_what_is_wrong_with_the_command_line_is_said(given, tmp_path, monkeypatch):
    monkeypatch.setattr(runtime, 'start', lambda: None)
    name, value = next(iter(given.items()))
    says = {'models=None': 'give models to run', "settings={'ffn.widths': (8,)}": 'ffn.widths'}.get(
        f'{name}={value}', name
    )
    defaults = {**dict.fromkeys(compare.OWN), 'plugins': [], 'suite': 'quick', 'settings': '', **given}
    with helpers.flag_values(workdir=[str(tmp_path)]), pytest.raises((ValueError, ResultsError), match=says):
        compare.run(types.SimpleNamespace(**defaults))


@pytest.mark.parametrize(
    ('given', 'says'),
    [
        ({'models': ['ffn', 'rnn']}, r'has rows of 2 models \(ffn, rnn\); submit one'),
        ({'models': ['rnn']}, 'is there already'),
        ({'models': ['ffn'], 'plugins': ['json']}, "plugins='json': a submission takes modules of one file"),
        ({'models': ['forgotten']}, "does not make 'forgotten'.*name its module in --plugins"),
        ({'models': ['nobody']}, '--models=.nobody.: unknown.*needs --plugins=MODULE'),
    ],
    ids=str,
)
def test_what_submit_refuses_is_said_before_anything_runs(given, says, tmp_path, monkeypatch, own_entries):
    qstr_jax.register_model('forgotten')(lambda task: None)
    monkeypatch.setattr(runtime, 'start', lambda: None)
    monkeypatch.setattr(compare.comparison, 'compare', lambda *args, **given: pytest.fail('it ran'))
    (tmp_path / 'board/rnn').mkdir(parents=True)
    submit = {'suite': 'quick', 'settings': '', 'plugins': [], 'submit': str(tmp_path / 'board'), **given}
    with helpers.flag_values(workdir=[str(tmp_path)]), pytest.raises(ValueError, match=says):
        compare.run(types.SimpleNamespace(**{**dict.fromkeys(compare.OWN), **submit}))


def test_a_submission_says_which_points_it_lacks(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(runtime, 'start', lambda: None)
    monkeypatch.setattr(compare.comparison, 'compare', lambda *args, **given: {})
    for seed in range(3):
        outside_row(tmp_path / 'mine', seed=seed)
    given = {'suite': 'quick', 'settings': '', 'plugins': [], 'source': '', 'submit': str(tmp_path / 'board')}
    with helpers.flag_values(workdir=[str(tmp_path / 'mine')]):
        compare.run(types.SimpleNamespace(**{**dict.fromkeys(compare.OWN), **given}))
    assert 'board/torch_net: has no rows of qstr, N = 16; qstr, N = 32; noisy_keys, N = 8;' in capsys.readouterr().out
    readme = (tmp_path / 'board/torch_net/README.md').read_text()
    assert 'Trained by a program of its own on the suite quick-1.' in readme


@pytest.mark.usefixtures('tiny')
def test_the_directory_of_another_model_is_no_place_for_a_submission(measured, tmp_path):
    with pytest.raises(ValueError, match=r'has rows of 2 models \(ffn, rnn\); submit one'):
        board.check_before(['rnn'], measured / 'mine', tmp_path, suite='quick')


def test_a_readme_says_what_the_builder_says(measured):
    readme = (measured / 'board/ffn/README.md').read_text()
    assert f'\n{registry.entries()["ffn"].summary}\n' in readme
    assert 'What it is.' not in readme


def test_readmes_say_how_many_parameters_their_rows_have():
    said = 0
    for path in sorted((helpers.ROOT / 'board').glob('*/README.md')):
        for number in re.findall(r'about ([\d,]+) parameters', path.read_text()):
            parameters = files.read_table(path.parent / 'rows.parquet')['num_parameters']
            assert parameters.between(0.95 * int(number.replace(',', '')), 1.05 * int(number.replace(',', ''))).all(), (
                path
            )
            said += 1
    assert said > 15


def test_a_table_says_why_a_line_has_no_exponent_or_no_interval():
    rows = entries.reference()
    lines = cards.lines_of(rows[rows['suite'].eq('quick-1') & rows['task'].eq('qstr')], (8, 16, 32))
    exponents = {line['entry']: line['exponent'] for line in lines}
    assert exponents['gla'] == 'only 1 of 3 N reached, 3 needed'
    assert exponents['rg_lru'] == '1.52 (no interval: the three means do not lie on a line)'
    assert exponents['deltanet'].endswith('by lane noise alone] (1 of 9 lanes are bounds (N = 32))')
    assert '~' in board._ABOUT


def test_the_reference_says_what_it_wrote(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(entries, 'REFERENCE', tmp_path / 'reference.parquet')
    cli_board.run('reference', str(helpers.ROOT / 'board'))
    rows = files.read_table(tmp_path / 'reference.parquet')
    assert capsys.readouterr().out.startswith(f'{tmp_path}/reference.parquet: {len(rows)} rows of ')


def test_the_board_says_what_it_can_do():
    with pytest.raises(ValueError, match='page, reference or check'):
        cli_board.run('nothing')
    with pytest.raises(ValueError, match='one folder'):
        cli_board.run('check', 'a', 'b')


@pytest.mark.usefixtures('tiny')
def test_a_plugin_that_cannot_be_imported_is_a_line(measured, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / 'my_broken.py').write_text('')
    folder = board.submit(measured / 'mine', tmp_path / 'board', suite='quick', plugins=('my_broken',))
    (tmp_path / 'my_broken.py').unlink()
    (folder / 'my_broken.py').write_text('1 / 0')
    monkeypatch.chdir(folder)  # whose name is then that of '.'
    with pytest.raises(ValueError, match="plugins='my_broken': ZeroDivisionError"):
        board.check('.')


def test_a_folder_without_entries_is_no_board(tmp_path):
    with pytest.raises(ValueError, match=f'{tmp_path}: holds no entries of a board'):
        board.page(tmp_path)


def student(verdict, d, variance, degrees):
    """Whether a verdict has Student's 95% interval of the mean of d."""
    half = stats.t.ppf(0.975, degrees) * np.sqrt(variance / len(d))
    expected = np.exp([np.mean(d), np.mean(d) - half, np.mean(d) + half])
    return [verdict.ratio, verdict.low, verdict.high] == pytest.approx(list(expected))


def test_one_pair_of_entries_has_students_interval():
    mine, other = np.array([8.0, 8.9, 8.3]), np.array([9.0, 9.1, 9.2])
    (one,) = paired.verdicts(lanes('mine', [mine]), lanes('other', [other]))
    assert student(one, mine - other, np.var(mine - other, ddof=1), degrees=2)


def test_lanes_that_agree_have_the_noise_of_their_checks():
    """A crossing is anywhere within one check of 640 samples, so its log is uniform: the width squared, over 12."""
    mine, other = [9.02] * 3, [9.0] * 3
    (one,) = paired.verdicts(lanes('mine', [mine]), lanes('other', [other]))
    widths = [-np.log1p(-640 / np.exp(log)) for log in (9.02, 9.0)]
    assert student(one, np.subtract(mine, other), sum(np.square(widths)) / 12, degrees=2)


def test_a_noisy_rival_is_not_judged_by_a_quiet_one():
    mine, quiet, noisy = [9.0] * 3, [9.5, 9.5, 9.5], np.array([8.0, 9.9, 9.1])
    rivals = pd.concat([lanes('noisy', [noisy, quiet]), lanes('quiet', [quiet, quiet])])
    one = paired.verdicts(lanes('mine', [mine, mine]), rivals)[0]
    assert (one.other, one.seq_len) == ('noisy', 8)
    assert student(one, mine - noisy, np.var(noisy, ddof=1), degrees=4)


def test_lanes_of_which_none_learns_say_nothing_about_the_noise():
    """Their difference is 0 because of the budget: neither another N nor another rival is surer by them."""
    near, lost = [8.0, 8.9, 8.3], [12.0] * 3
    own, noisy, quiet = lanes('mine', [near, lost]), [9.0, 10.3, 9.2], [9.0, 9.0, 9.0]
    with_lost = paired.verdicts(own, lanes('other', [noisy, lost]))[0]
    alone = paired.verdicts(own[own['seq_len'] == 8], lanes('other', [noisy]))[0]
    assert (with_lost.low, with_lost.high) == (alone.low, alone.high)
    rivals = pd.concat([lanes('noisy', [noisy, noisy]), lanes('quiet', [quiet, quiet])])
    one, other = (
        {(v.other, v.seq_len): (v.low, v.high) for v in paired.verdicts(own, found)}
        for found in (rivals, pd.concat([rivals, lanes('lost', [noisy, lost])]))
    )
    assert other['quiet', 16] == one['quiet', 16]
