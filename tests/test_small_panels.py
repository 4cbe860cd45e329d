"""Small panels: every table of rows has its own, and what is drawn in it can be found again."""

import numpy as np
import pandas as pd
import pytest

from qstr_jax import plots


def lanes(samples=2000, num_censored=0, **changes):
    """Five lanes of two architectures at two N, the first few of the RNN at N = 8 without success."""
    rows = pd.DataFrame([
        {'model': model, 'task': 'qstr', 'seq_len': seq_len, 'seed': seed, 'outcome': 'reached', 'learner': 'online',
         'samples_to_threshold': samples * seq_len, 'max_samples': 64_000, 'accuracy': 0.9 + 0.01 * seed}
        for model in ('transformer', 'rnn') for seq_len in (4, 8) for seed in range(5)
    ])  # fmt: skip
    failed = rows['model'].eq('rnn') & rows['seq_len'].eq(8) & rows['seed'].lt(num_censored)
    rows['samples_to_threshold'] = rows['samples_to_threshold'].astype('Int64').mask(failed)
    return rows.assign(outcome=rows['outcome'].mask(failed, 'censored'), **changes)


def gids(axis):
    return {artist.get_gid() for artist in axis.findobj()} - {None}


def test_each_table_has_a_panel_and_all_share_the_samples():
    panels = {'parity': lanes(), 'recall': lanes(samples=300), 'a word_': lanes(num_censored=2), 'last': lanes()}
    figure = plots.samples_in_panels(panels, title='t', notes=('n',))
    shown = [axis for axis in figure.axes if axis.get_visible()]
    assert [axis.get_title(loc='left') for axis in shown] == list(panels)
    assert len({axis.get_ylim() for axis in shown}) == 1
    assert [axis.get_xlabel() == '' for axis in shown] == [True, False, False, False]
    assert [line.get_text() for line in figure.legends[0].get_texts()] == ['Transformer', 'RNN']


def test_lanes_that_never_learn_are_triangles_and_counted():
    figure = plots.samples_in_panels({'some': lanes(num_censored=2), 'none': lanes(num_censored=5)})
    some, none = figure.axes
    assert {text.get_text() for text in some.texts} == {'3 of 5', ''}
    assert [text.get_text() for text in none.texts if text.get_gid() == 'none learn'] == ['R: 0/5']
    assert 'censored rnn' in gids(some) & gids(none)
    [line] = [line for line in none.get_lines() if line.get_gid() == 'mean rnn']
    assert np.isfinite(line.get_ydata()).sum() == 1


def test_a_measure_has_its_means_lanes_and_references():
    guess = pd.Series({4: 0.25, 8: 0.125})
    figure = plots.measure_in_panels(
        {'two': lanes(), 'four': lanes()}, 'seq_len', 'accuracy', references={'guess': {'two': guess}}
    )
    left, right = figure.axes
    [mean] = [line for line in left.get_lines() if line.get_gid() == 'mean rnn']
    np.testing.assert_allclose(mean.get_ydata(), 0.92)
    assert 'reference guess' in gids(left) - gids(right)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ['Transformer', 'RNN', 'guess']
    assert left.get_legend() is None  # It would cover lanes.


def test_titles_and_long_names_stand_above_the_panels():
    guess, words = pd.Series({4: 0.25, 8: 0.125}), 'the best that can be done without any look at the prompt'
    references = {words: {'two': guess}}
    figure = plots.measure_in_panels({'two': lanes()}, 'seq_len', 'accuracy', references=references, title='some title')
    figure.canvas.draw()
    [legend] = figure.legends
    assert legend.get_title().get_text() == 'some title'
    box = legend.get_window_extent()
    assert box.y0 > figure.axes[0].get_window_extent().y1
    assert 0 <= box.x0 <= box.x1 <= figure.bbox.x1


def test_a_panel_may_have_a_remark():
    figure = plots.samples_in_panels({'a': lanes(), 'b': lanes()}, remarks={'b': 'learnt by heart'})
    assert [['learnt by heart' in text.get_text() for text in axis.texts] for axis in figure.axes] == [[False], [True]]


def test_no_panels_and_missing_columns_are_refused():
    with pytest.raises(ValueError, match='give at least one'):
        plots.measure_in_panels({}, 'seq_len', 'accuracy')
    with pytest.raises(ValueError, match='width'):
        plots.measure_in_panels({'one': lanes()}, 'width', 'accuracy')
    with pytest.raises(ValueError, match='give at least one'):
        plots.samples_in_panels({})
