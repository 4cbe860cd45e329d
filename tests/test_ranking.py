"""A line for each architecture: the order, and what is drawn in each line."""

import itertools

import numpy as np
import pandas as pd
import pytest

from qstr_jax import analysis, plots
from tests.test_small_panels import gids, lanes


def test_whom_most_lanes_learn_at_the_largest_value_stands_on_top():
    rows = lanes(num_censored=2)
    figure = plots.samples_ranked({'retrieval': rows, 'recall': rows[rows['seq_len'] == 4]})
    left, right = figure.axes
    assert [label.get_text() for label in left.get_yticklabels()] == ['Transformer', 'RNN']
    assert left.get_ylim() == right.get_ylim() == (1.6, -0.6)
    assert [axis.get_title(loc='left') for axis in (left, right)] == ['retrieval', 'recall']
    assert 'censored' in gids(left)
    assert {text.get_text() for text in left.texts} == {'3/5'}
    assert not right.texts


def test_lanes_of_a_search_learn_too_and_those_that_were_stopped_say_nothing():
    rows = lanes(num_censored=2)
    searched = rows['model'].eq('rnn') & rows['seed'].eq(4)
    outcome = rows['outcome'].replace('censored', 'outraced').mask(searched, 'censored_below')
    (axis,) = plots.samples_ranked({'retrieval': rows.assign(outcome=outcome, min_samples=100, num_samples=900)}).axes
    assert not axis.texts
    assert not [line for line in axis.lines if line.get_gid() == 'censored' and len(line.get_xdata())]


def test_who_is_equal_at_the_largest_value_is_ranked_at_the_next():
    line = {'model': 'a', 'seq_len': 8, 'num_learn': 0, 'num_judged': 5, 'mean': 100.0}
    means = pd.DataFrame([
        line, {**line, 'model': 'b'},
        {**line, 'seq_len': 4, 'num_learn': 5}, {**line, 'model': 'b', 'seq_len': 4, 'num_learn': 5, 'mean': 50.0},
    ])  # fmt: skip
    assert plots.ranked(means, 'seq_len') == ['b', 'a']


def test_shares_of_lanes_count_and_not_their_numbers():
    line = {'model': 'few', 'seq_len': 8, 'num_learn': 3, 'num_judged': 3, 'mean': 900.0}
    means = pd.DataFrame([{**line, 'model': 'many', 'num_learn': 4, 'num_judged': 5, 'mean': 100.0}, line])
    assert plots.ranked(means, 'seq_len') == ['few', 'many']


def test_who_was_not_run_stands_with_those_that_fail_there():
    line = {'seq_len': 8, 'num_learn': 3, 'num_judged': 5, 'mean': 100.0}
    means = pd.DataFrame([
        {**line, 'model': 'fails', 'mean': 90.0}, {**line, 'model': 'fails', 'seq_len': 16, 'num_learn': 0},
        {**line, 'model': 'not run', 'mean': 50.0}, {**line, 'model': 'worse', 'mean': 200.0},
        {**line, 'model': 'learns', 'seq_len': 16, 'num_learn': 1},
    ])  # fmt: skip
    assert plots.ranked(means, 'seq_len') == ['learns', 'not run', 'fails', 'worse']


def test_what_was_not_run_is_said_but_not_of_what_few_have():
    rows = lanes()
    rnn = rows[rows['model'].eq('rnn')]
    few = pd.concat(
        [rows, rnn[rnn['seq_len'].eq(4)].assign(seq_len=16), *(rnn.assign(model=m) for m in ('ffn', 'gru'))]
    )
    panels = {'all': rows, 'part': rows[rows['model'].eq('rnn') | rows['seq_len'].eq(4)]}
    figure = plots.samples_ranked({**panels, 'few': few, 'one': rnn})
    said = [sorted(text.get_text() for text in axis.texts) for axis in figure.axes]
    assert said == [['not run'] * 2, ['not run'] * 2 + ['not run at 8'], [], ['not run'] * 3]


def test_order_and_panels_are_checked():
    means = analysis.summarize(lanes(num_censored=5), ['model', 'seq_len'])
    assert plots.ranked(means, 'seq_len') == ['transformer', 'rnn']
    with pytest.raises(ValueError, match='give at least one'):
        plots.samples_ranked({})


def marks(axis):
    """The fill of each mean that is drawn, by its samples."""
    means = [line for line in axis.lines if line.get_gid() == 'mean']
    return {round(samples): line.get_fillstyle() for line in means for samples in line.get_xdata()}


@pytest.mark.parametrize(
    ('num_lanes', 'num_censored', 'fill'), [(5, 2, 'full'), (5, 3, None), (8, 5, 'none'), (1, 0, 'full'), (1, 1, None)]
)
def test_a_mean_is_of_three_lanes_and_open_below_half(num_lanes, num_censored, fill):
    rows = lanes()
    rows = pd.concat([rows, rows.assign(seed=rows['seed'] + 5)])
    rows = rows[rows['seed'] < num_lanes]
    failed = rows['model'].eq('rnn') & rows['seq_len'].eq(8) & rows['seed'].lt(num_censored)
    rows = rows.assign(outcome=rows['outcome'].mask(failed, 'censored'))
    rnn = rows[rows['model'].eq('rnn') & rows['seq_len'].eq(8)]
    [axis] = plots.samples_ranked({'': pd.concat([rnn, rows[rows['seq_len'].eq(4)]])}).axes
    assert marks(axis).get(16_000) == fill


def test_panels_share_their_samples_and_say_what_they_are_to():
    rows = lanes(num_censored=2, risk='pointwise', threshold=0.7)
    errors = lanes(samples=100, risk='pointwise', threshold=0.1, threshold_on='error_rate')
    figure = plots.samples_ranked({'retrieval': rows, 'parity': errors})
    assert [axis.get_title(loc='left') for axis in figure.axes] == [
        'retrieval\nto MSE 0.7',
        'parity\nto error rate 0.1',
    ]
    assert {axis.get_xlabel() for axis in figure.axes} == {'labels'}
    assert len({axis.get_xlim() for axis in figure.axes}) == 1
    assert 'the budget of 64,000 labels' in ' '.join(figure.get_supxlabel().split())
    averaged = plots.samples_ranked({'retrieval': rows.assign(risk='averaged')})
    assert averaged.axes[0].get_xlabel() == 'samples'
    assert 'triangles' not in plots.samples_ranked({'parity': errors}).get_supxlabel()


def test_few_architectures_with_more_values_do_not_stretch_the_others():
    rows = lanes()
    rnn = rows[rows['model'].eq('rnn')]
    others = [rnn.assign(model=model) for model in ('transformer', 'rnn', 'gru', 's5')]
    usual = plots.samples_ranked({'': pd.concat(others)})
    more = plots.samples_ranked({'': pd.concat([*others, rnn[rnn['seq_len'].eq(8)].assign(seq_len=16)])})
    assert usual.get_figheight() == more.get_figheight()


def test_one_architecture_may_stand_out():
    rows = lanes()
    figure = plots.samples_ranked({'retrieval': rows, 'recall': rows}, highlight='rnn')
    weights = {label.get_text(): label.get_fontweight() for label in figure.axes[0].get_yticklabels()}
    assert weights == {'Transformer': 'normal', 'RNN': 'bold'}
    assert [len(axis.patches) for axis in figure.axes] == [1, 1]


@pytest.mark.parametrize('num_panels', [1, 2, 4])
def test_a_legend_of_long_words_stays_in_the_figure(num_panels):
    at_4 = lanes()[lanes()['seq_len'] == 4]
    rows = pd.concat([at_4.assign(output=name) for name in ('gated', 'normed', 'unnormed', 'plain')], ignore_index=True)
    figure = plots.samples_ranked({f'panel {i}': rows for i in range(num_panels)}, by='output')
    figure.draw_without_rendering()
    legend = figure.legends[0].get_window_extent()
    assert legend.x0 >= 0
    assert legend.x1 <= figure.bbox.x1


def test_one_architecture_leaves_room_for_its_axis():
    rows = lanes()
    figure = plots.samples_ranked({'retrieval': rows[rows['model'] == 'rnn']}, notes=('a note',))
    figure.draw_without_rendering()
    (axis,) = figure.axes
    below = axis.xaxis.label.get_window_extent().ymin
    assert all(below > text.get_window_extent().ymax for text in figure.texts)


def test_ticks_of_a_narrow_panel_do_not_overlap():
    rows = lanes()
    rows['num_samples'] = rows['samples_to_threshold'] = np.linspace(1300, 4500, len(rows)).astype(int)
    rows['outcome'] = 'reached'
    figure = plots.samples_ranked({name: rows for name in ('retrieval', 'recall', 'parity')})
    figure.draw_without_rendering()
    least, most = figure.axes[0].get_xlim()
    labels = [label for label in figure.axes[0].get_xticklabels() if least <= label.get_position()[0] <= most]
    ends = [label.get_window_extent() for label in labels]
    assert len(ends) >= 2
    assert all(left.xmax < right.xmin for left, right in itertools.pairwise(ends))
