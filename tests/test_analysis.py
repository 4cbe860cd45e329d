"""The numbers of `analysis`: known laws, censoring, intervals, and what is said in words."""

import numpy as np
import pandas as pd
import pytest

from qstr_jax import analysis
from qstr_jax.analysis import formats

LENGTHS = (2, 4, 6, 8, 10, 12)


def make_rows(
    exponent=0.6,
    scale=1000.0,
    spread=0.1,
    num_lanes=5,
    lengths=LENGTHS,
    budget=10**6,
    model='transformer',
    task='qstr',
    sparsity=1,
    rng=0,
):
    """Lanes of a known law, T = scale N^exponent times lognormal noise, censored at the budget."""
    rng = np.random.default_rng(rng)
    rows = pd.DataFrame(
        [
            {
                'model': model,
                'task': task,
                'seq_len': length,
                'sparsity': sparsity,
                'seed': seed,
                'threshold': 0.7,
                'learner': 'online',
                'max_samples': budget,
                'samples_to_threshold': scale * length**exponent * np.exp(spread * rng.normal()),
            }
            for length in lengths
            for seed in range(num_lanes)
        ]
    )
    reached = rows['samples_to_threshold'] < budget
    rows['outcome'] = np.where(reached, 'reached', 'censored')
    samples = rows['samples_to_threshold'].round().astype('Int64')
    rows['samples_to_threshold'] = samples.where(reached)
    return rows


def make_cell(*samples, budget=1000, diverged=0):
    """One cell; None is a censored lane."""
    lanes = [*samples, *[None] * diverged]
    outcomes = ['censored' if lane is None else 'reached' for lane in samples]
    return pd.DataFrame(
        {
            'model': 'rnn',
            'task': 'qstr',
            'seq_len': 4,
            'sparsity': 1,
            'seed': range(len(lanes)),
            'threshold': 0.7,
            'samples_to_threshold': pd.array(lanes, 'Int64'),
            'outcome': outcomes + ['diverged'] * diverged,
            'max_samples': budget,
            'learner': 'online',
        }
    )


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
    assert (cell['mean'], cell['median'], cell['min'], cell['max']) == (300, 200, 100, 600)
    assert 100 <= cell['low'] < 300 < cell['high'] <= 600
    assert not cell['lower_bound']


def test_censored_lane_counts_as_its_budget_and_makes_a_lower_bound():
    cell = only(make_cell(100, 200, None))
    assert cell['mean'] == pytest.approx(1300 / 3)
    assert cell['lower_bound']
    assert cell['median'] == 200
    assert cell['max'] == 1000
    assert cell['low'] < cell['mean']
    assert np.isnan(cell['high'])


def test_an_outraced_lane_counts_as_its_own_samples_and_makes_a_lower_bound():
    rows = make_cell(100, 200, None).assign(num_samples=[100, 200, 300])
    cell = only(rows.replace({'outcome': {'censored': 'outraced'}}))
    assert (cell['mean'], cell['max'], cell['median'], cell['num_outraced']) == (200, 300, 200, 1)
    assert cell['lower_bound']
    assert np.isnan(cell['high'])
    with pytest.raises(ValueError, match='num_samples'):
        analysis.summarize(rows.drop(columns='num_samples').replace({'outcome': {'censored': 'outraced'}}))


@pytest.mark.parametrize(
    ('samples', 'median'),
    [((100, None), None), ((100, 200, None, None), None), ((100, 200, 300, None), 250), ((100, None, None), None)],
)
def test_median_is_missing_when_half_did_not_reach(samples, median):
    assert only(make_cell(*samples))['median'] == pytest.approx(median or np.nan, nan_ok=True)


def test_diverged_lanes_count_and_stay_out_of_the_mean():
    cell = only(make_cell(100, 300, diverged=1))
    assert (cell['num_diverged'], cell['num_lanes'], cell['mean']) == (1, 3, 200)
    assert cell['median'] == 300  # of 100, 300, infinity
    assert not cell['lower_bound']
    nothing = only(make_cell(diverged=2))
    assert nothing[['mean', 'median', 'low', 'high', 'min', 'max']].isna().all()


def test_single_lane_has_no_interval():
    cell = only(make_cell(100))
    assert cell['mean'] == 100
    assert np.isnan(cell['low'])
    assert np.isnan(cell['high'])


def test_interval_covers_the_mean():
    rows = pd.concat([make_rows(0.0, 1e5, num_lanes=20, lengths=(length,), rng=length) for length in range(1, 101)])
    summary = analysis.summarize(rows)
    mean = 1e5 * np.exp(0.1**2 / 2)
    assert 85 <= summary.eval(f'low <= {mean} <= high').sum() <= 99


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
    assert '| Transformer | 1.52k (1.52k–1.52k)' in transformer
    assert [cell.strip() for cell in ffn.strip('|').split('|')][1:3] == ['≥ 10', '–']
    assert other.startswith('| a\\|b')
    assert '200 (100–300), 1 diverged' in other
    assert '≥ 433 (2 of 3 reached)' in markdown(make_cell(100, 200, None))


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
        (1e6, '1000k'),
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
    assert r'x \& y\_1' in formats.latex(frame)
    assert '&lt;b&gt;' in formats.as_html(frame)
