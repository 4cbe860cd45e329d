"""The numbers of `analysis`: known laws, censoring, intervals, and what is said in words."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from qstr_jax import analysis
from qstr_jax.analysis import formats, resolution, tuning

LENGTHS = (2, 4, 6, 8, 10, 12)


def make_rows(
    exponent=0.6, scale=1000.0, spread=0.1, num_lanes=5, lengths=LENGTHS, budget=10**6, model='transformer',
    task='qstr', sparsity=1, rng=0,
):  # fmt: skip
    """Lanes of a known law, T = scale N^exponent times lognormal noise, censored at the budget."""
    rng = np.random.default_rng(rng)
    rows = pd.DataFrame([
        {'model': model, 'task': task, 'seq_len': length, 'sparsity': sparsity, 'seed': seed, 'threshold': 0.7,
         'learner': 'online', 'max_samples': budget,
         'samples_to_threshold': scale * length**exponent * np.exp(spread * rng.normal())}
        for length in lengths for seed in range(num_lanes)
    ])  # fmt: skip
    reached = rows['samples_to_threshold'] < budget
    rows['outcome'] = np.where(reached, 'reached', 'censored')
    samples = rows['samples_to_threshold'].round().astype('Int64')
    rows['samples_to_threshold'] = samples.where(reached)
    return rows


def make_cell(*samples, budget=1000, diverged=0):
    """One cell; None is a censored lane."""
    lanes = [*samples, *[None] * diverged]
    outcomes = ['censored' if lane is None else 'reached' for lane in samples]
    return pd.DataFrame({
        'model': 'rnn', 'task': 'qstr', 'seq_len': 4, 'sparsity': 1, 'seed': range(len(lanes)), 'threshold': 0.7,
        'samples_to_threshold': pd.array(lanes, 'Int64'), 'outcome': outcomes + ['diverged'] * diverged,
        'max_samples': budget, 'learner': 'online',
    })  # fmt: skip


def markdown(rows, x='seq_len'):
    return formats.markdown(analysis.samples_table(rows, x))


def only(rows):
    summary = analysis.summarize(rows)
    assert len(summary) == 1
    return summary.iloc[0]


def test_summary_of_reached_lanes():
    cell = only(make_cell(100, 200, 600))
    counts = cell[['num_lanes', 'num_reached', 'num_censored', 'num_diverged']]
    assert counts.tolist() == [3, 3, 0, 0]
    assert cell[['mean', 'min', 'max']].tolist() == pytest.approx([12e6 ** (1 / 3), 100, 600])
    logs = np.log([100, 200, 600])
    half = stats.t.ppf(0.975, 2) * logs.std(ddof=1) / np.sqrt(3)
    assert cell[['low', 'high']].tolist() == pytest.approx(np.exp([logs.mean() - half, logs.mean() + half]))
    assert not cell['lower_bound']


def test_a_lane_that_never_learns_is_in_the_share_and_not_in_the_mean():
    cell = only(make_cell(100, 400, None))
    assert cell[['mean', 'max']].tolist() == pytest.approx([200, 400])
    assert not cell['lower_bound']
    assert cell[['num_learn', 'num_judged']].tolist() == [2, 3]
    assert cell[['learn_low', 'learn_high']].tolist() == pytest.approx(stats.binomtest(2, 3).proportion_ci())
    none = only(make_cell(None, None))
    assert (none['num_learn'], none['mean'], none['lower_bound']) == (0, pytest.approx(1000), True)
    assert none[['learn_low', 'learn_high']].tolist() == pytest.approx(stats.binomtest(0, 2).proportion_ci())


def test_an_outraced_lane_counts_as_its_own_samples_and_makes_a_lower_bound():
    rows = make_cell(100, 400, None).assign(num_samples=[100, 400, 800])
    cell = only(rows.replace({'outcome': {'censored': 'outraced'}}))
    assert (cell['mean'], cell['max'], cell['num_outraced']) == (pytest.approx(32e6 ** (1 / 3)), 800, 1)
    assert (cell['num_learn'], cell['num_judged'], cell['lower_bound']) == (2, 2, True)
    assert np.isnan(cell['high'])
    assert cell['low'] < cell['mean']
    with pytest.raises(ValueError, match='num_samples'):
        analysis.summarize(rows.drop(columns='num_samples').replace({'outcome': {'censored': 'outraced'}}))


def test_diverged_lanes_count_and_stay_out_of_the_mean():
    cell = only(make_cell(100, 400, diverged=1))
    assert (cell['num_diverged'], cell['num_lanes'], cell['mean']) == (1, 3, pytest.approx(200))
    assert cell[['num_learn', 'num_judged']].tolist() == [2, 3]
    assert not cell['lower_bound']
    nothing = only(make_cell(diverged=2))
    assert nothing[['mean', 'low', 'high', 'min', 'max']].isna().all()


def test_single_lane_has_no_interval():
    cell = only(make_cell(100))
    assert cell['mean'] == pytest.approx(100)
    assert np.isnan(cell['low'])
    assert np.isnan(cell['high'])


@pytest.mark.parametrize('num_lanes', [3, 5])
def test_intervals_of_few_lanes_cover_the_mean(num_lanes):
    """A bootstrap covers in 73% of cases with three lanes, in 83% with five; 400 points give 95 ± 2.2%."""
    rows = make_rows(0.0, 1e5, spread=0.2, num_lanes=num_lanes, lengths=range(1, 401))
    summary = analysis.summarize(rows)
    assert 370 <= summary.eval('low <= 1e5 <= high').sum() <= 390


def test_a_mean_of_one_to_three_checks_is_marked():
    rows = make_cell(1000, 2000).assign(check_every=10, batch_size=64)
    assert only(rows)['is_coarse']
    assert '~ 1.41k' in markdown(rows)
    assert '~: one to three checks of 640 samples (N = 4)' in markdown(rows)
    assert not only(rows.assign(samples_to_threshold=pd.array([2000, 2100], 'Int64')))['is_coarse']
    assert not only(rows.assign(learner='adamw'))['is_coarse']  # A search has no checks.


def test_a_crossing_lies_between_two_checks():
    """A loss that falls as exp(−samples / 1000) is 0.7 at −1000 log 0.7 samples, whatever the checks."""
    rows = make_cell(640, 1280, None, budget=1280).assign(check_every=10, batch_size=64, cell='a')
    starts = [(0, 1.2), (1, 1.8), (2, 9.0)]
    curves = pd.DataFrame(
        [{'cell': 'a', 'seed': seed, 'samples': samples, 'test_loss': start * np.exp(-samples / 1000)}
         for seed, start in starts for samples in (640, 1280)]
    )  # fmt: skip
    found = resolution.interpolated(rows, curves)
    assert found['crossing'].isna().tolist() == [True, False, True]  # Nothing is known of the first check's start.
    assert found['crossing'][1] == pytest.approx(1000 * np.log(1.8 / 0.7))
    pd.testing.assert_frame_equal(found[rows.columns], rows)
    assert only(found)['max'] == pytest.approx(found['crossing'][1])
    assert only(rows)['max'] == 1280
    assert resolution.interpolated(rows, pd.DataFrame()) is rows


def test_a_crossing_of_the_error_rate_may_end_at_no_error():
    rows = make_cell(1280).assign(check_every=10, batch_size=64, cell='a', threshold=0.1, threshold_on='error_rate')
    curves = pd.DataFrame({
        'cell': 'a', 'seed': 0, 'samples': [640, 1280], 'test_loss': [5.0, 4.0], 'accuracy': [0.6, 1.0],
    })  # fmt: skip
    assert resolution.interpolated(rows, curves)['crossing'][0] == pytest.approx(640 + 0.75 * 640)


def test_order_of_rows_changes_nothing_and_cells_are_sorted():
    rows = pd.concat(
        [make_rows(model=model, rng=i) for i, model in enumerate(('mamba', 'ffn', 'aft', 'transformer', 'rnn'))]
    )
    summary = analysis.summarize(rows)
    shuffled = analysis.summarize(rows.sample(frac=1, random_state=0))
    pd.testing.assert_frame_equal(summary, shuffled)
    assert list(summary['model'].unique()) == ['transformer', 'rnn', 'ffn', 'aft', 'mamba']
    assert summary['seq_len'].tolist() == 5 * list(LENGTHS)
    assert markdown(rows) == markdown(rows.sample(frac=1, random_state=0))


def test_by_other_columns():
    rows = pd.concat([make_rows(rng=0).assign(lr=1e-3), make_rows(rng=1).assign(lr=1e-4)])
    summary = analysis.summarize(rows, by=('lr', 'seq_len'))
    assert summary[['lr', 'seq_len']].drop_duplicates().shape == (12, 2)
    assert (summary['num_lanes'] == 5).all()


def test_table_shows_means_bounds_and_gaps():
    rows = pd.concat(
        [
            make_rows(spread=0, lengths=(2, 4)),
            make_rows(model='ffn', budget=10, lengths=(2,)),
            make_cell(100, 300, diverged=1).assign(model='a|b'),
        ]
    )
    head, rule, transformer, ffn, other = markdown(rows).splitlines()
    assert len({len(line) for line in (head, rule, transformer, ffn, other)}) == 1  # Aligned.
    assert [cell.strip() for cell in head.strip('|').split('|')] == ['model', 'N = 2', 'N = 4', 'exponent of N']
    assert '| Transformer | 1.52k  ' in transformer  # without an interval, as all lanes agree
    assert [cell.strip() for cell in ffn.strip('|').split('|')][1:3] == ['≥ 10, 0 of 5 learn', '–']
    assert other.startswith('| a\\|b')
    assert '173 (' in other
    assert '), 2 of 3 learn, 1 diverged' in other
    assert '141 (1.73–11.6k), 2 of 3 learn' in markdown(make_cell(100, 200, None))


def test_table_has_a_line_per_task():
    rows = pd.concat([make_rows(), make_rows(task='simple_qstr')])
    lines = markdown(rows).splitlines()
    assert len(lines) == 4
    assert 'task' in lines[0]
    assert 'simple-qSTR' in lines[3]


@pytest.mark.parametrize(
    ('value', 'text'),
    [
        (17234, '17.2k'),
        (115e3, '115k'),
        (1e6, '1M'),
        (1_260_400, '1.26M'),
        (999_600, '1.00M'),
        (64_000, '64k'),
        (np.exp(np.log(64_000)), '64k'),
        (640, '640'),
        (999.9, '1.00k'),
        (9996, '10.0k'),
        (0, '0'),
        (float('nan'), '–'),
    ],
)
def test_short_number(value, text):
    assert analysis.short_number(value) == text


@pytest.mark.parametrize(
    ('spoil', 'words'),
    [
        (lambda rows: rows.drop(columns=['seed', 'outcome']), 'seed, outcome'),
        (lambda rows: rows.iloc[:0], 'no rows'),
        (lambda rows: rows.replace('reached', 'done'), 'unknown outcome done'),
        (lambda rows: rows.assign(samples_to_threshold=pd.NA), 'samples_to_threshold'),
        (lambda rows: rows.assign(model=None), 'without a model'),
        (lambda rows: pd.concat([rows, rows.assign(backend='tpu')]), 'differ in: backend'),
        (lambda rows: pd.concat([rows, rows]), 'differ in: nothing'),
    ],
)
@pytest.mark.parametrize('function', [analysis.summarize, analysis.exponent, analysis.samples_table])
def test_errors_are_one_line_that_says_what(function, spoil, words):
    with pytest.raises(ValueError, match=words) as error:
        function(spoil(make_rows()))
    assert '\n' not in str(error.value)


@pytest.mark.parametrize('x', ['convolution_channels', 'learning_rate'])
def test_any_setting_can_be_the_x_axis(x):
    rows = pd.concat(
        [make_rows(0, 1000 * value**1.5, 0.0, lengths=(7,), model='convolution').assign(**{x: value / 8})
         for value in (1, 2, 4, 8)]
    )  # fmt: skip
    fit = analysis.exponent(rows, x)
    assert fit.value == pytest.approx(1.5, abs=1e-3)
    table = analysis.samples_table(rows, x)
    assert [name.split()[-1] for name in table.columns[1:5]] == ['0.125', '0.25', '0.5', '1']
    assert analysis.exponent(rows.assign(**{x: [f'a{value}' for value in rows[x]]}), x).note.startswith('no power')


def test_a_setting_that_follows_from_n_makes_no_curves_and_any_other_does():
    ffn, rnn = make_rows(model='ffn'), make_rows(model='rnn').assign(rnn_width=500)
    ffn['ffn_widths'] = [f'{10 * n},1000' for n in ffn['seq_len']]
    rows = pd.concat([ffn, rnn, rnn.assign(rnn_width=250)]).assign(encoding_dim=lambda table: table['seq_len'] // 2)
    assert analysis.curve_columns(rows, 'seq_len') == ['model', 'rnn_width']
    curves = analysis.split_curves(rows)
    assert [curve.name for curve in curves] == ['RNN, width 250', 'RNN, width 500', 'FFN']
    assert [curve.key for curve in curves] == ['rnn rnn_width=250.0', 'rnn rnn_width=500.0', 'ffn']
    assert analysis.point_columns(rows) == ['model', 'task', 'sparsity', 'seq_len', 'rnn_width']
    assert list(analysis.samples_table(rows)['width']) == ['250', '500', '–']
    with pytest.raises(ValueError, match='rnn_width'):
        analysis.exponent(rows[rows['model'] == 'rnn'])
    alone = analysis.split_curves(rows[rows['seq_len'] == 4], 'rnn_width')
    assert [curve.model for curve in alone] == ['rnn']  # An FFN has no such width.
    with pytest.raises(ValueError, match='no row has a value of rnn_width'):
        analysis.split_curves(rows[rows['model'] == 'ffn'], 'rnn_width')


def test_settings_that_a_learner_lacks_are_a_value_of_their_own():
    rows = pd.concat([
        make_rows().assign(learner='adamw'),
        *(make_rows().assign(learner='constrained', radius=radius) for radius in (0.5, 2.0)),
    ])  # fmt: skip
    assert [curve.name for curve in analysis.split_curves(rows)] == [
        'Transformer, adamw', 'Transformer, constrained, R = 0.5', 'Transformer, constrained, R = 2',
    ]  # fmt: skip
    assert (analysis.summarize(rows)['num_lanes'] == 5).all()


def test_settings_of_two_models_with_one_label_get_columns_of_their_own():
    rows = pd.concat([
        make_rows(model=model).assign(**{column: width})
        for model, column in (('rnn', 'rnn_width'), ('transformer', 'transformer_mlp_width')) for width in (8, 16)
    ])  # fmt: skip
    table = analysis.samples_table(rows)
    assert list(table['rnn width']) == ['–', '–', '8', '16']
    assert list(table['transformer mlp width']) == ['8', '16', '–', '–']


def test_a_learning_rate_that_was_chosen_for_a_radius_makes_no_curves():
    rows = pd.concat(
        [make_rows().assign(radius=radius, learning_rate=rate) for radius, rate in ((0.5, 0.1), (2.0, 0.01))]
    )
    assert analysis.curve_columns(rows, 'seq_len') == ['model', 'radius']


def test_panels_are_settings_of_the_task():
    rows = pd.concat([make_rows(task=task, sparsity=q) for task in ('qstr', 'simple_qstr') for q in (1, 2)])
    curves = analysis.split_curves(rows)
    assert [tuple(curve.task.values()) for curve in curves] == [
        ('qstr', 1), ('qstr', 2), ('simple_qstr', 1), ('simple_qstr', 2),
    ]  # fmt: skip
    assert not any(curve.settings for curve in curves)


def test_values_of_settings_are_ordered_as_on_an_axis():
    assert analysis.ordered(['120,2000', '60,1000', '60,500', None]) == ['60,500', '60,1000', '120,2000']
    assert analysis.ordered([10, 9, 0.5, float('nan')]) == [0.5, 9, 10]
    assert analysis.ordered(['unscaled', 'scaled']) == ['scaled', 'unscaled']


@pytest.mark.parametrize(
    ('column', 'value', 'text'),
    [
        ('seq_len', 4.0, 'N = 4'),
        ('learning_rate', 1e-3, 'learning rate 0.001'),
        ('max_steps', 4000, 'most steps 4,000'),
        ('max_samples', 3_000_000, 'budget of samples 3,000,000'),
        ('task', 'qstr', 'qSTR'),
        ('ffn_widths', '60,1000', 'widths 60,1000'),
        ('convolution_channels', 32, 'convolution channels 32'),
    ],
)
def test_settings_in_words(column, value, text):
    assert analysis.setting_text(column, value) == text


def test_markdown_takes_the_number_of_digits():
    frame = pd.DataFrame({'a|b': ['x & y_1', None, 0.123456], 'c': [('p', 2), '≥ 3', '<b>']})
    lines = formats.markdown(frame, digits=3).splitlines()
    assert len({len(line) for line in lines}) == 1  # Aligned.
    assert lines[0].startswith('| a\\|b')
    assert [line.split('|')[1].strip() for line in lines[2:]] == ['x & y_1', '–', '0.123']
    assert '0.1235' in formats.markdown(frame)
    assert r'x \& y\_1' in formats.latex(frame, 'a caption', 'a label')


def test_a_mean_is_that_of_erms_and_says_how_many_lanes_are_none():
    rows = make_cell(100, 100, 10_000, budget=20_000).assign(is_erm=[True, True, False])
    assert only(rows)[['mean', 'num_short', 'num_learn']].tolist() == pytest.approx([100, 1, 3])
    assert '100, without 1 lane that is no ERM' in analysis.samples_table(rows).iloc[0].tolist()


def test_the_table_of_a_tuning_has_the_mean_of_lanes_that_learn_and_how_many_do():
    rows = make_cell(2000, None, None, budget=9000)
    rows = rows.assign(tuned='learning_rate', tuned_grid='1', tuned_samples='2', tuned_seeds='3', learning_rate=1.0)
    assert tuning.chosen(rows)[['lanes', 'samples']].to_numpy().tolist() == [[3, '2k, 1 of 3 learn']]
