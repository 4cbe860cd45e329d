"""Tuned sweeps: chosen on selection seeds, reported on others, raced, and the same whenever they are stopped."""

import shutil
import types

import numpy as np
import pandas as pd
import pytest

from qstr_jax import learners, progress, signals, sweeps
from qstr_jax.analysis import tuning
from qstr_jax.storage import results
from qstr_jax.sweeps import cells, grids, search, session, tune, tuned, worker
from tests import small

# Few steps, so that the highest rate wins.
TUNED = {
    'models': ('ffn',),
    'seq_lens': (2, 3),
    'num_seeds': 2,
    'task_per_lane': True,
    'learning_rate': None,
    'check_every': 1,
    'threshold': 0.8,
    'max_samples': 4800,
}


def settings(grid='auto', **changes):
    return small.settings(**{**TUNED, 'tune': {'learning_rate': grid, 'num_seeds': 2, 'margin': 1.1}, **changes})


@pytest.fixture(scope='module')
def workdir(tmp_path_factory):
    folder = tmp_path_factory.mktemp('tuned')
    sweeps.run(settings(), folder, small.quiet())
    return folder


def values(text):
    return [float(word) for word in text.split()]


@pytest.mark.slow
def test_other_seeds_are_reported_than_selected_on(workdir):
    reported, selected = results.load(workdir), results.load(workdir / results.SELECTION)
    assert set(reported['seed']) == {0, 1}
    assert set(selected['seed']) == {tune.FIRST_SEED, tune.FIRST_SEED + 1}
    assert not set(reported['task_seed']) & set(selected['task_seed'])
    assert (reported['stop_after'] == 0).all()


def test_values_that_miss_are_ranked_by_the_error_that_the_threshold_is_on():
    rows = (
        [{'outcome': 'censored', 'test_loss': 0.35, 'accuracy': 0.92}],
        [{'outcome': 'censored', 'test_loss': 0.43, 'accuracy': 0.93}],
    )
    of_classes, of_losses = (learners.Online(threshold_on=kind) for kind in ('error_rate', 'loss'))
    assert search._score(rows[1], of_classes, 1) < search._score(rows[0], of_classes, 1)
    assert search._score(rows[0], of_losses, 1) < search._score(rows[1], of_losses, 1)
    diverged = [{'outcome': 'diverged', 'test_loss': np.nan, 'accuracy': 0.95}]  # NaN logits name the first class
    assert search._score(rows[0], of_classes, 1) < search._score(diverged, of_classes, 1)


def test_a_repeated_run_says_what_is_there_and_so_does_a_dry_run(workdir, capsys):
    """Whatever rate was chosen."""
    sweeps.run(settings(), workdir, small.quiet(progress=True))
    assert '4 of 4 lanes are there already' in capsys.readouterr().err.splitlines()
    assert '4 of 4 lanes are there already' in small.listed(settings(), workdir).splitlines()


def test_the_chosen_rate_needs_the_fewest_samples_and_no_neighbour_is_untried(workdir):
    selected = tuning.longest(results.load(workdir / results.SELECTION))
    for seq_len, rows in results.load(workdir).groupby('seq_len'):
        (rate,) = set(rows['learning_rate'])
        tried = selected[selected['seq_len'] == seq_len]
        samples = tried['samples_to_threshold'].astype(float).fillna(np.inf)
        slowest = samples.groupby(tried['learning_rate']).max()
        assert slowest[rate] == slowest.min() < np.inf
        rates = sorted(slowest.index)
        assert rates[0] < rate < rates[-1]
        (row,) = rows[['tuned', 'tuned_grid', 'tuned_samples', 'tuned_seeds']].drop_duplicates().itertuples(index=False)
        assert row.tuned == 'learning_rate'
        assert set(values(row.tuned_grid)) <= set(rates)
        assert values(row.tuned_samples) == [slowest[one] for one in values(row.tuned_grid)]
        assert values(row.tuned_seeds) == [tune.FIRST_SEED, tune.FIRST_SEED + 1]


def test_rivals_are_stopped_just_where_they_have_lost(workdir):
    selected = results.load(workdir / results.SELECTION)
    raced = selected[selected['stop_after'] > 0]
    assert {'reached', 'outraced'} <= set(raced['outcome'])
    # No lane of a value that never learns goes on to the budget.
    assert 'censored' not in set(selected['outcome'])
    over = raced[raced['outcome'] == 'outraced']
    # A check comes every 16 samples.
    assert (over['num_samples'] >= over['stop_after']).all()
    assert (over['num_samples'] < over['stop_after'] + 16).all()


def test_a_lane_that_reached_is_not_run_again_with_a_longer_limit(tmp_path, monkeypatch):
    """At one rate a seed needs 400 samples and another 1,040, so a limit of 600 lets only one of them."""
    monkeypatch.setattr(search, 'GROWTH', 2)
    tuning_of = {'learning_rate': (0.01, 0.03), 'num_seeds': 3}
    sweeps.run(settings(seq_lens=3, threshold=0.7, tune=tuning_of), tmp_path, small.quiet())
    selected = results.load(tmp_path / results.SELECTION)
    lanes = selected.groupby(['learning_rate', 'seed'])
    by_limit = lanes.apply(lambda rows: list(rows.sort_values('stop_after')['outcome']), include_groups=False)
    assert any(outcomes[-2:] == ['outraced', 'reached'] for outcomes in by_limit)
    assert not any(outcomes.count('reached') > 1 for outcomes in by_limit)


def test_a_lane_that_reached_after_its_limit_has_lost():
    """Where a directory has a lane of a longer limit, a search chooses as without it."""
    sweep = settings()
    cell = cells.cells_of(sweep)[0]
    one = search.Search(types.SimpleNamespace(sweep=sweep), None, cell)
    lane = cell.lanes[0]._replace(seed=tune.FIRST_SEED, learning_rate=0.01, stop_after=800)
    one._rows = lambda: [{**lane._asdict(), 'outcome': 'reached', 'samples_to_threshold': 400}]
    asked = [lane._replace(stop_after=limit) for limit in (0, 1600, 400, 399)]
    assert list(one._reached(asked)) == asked[:3]


def test_a_step_that_another_sweep_of_the_call_stopped_is_not_gone_on_from(tmp_path):
    stop = signals.Stop()
    one = session.Session(settings(), small.quiet(), stop, progress.Progress('lane', is_shown=False), {})
    folder = one.open(tmp_path, ())
    stop.set()
    with pytest.raises(worker.Stopped):
        one.run(folder, cells.cells_of(settings())[:1])


def test_racing_changes_no_choice(workdir, tmp_path, monkeypatch):
    monkeypatch.setattr(search, 'FIRST_SHARE', 1)
    sweep = settings(seq_lens=2, tune={'learning_rate': 'auto', 'num_seeds': 2, 'margin': 1e6})
    sweeps.run(sweep, tmp_path, small.quiet())
    rows, raced = results.load(tmp_path), results.load(workdir)
    same = ['seed', 'learning_rate', 'samples_to_threshold', 'test_loss']
    assert rows[same].equals(raced.loc[raced['seq_len'] == 2, same].reset_index(drop=True))
    selected = results.load(tmp_path / results.SELECTION)
    assert not {'outraced', 'running'} & set(selected['outcome'])


def test_a_second_call_runs_nothing(workdir):
    before = {path: path.read_bytes() for path in workdir.rglob('*.parquet')}
    provenance = set(workdir.rglob('provenance/*.json'))
    sweeps.run(settings(), workdir, small.quiet())
    assert {path: path.read_bytes() for path in workdir.rglob('*.parquet')} == before
    assert set(workdir.rglob('provenance/*.json')) == provenance


def test_a_point_keeps_its_choice_where_a_later_search_finds_another(tmp_path, monkeypatch):
    """A shorter N that is added moves the start of the search; there are several seeds, and then one more."""

    def found(self, lane, before, rival=0.0):
        places = (1 if before or self.cell.problem.task.seq_len == 2 else 0,)
        return search.Found(places, {places: grids.Score(100.0, 0, 0.0)})

    monkeypatch.setattr(search.Search, 'run', found)
    grid = (1e-3, 1e-1)
    first = sweeps.run(settings(grid, seq_lens=3, num_seeds=2), tmp_path, small.quiet())
    rows = sweeps.run(settings(grid, seq_lens=(2, 3), num_seeds=3), tmp_path, small.quiet())
    assert rows.groupby(['seq_len', 'seed']).size().eq(1).all()
    assert len(rows) == 6
    same = rows[rows['seq_len'] == 3]
    assert set(same['learning_rate']) == set(first['learning_rate'])
    assert set(same['tuned_grid']) == set(first['tuned_grid'])
    assert rows.groupby('seq_len')['learning_rate'].first().nunique() == 2


@pytest.mark.slow
def test_stopped_and_continued_it_is_the_same(workdir, tmp_path, monkeypatch):
    """Wherever it is stopped: here after some steps of the search."""
    run = session.Session.run
    left = [3]

    def run_some(self, *arguments, **options):
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        return run(self, *arguments, **options)

    monkeypatch.setattr(session.Session, 'run', run_some)
    with pytest.raises(KeyboardInterrupt):
        sweeps.run(settings(seq_lens=2), tmp_path, small.quiet())
    monkeypatch.setattr(session.Session, 'run', run)
    sweeps.run(settings(seq_lens=2), tmp_path, small.quiet())
    for kind in 'rows', 'curves':
        for folder in '', results.SELECTION:
            for path in (tmp_path / folder / kind).glob('*.parquet'):
                pd.testing.assert_frame_equal(
                    pd.read_parquet(path), pd.read_parquet(workdir / folder / kind / path.name)
                )


@pytest.mark.slow
def test_a_search_for_n_star_is_tuned_too(tmp_path):
    sweep = settings(
        seq_lens=2,
        learners='adamw',
        batch_size=None,
        max_steps=40,
        check_every=20,
        min_samples=8,
        max_samples=64,
        tune={'learning_rate': (1e-3, 1e-2), 'num_seeds': 1},
    )
    rows = sweeps.run(sweep, tmp_path, small.quiet())
    (rate,) = set(rows['learning_rate'])
    selected = tuning.longest(results.load(tmp_path / results.SELECTION))
    found = selected.set_index('learning_rate')['samples_to_threshold'].astype(float).fillna(np.inf)
    assert found[rate] == found.min() < np.inf
    assert found.index.max() > 1e-2  # The best of the given values was at the edge.


def test_a_directory_is_tuned_in_one_way(workdir):
    with pytest.raises(results.ResultsError, match='were tuned with'):
        sweeps.run(settings(grid=(1e-3, 1e-2)), workdir, small.quiet())
    with pytest.raises(results.ResultsError, match='were tuned with'):
        sweeps.run(small.settings(), workdir, small.quiet())


def test_so_is_one_whose_config_is_gone(workdir, tmp_path):
    shutil.copytree(workdir, tmp_path / 'bare')
    (tmp_path / 'bare' / 'config.json').unlink()
    with pytest.raises(results.ResultsError, match='were tuned, unlike those of this sweep'):
        sweeps.run(settings(tune=None, learning_rate=1e-3), tmp_path / 'bare', small.quiet())
    rows = sweeps.run(settings(), tmp_path / 'bare', small.quiet())
    pd.testing.assert_frame_equal(rows, results.load(workdir))


def test_other_points_may_be_tuned_over_other_values_of_the_same_settings(workdir, tmp_path):
    directory = tmp_path / 'both'
    shutil.copytree(workdir, directory)
    before = results.load(directory)
    rows = sweeps.run(settings(grid=(1e-3, 1e-2), seq_lens=4), directory, small.quiet())
    assert set(rows['seq_len']) == {2, 3, 4}
    pd.testing.assert_frame_equal(rows[rows['seq_len'] < 4].reset_index(drop=True), before)
    with pytest.raises(results.ResultsError, match='were tuned with'):
        sweeps.run(settings(seq_lens=5, tune={'weight_decay': (0.1, 0.2)}), directory, small.quiet())


def test_a_setting_of_one_model_tells_no_points_of_another_apart(tmp_path):
    """Widths of the Transformer differ, but both sweeps have the same FFN; alone it is another Transformer."""
    one = {'models': ('transformer', 'ffn'), 'tune': {'learning_rate': (1e-3, 1e-2)}, 'transformer.mlp_width': 8}
    other = {**one, 'tune': {'learning_rate': (1e-5, 1e-4)}, 'transformer.mlp_width': 4}
    with pytest.raises(results.ResultsError, match='were tuned with'):
        results.check_tuned_alike(tmp_path, [settings(**one).as_json()], settings(**other).as_json())
    one['models'] = other['models'] = 'transformer'
    results.check_tuned_alike(tmp_path, [settings(**one).as_json()], settings(**other).as_json())


def test_rows_of_foreign_loops_may_stand_beside_tuned_ones(tmp_path):
    foreign = {'models': ['net'], 'learners': ['outside']}
    tuned_sweep = settings(tune={'learning_rate': 'auto'}).as_json()
    results.check_tuned_alike(tmp_path, [foreign], tuned_sweep)
    results.check_tuned_alike(tmp_path, [tuned_sweep], foreign)


def test_shares_keep_the_cells_of_a_model_together():
    cells = sweeps.cells_of(settings(models=('ffn', 'transformer', 'rnn')))
    shares = [tuned.share(cells, index, 2) for index in range(2)]
    assert sorted(cell.id for share in shares for cell in share) == sorted(cell.id for cell in cells)
    assert not {cell.model for cell in shares[0]} & {cell.model for cell in shares[1]}


@pytest.mark.parametrize(
    ('changes', 'words'),
    [
        ({'tune': {'num_seeds': 3}}, 'name the settings to tune'),
        ({'tune': {'learning_rat': 'auto'}}, "did you mean 'learning_rate'"),
        ({'tune': {'learning_rate': 1e-3}}, "give 'auto' or several values"),
        ({'tune': {'learning_rate': 'automatic'}}, "give 'auto' or several values"),
        ({'tune': {'learning_rate': 'auto', 'margin': 0.5}}, 'margin'),
        ({'tune': {'learning_rate': 'auto', 'num_seeds': 0}}, 'num_seeds'),
        ({'tune': {'radius': (1.0, 2.0)}}, 'would be ignored'),
        ({'tune': {'learning_rate': (-1.0, 1e-3)}}, 'learning_rate=-1'),
        ({'learning_rate': 1e-2}, 'is tuned, so it cannot be given'),
        ({'tune': {'learning_rate': 'auto', 'weight_decay': (0.1,)}}, 'several values'),
    ],
)
def test_an_impossible_tuning_is_one_line(changes, words):
    with pytest.raises(ValueError, match=words):
        sweeps.cells_of(settings(**changes))


def test_one_lane_that_missed_rules_its_values_out():
    learner = learners.Online()
    reached = {'outcome': 'reached', 'samples_to_threshold': 500, 'test_loss': 0.6}
    missed = {'outcome': 'outraced', 'samples_to_threshold': None, 'test_loss': 0.9}
    assert search._score([reached, missed], learner, 2).samples == search._score([missed], learner, 2).samples == np.inf
    assert search._score([reached, {**reached, 'samples_to_threshold': 700}], learner, 2).samples == 700


def test_where_no_values_reach_on_all_lanes_those_win_that_reach_on_most():
    """Values whose first lane misses have one lane, and others have all: the largest error of these would be unfair."""
    learner = learners.Online()
    reached = {'outcome': 'reached', 'samples_to_threshold': 500, 'test_loss': 0.6}
    missed = {'outcome': 'censored', 'samples_to_threshold': None, 'test_loss': 0.9}
    most = search._score([reached, missed, reached], learner, 3)
    assert most == (np.inf, 1, 0.9)
    assert (
        most
        < search._score([reached, missed, missed], learner, 3)
        < search._score([{**missed, 'test_loss': 0.8}], learner, 3)
    )


def test_cells_that_differ_in_a_tuned_setting_race_one_another(tmp_path):
    """Only the winner is reported, and the loser stops where it has lost."""
    sweep = small.settings(**{
        **TUNED, 'seq_lens': 2, 'batch_size': None,
        'tune': {'learning_rate': (1e-2, 3e-2), 'batch_size': (8, 64), 'num_seeds': 2},
    })  # fmt: skip
    rows = sweeps.run(sweep, tmp_path, small.quiet())
    assert len(rows) == tuned.num_reported(sweep, sweeps.cells_of(sweep)) == 2
    assert len(sweeps.cells_of(sweep)) == 2
    (row,) = (
        rows[['batch_size', 'learning_rate', 'tuned', 'tuned_grid', 'tuned_samples']].drop_duplicates().itertuples()
    )
    assert row.tuned == 'batch_size learning_rate'
    samples = dict(zip(row.tuned_grid.split(), values(row.tuned_samples), strict=True))
    assert min(samples, key=samples.get) == f'{row.batch_size:g}/{row.learning_rate:g}'
    assert {int(text.partition('/')[0]) for text in samples} == {8, 64}
    selected = results.load(tmp_path / results.SELECTION)
    lost = selected[selected['batch_size'] != row.batch_size]
    assert (lost['num_samples'] <= 1.1 * min(samples.values()) + 64).all() or row.batch_size == 64
    for setting, other in (('batch_size', 'learning_rate'), ('learning_rate', 'batch_size')):
        lanes = tuning.beside(selected, rows, setting)
        assert set(lanes[other]) == {getattr(row, other)}
        assert set(lanes[setting]) == set(selected.loc[selected[other] == getattr(row, other), setting])
    again = sweeps.run(sweep, tmp_path, small.quiet())
    pd.testing.assert_frame_equal(again, rows)


@pytest.mark.parametrize(
    ('changes', 'setting', 'values'),
    [
        ({}, 'optimizer', ('adamw', 'adam')),
        ({}, 'optimizer', 'adamw,adam'),  # as from the command line
        ({'warmup_steps': 5}, 'schedule', ('constant', 'warmup_cosine')),
        ({'learners': 'stationary', 'num_samples': 20, 'batch_size': 0}, 'optimizer', ('adam', 'lbfgs')),
    ],
)
def test_values_are_those_of_the_sweeps_learner_and_all_of_them_race(changes, setting, values):
    sweep = sweeps.Sweep(models='ffn', seq_lens=(2, 3), tune={setting: values}, **changes)
    assert [len(group) for group in tuned.rivals(sweeps.cells_of(sweep), sweep.tune)] == [2, 2]


def test_an_axis_that_some_tuned_values_ignore_is_refused():
    tuning = {'schedule': ('constant', 'warmup_cosine')}
    sweep = sweeps.Sweep(models='ffn', seq_lens=2, warmup_steps=(5, 10), tune=tuning)
    with pytest.raises(ValueError, match='warmup_steps: only some'):
        tuned.rivals(sweeps.cells_of(sweep), sweep.tune)


def test_a_setting_of_a_model_with_the_name_of_a_tuned_one_may_be_given():
    deep = {'rnn.cell': 'deep', 'rnn.radius': 2.0}
    sweep = sweeps.Sweep(
        'rnn', seq_lens=2, learners='constrained', num_samples=20, tune={'radius': (1.0, 2.0)}, axes=deep
    )
    assert sweeps.cells_of(sweep)


def test_tuned_tuples_are_written_so_that_the_sweep_is_known_again(tmp_path):
    several = {'starts': (('init',), ('init', 'init'))}
    sweep = sweeps.Sweep('ffn', seq_lens=2, learners='adamw', num_samples=20, tune=several)
    results.add_sweep(results.open_workdir(tmp_path), sweep.as_json())
    (known,) = results.read_config(tmp_path)
    results.check_tuned_alike(tmp_path, [known], sweep.as_json())


def test_lanes_of_a_step_that_goes_on_stay_in_it():
    """A lane with a row under the same limit is asked for again, so that no lane changes its batch."""
    cell = cells.cells_of(settings())[0]
    asked = []

    def run(_, steps, size_of):
        asked.extend(steps[0].lanes)

    one = search.Search(types.SimpleNamespace(sweep=settings(), run=run), None, cell)
    lanes = [cell.lanes[0]._replace(seed=tune.FIRST_SEED, learning_rate=rate, stop_after=800) for rate in (0.01, 0.03)]
    one._rows = lambda: [{**lane._asdict(), 'outcome': 'reached', 'samples_to_threshold': 400} for lane in lanes]
    one._run({(i,): [lane] for i, lane in enumerate(lanes)})
    assert asked == lanes
    asked.clear()
    one._run({(i,): [lane._replace(stop_after=900)] for i, lane in enumerate(lanes)})
    assert not asked


def test_what_is_tuned_and_how_is_checked():
    with pytest.raises(ValueError, match=r"tune[.]batch_size='auto': give several values"):
        settings(batch_size=None, tune={'batch_size': 'auto'})
    with pytest.raises(ValueError, match='is tuned, so it cannot be given'):
        settings(tune={'batch_size': (8, 16)}, batch_size=8)
    for goal in 'threshold', 'max_samples', 'test_samples':  # among which the weakest would win
        with pytest.raises(ValueError, match=f'tune.{goal}: says what is measured'):
            settings(tune={goal: (4, 64)})


@pytest.mark.parametrize(('name', 'value'), [('num_seeds', 10_001), ('task_seed', 10_000)])
def test_no_reported_lane_chooses_its_own_settings(name, value):
    with pytest.raises(ValueError, match=f'{name}={value}: seeds from 10,000 on'):
        settings(**{name: value}, task_per_lane=False, tune={'learning_rate': (0.01, 0.03)})
