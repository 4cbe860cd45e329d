"""Exponents: known laws, bounds as bounds, coverage by simulation, and what is said in words."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from experiments.benchmarks import coverage
from qstr_jax import analysis, plots
from qstr_jax.analysis import laws, learning, line_fit, selection, verdicts
from qstr_jax.analysis.log_means import from_logs
from qstr_jax.report import lanes
from qstr_jax.storage import results
from tests import helpers
from tests.test_analysis import LENGTHS, make_rows, markdown


def simulated(lengths=LENGTHS, lanes=5, noise=0.1, law=np.log, rng=0):
    """Log samples of lanes whose mean is a law, and the index of their length."""
    group = np.repeat(np.arange(len(lengths)), lanes)
    expected = law(np.array(lengths, float))
    return group, expected[group] + np.random.default_rng(rng).normal(0, noise, len(group))


def means_of(group, logs, side=None, lengths=LENGTHS):
    return from_logs(np.array(lengths, float), group, logs, np.zeros(len(logs), int) if side is None else side)


@pytest.mark.parametrize('exponent', [0.0, 0.62, 2.0])
def test_an_exact_power_law(exponent):
    fit = analysis.exponent(make_rows(exponent, scale=1e6, spread=0, budget=10**12))
    assert fit.value == pytest.approx(exponent, abs=1e-5)
    assert fit.low == pytest.approx(fit.high, abs=1e-4)
    assert (fit.left_out, fit.note) == ((), '')
    assert list(fit.local_slopes) == pytest.approx([exponent] * 5, abs=1e-4)


def test_lanes_that_are_no_erms_are_in_no_exponent():
    rows = make_rows(1.0, spread=0, budget=10**12).assign(is_erm=None)
    wrong = rows.index % 3 == 0
    rows.loc[wrong, 'samples_to_threshold'] *= 50
    taken_as_they_are = analysis.exponent(rows)
    checked = analysis.exponent(rows.assign(is_erm=~wrong))
    assert checked.value == pytest.approx(1.0, abs=1e-5)
    assert checked.note == f'without {wrong.sum()} of {len(rows)} lanes, which are no ERMs'
    assert taken_as_they_are.note == ''
    assert taken_as_they_are == analysis.exponent(rows.drop(columns='is_erm'))
    none = analysis.exponent(rows.assign(is_erm=False))
    assert none.value is None
    assert f'without {len(rows)} of {len(rows)} lanes' in none.note


def test_lanes_as_many_everywhere_give_the_interval_of_least_squares():
    rows = make_rows(spread=0.3)
    logs = np.log(rows['samples_to_threshold'].astype(float)).groupby(rows['seq_len']).mean()
    line = stats.linregress(np.log(logs.index), logs)
    fit = analysis.exponent(rows)
    half = stats.t.ppf(0.975, 4) * line.stderr
    assert (fit.value, fit.low, fit.high) == pytest.approx((line.slope, line.slope - half, line.slope + half))
    assert fit == analysis.exponent(rows.sample(frac=1, random_state=0))


def test_without_bounds_the_likelihood_gives_the_same_interval():
    group, logs = simulated()
    logs += 0.2 * np.cos(3 * group)  # A misfit beyond the noise, whose interval is narrower.
    means = means_of(group, logs)
    x = np.log(means.x)
    design = np.stack([np.ones_like(x), x], axis=1)
    weight = 1 / (line_fit._misfit(design, means.mean, means.variance) + means.variance)
    closed = line_fit.slope(x, means)
    cutoff = 6 * np.log1p(stats.t.ppf(0.975, 4) ** 2 / 4)
    profile = line_fit._by_likelihood(design, means.mean, weight, means.side, cutoff, 0.05)
    assert profile == pytest.approx(closed[:3], rel=1e-4)


@pytest.mark.parametrize(
    'case',
    [
        coverage.Case(3, 3),
        coverage.Case(4, 3, misfit=0.1),
        coverage.Case(5, 10),
        coverage.Case(6, 5, misfit=0.2, censored=1),
        coverage.Case(8, 3, censored=2),
        coverage.Case(6, 5, misfit=0.2, at_most=0.3),
        coverage.Case(6, 5, failing=0.3, room=3.0),
        coverage.Case(4, 5, failing=0.3, room=3.0, misfit=0.2),
        coverage.Case(8, 3, failing=0.2, room=0.3),
    ],
)
def test_intervals_cover(case):
    """`make`-less twin of experiments/benchmarks/coverage.md; 300 curves give 95 ± 2.5 %."""
    covered, width, error, share = coverage.coverage(case, 300)
    assert 0.92 <= covered <= 0.995
    assert abs(error) < 0.1 * width
    # One in twenty triples of means is taken for bent.
    assert share > (0.9 if case.lengths == 3 else 0.95)


def test_failures_taken_for_bounds_would_not_cover(monkeypatch):
    """The check of the check: a third of the lanes never learns, as a budget 20 times above the others tells."""
    case = coverage.Case(6, 5, failing=0.3, room=3.0)
    _, width, _, _ = coverage.coverage(case, 100)
    monkeypatch.setattr(learning, 'LEAST_SHARE', -1.0)
    _, as_bounds, _, _ = coverage.coverage(case, 100)
    assert as_bounds > 10 * width


def test_intervals_by_lane_noise_alone_do_not_cover_a_misfit():
    """The check of the check, and why three lengths say so: a misfit of twice the noise between lanes."""
    covered, *_ = coverage.coverage(coverage.Case(3, 5, misfit=0.2), 200)
    assert covered < 0.6


def test_bounds_count_as_bounds():
    """Half of the longest lanes need more than their budget: taking the budget for them bends the slope down."""
    errors = []
    for rng in range(20):
        group, logs = simulated(rng=rng)
        bound = np.log(LENGTHS[-1])
        is_over = logs > bound
        means = means_of(group, np.minimum(logs, bound), is_over.astype(int))
        x = np.log(means.x)
        taken = [np.minimum(logs, bound)[group == place].mean() for place in range(len(x))]
        right = line_fit.slope(x, means).value - 1
        errors.append((right, np.polyfit(x, taken, 1)[0] - 1))
    right, taken = np.mean(errors, axis=0)
    assert abs(right) < abs(taken) / 2
    assert taken < 0


def test_a_length_of_bounds_alone_pulls_the_slope_to_its_side():
    rows = make_rows(1.0, spread=0.05, budget=10_500)  # N = 12 needs more.
    fit = analysis.exponent(rows)
    assert (rows['outcome'][rows['seq_len'] == 12] == 'censored').all()
    assert fit.left_out == ()
    assert fit.value == pytest.approx(1.0, abs=0.1)
    assert 'lanes are bounds' in fit.note
    assert fit.fitted_to == 'all lanes, 5 as bounds' if fit.learn.num_learn == 25 else 'lanes that learn'
    outraced = rows.assign(num_samples=10_500, max_samples=10**9).replace({'outcome': {'censored': 'outraced'}})
    assert analysis.exponent(outraced).value == pytest.approx(fit.value)


def test_a_bound_from_below_counts_from_below():
    rows = make_rows(1.0, spread=0.05)
    first = rows['seq_len'] == 2
    rows = rows.assign(min_samples=4000)
    rows.loc[first, 'outcome'] = 'censored_below'
    assert analysis.exponent(rows).value == pytest.approx(1.0, abs=0.1)  # Nothing new: at N = 2 they need 2000.
    rows.loc[first, 'min_samples'] = 500
    assert analysis.exponent(rows).value > 1.1


def test_n_star_that_bounds_that_of_erms_counts_as_a_bound():
    rows = make_rows(1.0, spread=0.05)
    last = rows['seq_len'] == rows['seq_len'].max()
    rows.loc[last, 'samples_to_threshold'] *= 10
    rows = rows.assign(is_erm=True, miss_is_erm=True)
    assert analysis.exponent(rows).value > 1.2
    fit = analysis.exponent(rows.assign(miss_is_erm=~last))
    assert fit.value == pytest.approx(1.0, abs=0.1)
    assert f'{last.sum()} of {len(rows)} lanes are bounds' in fit.note
    few = analysis.exponent(rows.assign(miss_is_erm=rows['seq_len'] < 4))
    assert few.note.startswith(f'only {(rows["seq_len"].unique() < 4).sum()} of {rows["seq_len"].nunique()} N known')
    only = analysis.exponent(rows.assign(miss_is_erm=False))
    assert (only.value, only.note) == (None, 'n* of ERMs has upper bounds alone')


def test_diverged_lanes_are_left_out_and_said():
    rows = make_rows(1.0, spread=0)
    rows.loc[0, ['outcome', 'samples_to_threshold']] = ['diverged', pd.NA]
    fit = analysis.exponent(rows)
    assert fit.value == pytest.approx(1.0, abs=1e-4)
    assert fit.left_out == ()
    assert '1 lane that diverged' in fit.note
    assert (fit.learn.num_learn, fit.learn.num_lanes, fit.fitted_to) == (29, 30, 'lanes that learn')


@pytest.mark.parametrize(
    ('rows', 'words'),
    [
        (make_rows(lengths=(4, 8)), 'only 2 N, 3 needed'),
        (make_rows(1.0, spread=0, budget=5000), 'only 2 of 6 N reached, 3 needed'),
        (make_rows(budget=10), 'threshold not reached'),
        (make_rows().assign(outcome='censored_below', min_samples=20), 'the fewest samples tried were enough'),
        (make_rows(lengths=(2, 3)).assign(link='linear'), 'without N = 2, 3: no retrieval needed'),
    ],
)
def test_no_exponent_says_why(rows, words):
    fit = analysis.exponent(rows)
    assert (fit.value, fit.low, fit.high, fit.note) == (None, None, None, words)
    assert words in markdown(rows)


def test_lengths_that_need_no_retrieval_are_in_no_exponent():
    rows = make_rows(spread=0.05).assign(link='linear')
    fit = analysis.exponent(rows)
    assert fit.left_out == (2,)
    assert fit.value == analysis.exponent(rows[rows['seq_len'] > 2]).value
    assert 'without N = 2: no retrieval needed' in fit.note


def test_failures_are_no_long_times():
    """Two lanes use up a hundred times what the others at their N need."""
    rows = make_rows(1.0, spread=0.1, budget=1_000_000)
    never = (rows['seq_len'] == 8) & (rows['seed'] < 2)
    learn = rows[~never]
    rows.loc[never, ['outcome', 'samples_to_threshold']] = ['censored', pd.NA]
    fit, expected = analysis.exponent(rows), analysis.exponent(learn)
    assert (fit.value, fit.low, fit.high) == pytest.approx((expected.value, expected.low, expected.high))
    assert (fit.fitted_to, str(fit.learn)) == ('lanes that learn', f'{len(learn)} of {len(rows)} learn')
    assert 'without 2 lanes that never learn (N = 8)' in fit.note
    assert '3 of 5 learn' in analysis.samples_table(rows)['N = 8'].item()


def test_a_budget_is_a_bound_only_near_the_lanes_that_learn():
    rows = make_rows(1.0, spread=0.1)
    spent = (rows['seq_len'] == 12) & (rows['seed'] < 2)
    rows.loc[spent, ['outcome', 'samples_to_threshold']] = ['censored', pd.NA]
    near = analysis.exponent(rows.assign(max_samples=13_000))
    far = analysis.exponent(rows.assign(max_samples=40_000))
    assert near.fitted_to == 'all lanes, 2 as bounds'
    assert far.fitted_to == 'lanes that learn'
    assert far.value == pytest.approx(analysis.exponent(rows[~spent]).value)


def test_where_none_learns_the_line_predicts_between_other_lengths_alone():
    rows = make_rows(1.0, spread=0.1).assign(max_samples=40_000)

    def without(seq_len):
        none = rows.copy()
        none.loc[rows['seq_len'] == seq_len, ['outcome', 'samples_to_threshold']] = ['censored', pd.NA]
        assert analysis.samples_table(none)[f'N = {seq_len}'].tolist() == ['≥ 40k, 0 of 5 learn']
        return analysis.exponent(none)

    between, beyond = without(6), without(12)
    assert (between.left_out, between.fitted_to) == ((6,), 'lanes that learn')
    assert 'without 5 lanes that never learn (N = 6)' in between.note
    assert (beyond.left_out, beyond.fitted_to, beyond.bounds_at) == ((), 'all lanes, 5 as bounds', (12,))
    assert beyond.value > between.value


def test_a_search_whose_optimiser_fits_nothing_is_no_bound():
    rows = make_rows(1.0, spread=0.1).assign(train_risk=0.01)
    spent = rows['seq_len'] == 12
    rows.loc[spent, ['outcome', 'samples_to_threshold']] = ['censored', pd.NA]
    assert analysis.exponent(rows).bounds_at == (12,)
    rows['train_risk'] += spent
    fit = analysis.exponent(rows)
    assert (fit.left_out, fit.bounds_at, fit.fitted_to) == ((12,), (), 'lanes that learn')
    assert 'without 5 lanes with an unfitted training set (N = 12)' in fit.note
    assert str(fit.learn) == '25 of 30 learn'
    table = analysis.samples_table(rows.assign(max_samples=40_000))
    assert table['N = 12'].tolist() == ['–, 0 of 5 learn, 5 unfitted']
    marks = {line.get_gid(): line.get_marker() for line in plots.samples_against(rows).axes[0].lines}
    assert marks['unfitted transformer'] == '+'
    assert 'censored transformer' not in marks


def test_the_line_ends_where_the_exponent_does():
    """At the largest N one of five lanes is an ERM: too few for the exponent, so none for the line."""
    rows = make_rows(1.0, spread=0.1).assign(is_erm=lambda own: (own['seq_len'] < max(LENGTHS)) | (own['seed'] == 0))
    assert analysis.exponent(rows).left_out == (max(LENGTHS),)
    [line] = [line for line in plots.samples_against(rows).axes[0].lines if line.get_gid() == 'mean transformer']
    assert len(line.get_xdata()) == len(LENGTHS) - 1


def test_one_learner_does_not_make_failures_of_others_beside_it():
    rows = make_rows(1.0, spread=0.1, num_lanes=3)
    spent = (rows['seq_len'] == 12) & (rows['seed'] > 0)
    rows.loc[spent, ['outcome', 'samples_to_threshold']] = ['censored', pd.NA]
    rows.loc[(rows['seq_len'] == 12) & ~spent, 'samples_to_threshold'] = 9000  # A lucky one of some 12,000.
    assert analysis.exponent(rows.assign(max_samples=13_000)).fitted_to == 'all lanes, 2 as bounds'


def test_no_fit_is_lucky():
    """Four means on a line to all digits, with noise between lanes: the interval is at least that of the noise."""
    group = np.repeat(np.arange(4), 3)
    logs = group * np.log(2) + np.tile([-0.2, 0.0, 0.2], 4)
    means = means_of(group, logs, lengths=(4, 8, 16, 32))
    found = line_fit.slope(np.log(means.x), means)
    error = 0.2 / np.sqrt(3) / (np.log(2) * np.sqrt(5))
    assert found.by == line_fit.BY_MISFIT
    assert found[:3] == pytest.approx((1, 1 - stats.t.ppf(0.975, 8) * error, 1 + stats.t.ppf(0.975, 8) * error))


def test_three_lengths_have_an_interval_by_lane_noise_that_says_so():
    rows = results.load(helpers.ROOT / 'experiments/results/n_star_models_simple')
    rows = selection.select(rows[rows['model'] == 'transformer'])
    assert str(analysis.exponent(rows)) == '1.72 [1.21, 2.24 by lane noise alone]'
    alone = analysis.exponent(make_rows(num_lanes=1, lengths=(4, 8, 16)))
    assert (alone.low, alone.interval_by, alone.note) == (None, '', 'one lane each')


def test_three_means_off_a_line_have_no_interval():
    rows = make_rows(1.0, spread=0.02, lengths=(4, 8, 16))
    bent = rows.assign(samples_to_threshold=rows['samples_to_threshold'] * (1 + (rows['seq_len'] == 8)))
    fit = analysis.exponent(bent)
    assert (fit.low, fit.interval_by) == (None, '')
    assert fit.note == 'no interval: the three means do not lie on a line'
    assert analysis.exponent(rows).interval_by == line_fit.BY_NOISE
    for count in range(2, 11):  # also where lanes agree, up to rounding
        lanes = rows.drop_duplicates('seq_len').assign(samples_to_threshold=[100, 400, 500])
        agree = pd.concat([lanes.assign(seed=seed, task_seed=seed) for seed in range(count)])
        assert analysis.exponent(agree).interval_by == ''


def test_bounds_on_both_sides_have_a_mean_between_them():
    logs = np.log([4, 4, 16, 16, 60, 60, 68, 68]) + np.tile([0.0, 0.01], 4)
    group, side = np.repeat(np.arange(3), (2, 2, 4)), np.array([0, 0, 0, 0, 1, 1, -1, -1])
    means = from_logs(np.array([4.0, 16, 64]), group, logs, side)
    assert means.is_measured.all()
    assert np.exp(means.mean[2]) == pytest.approx(64, rel=0.03)
    few = from_logs(np.array([4.0, 16, 64]), np.arange(3)[[0, 1, 2, 2]], logs[[0, 2, 4, 6]], side[[0, 2, 4, 6]])
    assert few.x.tolist() == [4, 16]  # no noise is known


def test_a_lane_that_is_a_bound_tells_less_than_a_measured_one():
    """Five lanes, two of which are bounds, count as more than three lanes and as fewer than five."""
    group, logs = np.repeat(np.arange(2), 5), np.tile([-0.2, -0.1, 0.0, 0.1, 0.1], 2)
    means = from_logs(np.array([4.0, 16]), group, logs, np.array([0] * 8 + [1, 1]))
    whole, partly = means.noise / means.variance
    assert whole == pytest.approx(5)
    assert 3 < partly < 4.9


def test_bounds_beside_three_means_enter_value_and_interval_alike():
    """Bounds far below the line change nothing, those above it both."""
    group = np.repeat(np.arange(4), 5)
    logs = group * np.log(2) + np.tile([-0.2, -0.1, 0.0, 0.1, 0.2], 4)
    side = (group == 3).astype(int)

    def slope(shift):
        means = from_logs(2.0 ** np.arange(4), group, logs + shift * side, side)
        return line_fit.slope(np.log(means.x), means)

    three = from_logs(2.0 ** np.arange(3), group[:15], logs[:15], side[:15])
    assert slope(-5.0)[:3] == pytest.approx(line_fit.slope(np.log(three.x), three)[:3], abs=1e-3)
    assert slope(0.2).value > slope(-5.0).value + 0.05
    assert slope(0.2).low > slope(-5.0).low
    assert slope(0.2).by == line_fit.BY_NOISE
    assert slope(1.0).by == ''  # no line goes there


def test_means_without_lane_noise_have_the_interval_of_least_squares():
    x, y = np.log([4.0, 8, 16, 32, 64]), np.log([5.0, 9, 21, 40, 70])
    line = stats.linregress(x, y)
    half = stats.t.ppf(0.975, 3) * line.stderr
    fit = line_fit.slope(x, from_logs(np.exp(x), np.arange(5), y, np.zeros(5, int)))
    assert (fit.value, fit.low, fit.high) == pytest.approx((line.slope, line.slope - half, line.slope + half))


def test_the_crossing_between_two_checks_counts():
    """Checks every 640 prompts make N = 8 of who_wins three checks: 1,920 in every lane."""
    rows = lanes.load(helpers.ROOT / 'experiments/results/who_wins')
    rows = rows[(rows['model'] == 'transformer') & (rows['task'] == 'qstr')]
    at_8 = rows[rows['seq_len'] == 8]
    assert at_8['samples_to_threshold'].tolist() == 5 * [1920]
    assert at_8['crossing'].tolist() == pytest.approx([1907.9, 1549.2, 1669.4, 1648.6, 1797.8], abs=0.1)
    fit = analysis.exponent(rows)
    assert str(fit) == '0.29 [0.07, 0.51 by lane noise alone]'
    assert '~: one to three checks of 640 samples (N = 4, 8, 12)' in fit.note


def test_one_lane_each_has_an_interval_by_the_misfit():
    fit = analysis.exponent(make_rows(num_lanes=1))
    assert fit.low < fit.value < fit.high
    assert fit.note == 'one lane each'
    mixed = pd.concat([make_rows(num_lanes=1, lengths=(2,)), make_rows(lengths=(4, 8, 12))])
    assert 'without N = 2: fewer than 3 lanes' in analysis.exponent(mixed).note


def test_threshold_met_before_training_is_no_infinity():
    rows = make_rows(spread=0)
    rows.loc[rows['seq_len'] == 2, 'samples_to_threshold'] = 0
    fit = analysis.exponent(rows)
    assert fit.value == pytest.approx(0.6, abs=1e-3)
    assert fit.left_out == (2,)


def test_exponent_in_sparsity():
    rows = pd.concat([make_rows(0, 1000 * q**1.5, 0.0, lengths=(7,), sparsity=q) for q in (1, 2, 3, 4)])
    fit = analysis.exponent(rows, 'sparsity')
    assert fit.value == pytest.approx(1.5, abs=1e-3)
    assert fit.law is None
    assert 'q = 4' in markdown(rows, 'sparsity')


def test_several_curves_are_an_error():
    with pytest.raises(ValueError, match=r"model .*'ffn', 'transformer'"):
        analysis.exponent(pd.concat([make_rows(), make_rows(model='ffn')]))


def test_a_law_says_the_length_that_it_hangs_on():
    """Slopes that fall with N, as those of n* of RNNs of least norm."""
    lengths = np.array([2.0, 3, 4, 6, 8, 12])
    logs = np.cumsum([4.16, *np.diff(np.log(lengths)) * [2.69, 2.83, 2.69, 2.53, 2.08]])
    group, noise = np.repeat(np.arange(6), 5), np.tile([-0.1, -0.05, 0.0, 0.05, 0.1], 6)
    found = laws.law(from_logs(lengths, group, logs[group] + noise, np.zeros(30, int)))
    assert (found.name, found.deciding, found.needed) == (laws.POWER, None, 2)
    even = laws.law(from_logs(lengths, group, 2.6 * np.log(lengths)[group] + noise, np.zeros(30, int)))
    assert (even.name, even.needed) == (laws.POWER, None)
    statement = verdicts.STATEMENTS['rnn', 'qstr']
    fits = [analysis.Exponent(value=2.6, low=2.4, high=2.8, law=one) for one in (found, even)]
    assert [verdicts._by_growth(statement, fit) for fit in fits] == [
        ('open', 'without N = 2 N^a and (log N)^p are not told apart'), ('yes', 'of the two laws N^a fits'),
    ]  # fmt: skip


FAR = (4, 8, 16, 64, 256, 1024)


@pytest.mark.parametrize(('law', 'name'), [(np.log, laws.POWER), (lambda n: 2 * np.log(np.log(n)), laws.POWER_OF_LOG)])
def test_laws_are_told_apart_where_lengths_lie_far_apart(law, name):
    far = laws.law(means_of(*simulated(FAR, law=law), lengths=FAR))
    assert (far.name, far.deciding) == (name, None)
    near = laws.law(means_of(*simulated((25, 27, 29, 31, 33), law=law), lengths=(25, 27, 29, 31, 33)))
    assert near.name == laws.UNDECIDED
    assert laws.law(means_of(*simulated((4, 8, 16), law=law), lengths=(4, 8, 16))) is None


def test_one_length_that_decides_is_named():
    """A power of log N, but for the last length."""
    lengths = (4, 6, 8, 10, 12, 64)
    bent = simulated(lengths, noise=0.01, law=lambda n: np.where(n < 64, 1.5 * np.log(np.log(n)), 3.0))
    found = laws.law(means_of(*bent, lengths=lengths))
    assert found.difference > 4
    assert (found.name, found.deciding) == (laws.UNDECIDED, 64)


def test_lanes_do_not_decide_between_laws():
    """A hundred times as many lanes about the same means change the difference by little where the misfit dominates."""
    group, logs = simulated((4, 6, 8, 10, 12), lanes=4, noise=0.02, law=lambda n: np.log(n) + 0.2 * np.sin(n))
    few = laws.law(means_of(group, logs, lengths=(4, 6, 8, 10, 12)))
    many = laws.law(means_of(np.tile(group, 100), np.tile(logs, 100), lengths=(4, 6, 8, 10, 12)))
    assert few.difference == pytest.approx(many.difference, abs=0.1)


@pytest.mark.parametrize('noise', [0.0, 1e-3, 1.0])
@pytest.mark.parametrize('share', [0.2, 0.7])
def test_any_bounds_give_finite_intervals(noise, share):
    """Lanes without noise, bounds far from them and at every length."""
    for rng in range(10):
        group, logs = simulated((4, 6, 8, 12, 100), lanes=4, noise=noise, rng=rng)
        draws = np.random.default_rng(rng)
        is_bound = draws.random(len(logs)) < share
        bounds = np.where(is_bound, logs - draws.exponential(0.5, len(logs)), logs)
        means = means_of(group, bounds, is_bound.astype(int), lengths=(4, 6, 8, 12, 100))
        if means.is_measured.sum() > 2:
            found = line_fit.slope(np.log(means.x), means)
            assert np.isfinite(found[:3]).all() or means.is_measured.sum() == 3
            assert not found.value < found.low
            assert not found.value > found.high


def test_an_interval_that_tells_nothing_is_not_printed():
    """Three points off a line: Student's t with one degree of freedom. The numbers stay."""
    bent = analysis.Exponent(value=1.37, low=-4.13, high=6.86)
    assert str(bent) == '1.37 (too few points for an interval)'
    assert str(analysis.Exponent(value=2.13, low=-0.02, high=4.27)) == '2.13 [-0.02, 4.27]'


def test_zero_on_the_axis_has_no_logarithm_whatever_its_samples():
    rows = make_rows(1.0, spread=0, budget=10**12)
    rows = rows.assign(weight_decay=rows['seq_len'].where(rows['seq_len'] > rows['seq_len'].min(), 0) / 100)
    found = analysis.exponent(rows.assign(seq_len=8), 'weight_decay')
    assert found.value is not None
    assert found.note == 'without λ = 0, which has no logarithm'
