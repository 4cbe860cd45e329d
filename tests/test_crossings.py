"""Several thresholds from one run, as rows and as a figure."""

import pandas as pd
import pytest

from qstr_jax import analysis, plots
from qstr_jax.analysis import crossings


def make_rows():
    """Two lanes at each N, the second of which is censored before 0.1; one that knows a single threshold."""
    table = [
        {
            'model': model, 'task': 'qstr', 'seq_len': n, 'sparsity': 1, 'link': 'linear', 'learner': 'online',
            'seed': seed, 'threshold': 0.1, 'thresholds': '0.7,0.5', 'max_samples': 9000,
            'outcome': 'censored' if seed else 'reached', 'num_samples': 9000 if seed else 100 * n,
            'samples_to_threshold': None if seed else 100 * n, 'test_loss': 0.3 if seed else 0.09, 'num_parameters': 7,
            'crossings': f'0.7:{10 * n + seed} 0.5:{20 * n} 0.1:' + ('' if seed else str(100 * n)),
        }
        for model in ('transformer', 'ffn') for n in (8, 16) for seed in (0, 1)
    ]  # fmt: skip
    table.append({**table[0], 'seed': 5, 'thresholds': None, 'crossings': None})
    return pd.DataFrame(table).astype({'samples_to_threshold': 'Int64'})


def test_only_a_threshold_on_the_loss_is_one_of_losses():
    rows = make_rows().iloc[:2]
    assert crossings.shared_loss_threshold(rows) == 0.1
    assert crossings.shared_loss_threshold(rows.assign(threshold_on=[None, 'loss'])) == 0.1
    for other in {'threshold_on': 'error_rate'}, {'threshold': 1e-9}, {'threshold': [0.1, 0.2]}:
        assert crossings.shared_loss_threshold(rows.assign(**other)) is None
    assert crossings.shared_loss_threshold(rows.drop(columns='threshold')) is None
    assert crossings.loss_thresholds(rows.assign(threshold_on=['error_rate', 'loss'])).tolist()[1:] == [0.1]


def test_a_row_for_each_threshold_as_a_run_to_it_would_have():
    rows = crossings.at_thresholds(make_rows())
    assert not {'crossings', 'thresholds'} & set(rows.columns)
    assert len(rows) == 8 * 3 + 1
    rows = rows[rows['model'].eq('transformer') & rows['seq_len'].eq(8)]
    columns = ['seed', 'threshold', 'outcome', 'num_samples', 'samples_to_threshold']
    assert rows[columns].astype(object).where(rows[columns].notna(), None).values.tolist() == [
        [0, 0.7, 'reached', 80, 80],
        [0, 0.5, 'reached', 160, 160],
        [0, 0.1, 'reached', 800, 800],
        [1, 0.7, 'reached', 81, 81],
        [1, 0.5, 'reached', 160, 160],
        [1, 0.1, 'censored', 9000, None],
        [5, 0.1, 'reached', 800, 800],
    ]
    # The end of a lane says nothing about what it was at a crossing.
    assert rows['test_loss'].isna().tolist() == [True, True, False, True, True, False, False]
    assert (rows['num_parameters'] == 7).all()
    assert (analysis.summarize(rows)['threshold'] == [0.1, 0.5, 0.7]).all()


def test_the_interpolated_crossing_is_that_of_the_last_threshold():
    rows = crossings.at_thresholds(make_rows().assign(crossing=5.0))
    rows = rows[rows['model'].eq('transformer') & rows['seq_len'].eq(8)]
    assert rows['crossing'].isna().tolist() == [True, True, False, True, True, False, False]


def test_a_threshold_that_was_not_crossed_ends_as_the_lane_did():
    rows = make_rows().assign(crossings='0.7:640 0.5: 0.1:', outcome='diverged', samples_to_threshold=pd.NA)
    rows = crossings.at_thresholds(rows).groupby('threshold')['outcome'].agg(set)
    assert rows.to_dict() == {0.7: {'reached'}, 0.5: {'diverged'}, 0.1: {'diverged'}}


def test_rows_without_crossings_pass():
    rows = make_rows().drop(columns=['crossings', 'thresholds'])
    pd.testing.assert_frame_equal(crossings.at_thresholds(rows), rows)


@pytest.mark.parametrize('text', ['0.7', '0.7:many', ':640', '0.7:640  0.1:'])
def test_unreadable_crossings_are_a_line(text):
    with pytest.raises(ValueError, match='must be a threshold and its samples') as caught:
        crossings.at_thresholds(make_rows().assign(crossings=text))
    assert '\n' not in str(caught.value)


def test_lines_are_means_of_those_that_learn_and_lower_losses_stand_to_the_right():
    rows = make_rows()
    learns = rows[rows['seed'] == 0]
    rows = pd.concat([rows[rows['seed'] < 2], learns.assign(seed=2), learns.assign(seed=3)])
    figure = plots.samples_against_threshold(crossings.at_thresholds(rows), title='title')
    assert len(figure.axes) == 2
    left = figure.axes[0]
    start, end = left.get_xlim()
    assert start > 7 / 8 > end
    marks = [line for axis in figure.axes for line in axis.lines if str(line.get_gid()).startswith('no retrieval')]
    assert [line.get_xdata()[0] for line in marks] == [7 / 8, 15 / 16]
    drawn = {
        line.get_gid(): line.get_xydata().tolist() for line in left.lines if str(line.get_gid()).startswith('mean')
    }
    expected = [(0.1, 800), (0.5, 160), (0.7, (80**3 * 81) ** 0.25)]
    assert drawn['mean ffn'] == [[pytest.approx(x, rel=0.01), pytest.approx(y)] for x, y in expected]


def test_a_level_that_needs_no_retrieval_holds_at_every_threshold():
    rows = crossings.at_thresholds(make_rows().assign(no_retrieval=0.9))
    assert (rows['no_retrieval'] == 0.9).all()


def test_a_curve_is_named_where_its_lanes_have_a_mean():
    rows = crossings.at_thresholds(make_rows())
    rows['outcome'] = rows['outcome'].mask(rows['threshold'].eq(0.1) & rows['model'].eq('ffn'), 'diverged')
    [axis, *_] = plots.samples_against_threshold(rows, title='title').axes
    assert {'Transformer', 'FFN'} <= {text.get_text().split('\n')[0] for text in axis.texts}
