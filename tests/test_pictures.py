"""Figures of single exhibits: heat maps, losses by a setting, attention, prompts, cost."""

import numpy as np
import pandas as pd
import pytest

from qstr_jax import analysis, plots, tasks
from qstr_jax.theory import constructions, portraits
from tests import helpers

TASK = tasks.build('qstr', seq_len=6, sparsity=2, token_dim=3, link='sum', encoding_dim=8)


def gids(figure, start=''):
    return {artist.get_gid() for artist in figure.findobj() if (artist.get_gid() or '').startswith(start)} - {None}


def grid(**changes):
    """Lanes over learning rate × weight decay × width."""
    rows = [
        {'model': 'ffn', 'learning_rate': rate, 'weight_decay': decay, 'ffn_widths': width, 'seed': seed,
         'outcome': 'reached', 'samples_to_threshold': 1000 * (1 + seed), 'max_samples': 9000,
         'encoding_coherence': 0.5}
        for rate in (1e-3, 1e-2) for decay in (0.01, 0.1) for width in ('60,1000', '120,2000') for seed in (0, 1)
    ]  # fmt: skip
    return pd.DataFrame(rows).assign(**changes)


def test_heat_map_marks_the_published_cell_in_its_panel():
    published = {'learning_rate': 1e-3, 'weight_decay': 0.01, 'ffn_widths': '60,1000'}
    figure = plots.samples_heatmap(
        grid(), 'learning_rate', 'weight_decay', panels='ffn_widths', published=published, title='t'
    )
    assert gids(figure, 'published') == {'published 0 0'}
    assert 'orange frame' in ' '.join(figure.get_supxlabel().split())
    assert len(gids(figure, 'cell')) == 4  # the same four in both panels
    titles = [axis.get_title() for axis in figure.axes]
    assert titles == ['widths 60,1000', 'widths 120,2000']
    texts = {text.get_text() for axis in figure.axes for text in axis.texts}
    assert texts == {'1.41k'}  # the geometric mean of 1,000 and 2,000


def test_heat_map_shows_censored_and_diverged_cells():
    rows = grid()
    rows.loc[rows['learning_rate'].eq(1e-2) & rows['weight_decay'].eq(0.1), 'outcome'] = 'diverged'
    rows.loc[rows['learning_rate'].eq(1e-2) & rows['weight_decay'].eq(0.01), 'outcome'] = 'censored'
    rows.loc[rows['learning_rate'].eq(1e-3) & rows['weight_decay'].eq(0.1) & rows['seed'].eq(1), 'outcome'] = 'censored'
    figure = plots.samples_heatmap(rows.query('ffn_widths == "60,1000"'), 'learning_rate', 'weight_decay')
    assert {text.get_text() for text in figure.axes[0].texts} == {'1.41k', '1k\n1 of 2', '> 9k', 'diverged'}


def test_heat_map_pales_where_few_learn_and_tells_what_was_not_fitted():
    rows = grid(train_risk=0.0, threshold=0.5).query('ffn_widths == "60,1000" & weight_decay == 0.1')
    lost = [rows.assign(seed=rows['seed'] + shift, outcome='censored') for shift in (2, 4)]
    few = pd.concat([rows, *lost])
    faces = []
    for some in (rows, few):
        figure = plots.samples_heatmap(some, 'learning_rate', 'weight_decay')
        faces.append(next(one for one in figure.findobj() if one.get_gid() == 'cell 0 0').get_facecolor())
    assert np.ptp(faces[1][:3]) < np.ptp(faces[0][:3])  # nearer to grey
    unfitted = plots.samples_heatmap(rows.assign(outcome='censored', train_risk=0.9), 'learning_rate', 'weight_decay')
    assert {text.get_text() for text in unfitted.axes[0].texts} == {'not fitted'}


def test_heat_map_has_a_second_axis_and_orders_values():
    figure = plots.samples_heatmap(
        grid(), 'ffn_widths', 'learning_rate', panels='weight_decay', top='encoding_coherence'
    )
    assert any('coherence' in child.get_xlabel() for axis in figure.axes for child in axis.child_axes)


def test_heat_map_refuses_two_architectures_and_missing_columns():
    with pytest.raises(ValueError, match='several architectures'):
        plots.samples_heatmap(pd.concat([grid(), grid(model='rnn')]), 'learning_rate', 'weight_decay')
    with pytest.raises(ValueError, match='width'):
        plots.samples_heatmap(grid(), 'learning_rate', 'width')


def test_heat_map_has_architectures_on_an_axis_the_one_that_learns_most_on_top():
    worst = grid(model='rnn')
    worst.loc[worst['learning_rate'].eq(1e-2), 'outcome'] = 'censored'
    rows = pd.concat([grid(), worst]).query('ffn_widths == "60,1000" and weight_decay == 0.1')
    [axis] = plots.samples_heatmap(rows, 'learning_rate', 'model').axes
    assert [tick.get_text() for tick in axis.get_yticklabels()] == ['RNN', 'FFN']  # from below
    assert {text.get_text() for text in axis.texts} == {'1.41k', '> 9k'}


def test_heat_map_takes_any_two_settings():
    rows = pd.concat(
        [grid(model='convolution', convolution_channels=channels, rnn_width=np.nan) for channels in (8, 16)]
    )
    rows = rows[(rows['learning_rate'] == 1e-3) & (rows['weight_decay'] == 0.1)]
    figure = plots.samples_heatmap(rows, 'convolution_channels', 'ffn_widths')
    [axis] = figure.axes
    assert (axis.get_xlabel(), axis.get_ylabel()) == ('convolution channels', 'widths')
    assert len(gids(figure, 'cell')) == 4


def test_training_curves_by_setting_draw_a_line_and_a_floor_per_value():
    curves = pd.DataFrame(
        [{'model': 'transformer', 'transformer_num_heads': h, 'seed': seed, 'samples': n,
          'test_loss': 1 / h + seed / 10}
         for h in (1, 2) for seed in (0, 1) for n in (100, 200, 300)]
    )  # fmt: skip
    draw, setting = plots.training_curves_by_setting, 'transformer_num_heads'
    figure = draw(curves, setting, floors={1: 0.5, 2: 0.0})
    assert gids(figure, 'mean') == {'mean H = 1', 'mean H = 2'}
    assert gids(figure, 'floor') == {'floor H = 1'}
    assert gids(draw(curves, setting, floors={1: 0.5, 2: 0.5}), 'floor') == {'floor of all'}
    with pytest.raises(ValueError, match='lack'):
        draw(curves, 'mlp_width')
    with pytest.raises(ValueError, match='differ in more than'):
        draw(pd.concat([curves, curves.assign(model='rnn')]), setting)
    names = curves.assign(encoding_scale=np.where(curves[setting] == 1, 'scaled', 'unscaled'))
    assert 'mean encodings scaled' in gids(draw(names, 'encoding_scale'))


@pytest.fixture(scope='module')
def construction():
    drawn = helpers.draw(tasks.task_key(0, TASK), TASK)
    return constructions.transformer(TASK, drawn, radius=5.0, alpha=3.0)


def test_the_portrait_of_a_construction_is_the_construction(construction):
    portrait = portraits.portrait(construction.params, TASK)
    assert list(portraits.sharpness(portrait)) == pytest.approx([3, 3])
    np.testing.assert_allclose(portraits.constructed(portrait), portrait.query_key_HxExE, atol=1e-6)
    table = portraits.table([portrait])
    assert list(table['index']) == [1, 2]
    assert np.allclose(table[['share', 'cosine']], 1)
    assert 'share 1.000, cosine 1.000' in portraits.title(portrait, 'merged')


def test_matrices_frame_the_block_of_each_head(construction):
    portrait = portraits.portrait(construction.params, TASK)
    figure = plots.query_key_matrices(portraits.panels(portrait), TASK, title='title', gamma=2.0, columns=2)
    assert gids(figure, 'block') == {'block 0', 'block 1'}
    titles = [axis.get_title() for axis in figure.axes if axis.get_title()]
    assert len(titles) == 4
    assert titles[0].startswith('head 1, trained: share 1.000')
    with pytest.raises(ValueError, match='D_e'):
        plots.query_key_matrices([('x', np.zeros((3, 3)), 0)], TASK)
    with pytest.raises(ValueError, match='at least one'):
        plots.query_key_matrices([], TASK)


def test_prompt_and_attention_show_every_index():
    x, t, y = np.ones((6, 3)), np.arange(12).reshape(6, 2) % 6, np.ones(6)
    assert len(gids(plots.prompt(x, t, y), 'arc')) == 12
    assert gids(plots.attention_weights(np.full((2, 6, 6), 1 / 6), t), 'indices') == {
        f'indices {head} {index}' for head in range(2) for index in range(2)
    }
    with pytest.raises(ValueError, match='agree in N'):
        plots.prompt(x, t[:3], y)


def texts(figure):
    return [text.get_text() for axis in figure.axes for text in axis.texts]


def test_a_prompt_shows_where_attention_looks_and_what_is_answered():
    """Numbers as bars and marks, classes by name; a ring in column i is at its t_i."""
    x, t = np.ones((4, 3)), np.array([[2], [0], [3], [1]])
    weights = np.eye(4)[t[:, 0]][None]
    numbers = plots.prompt(x, t, np.ones(4), rows=('a', 'b', 'c'), weights_HxNxN=weights, answers=np.arange(4.0))
    _, tokens, looks, labels = numbers.axes
    assert [label.get_text() for label in tokens.get_yticklabels()] == ['a', 'b', 'c']
    assert looks.images[0].get_array()[t[:, 0], range(4)].min() == 1
    assert list(looks.lines[0].get_ydata()) == list(t[:, 0])
    (answers,) = (line for line in labels.lines if line.get_gid() == 'answers')
    assert list(answers.get_ydata()) == [0, 1, 2, 3]
    classes = plots.prompt(x, t, np.array([0, 1, 1, 0]), answers=np.array([0, 1, 0, 0]), classes=('no', 'yes'))
    assert texts(classes) == ['no', 'yes', 'yes', 'no', 'no', 'yes', 'no', 'no']
    colours = [text.get_color() for text in classes.axes[-1].texts if text.get_gid() == 'answer']
    assert [colour == colours[0] for colour in colours] == [True, True, False, True]


def test_samples_and_seconds_stand_side_by_side():
    rows = pd.DataFrame(
        [{'model': 'ffn', 'task': 'qstr', 'sparsity': 1, 'seq_len': n, 'seed': seed, 'outcome': 'reached',
          'samples_to_threshold': 100 * n, 'max_samples': 10**6, 'cell': f'ffn-N{n}'}
         for n in (4, 8, 16) for seed in (0, 1)]
    )  # fmt: skip
    runs = [
        {'device': 'cpu', 'batches': [
            {'cell': f'ffn-N{n}', 'lanes': seeds, 'wall_seconds': n / 2, 'compile_seconds': 1.0}
            for n in (4, 8, 16) for seeds in ([0, 1], [0])  # The second batch continues a lane of the first.
        ]}
    ]  # fmt: skip
    seconds = analysis.seconds_per_cell(runs, rows)
    assert list(seconds['seq_len']) == [4, 8, 16]
    assert list(seconds['lanes']) == [2, 2, 2]
    assert list(seconds['seconds_per_lane']) == [2, 4, 8]
    figure = plots.samples_and_seconds(rows, seconds)
    drawn = {line.get_gid(): line.get_xydata().tolist() for axis in figure.axes for line in axis.lines}
    assert drawn['seconds ffn'] == [[4, 2], [8, 4], [16, 8]]
    with pytest.raises(ValueError, match='no rows'):
        plots.samples_and_seconds(rows, analysis.seconds_per_cell([], rows))
    rows.loc[rows['seq_len'] == 16, ['outcome', 'samples_to_threshold']] = ['censored', None]
    drawn = {line.get_gid(): line.get_xydata() for line in plots.samples_and_seconds(rows, seconds).axes[0].lines}
    np.testing.assert_allclose(drawn['mean ffn'], [[4, 400], [8, 800]])
    np.testing.assert_allclose(drawn['censored ffn'], [[16, 1e6]] * 2, rtol=0.03)  # a little to the right


OPEN = 'right, open marks: no FFNs'


def legend_texts(axis):
    return [text.get_text() for text in axis.get_legend().get_texts()]


def test_runs_stand_beside_their_floor():
    rows = pd.DataFrame(
        [{'model': model, 'learner': learner, 'seq_len': length, 'num_samples': n, 'sample_size': n, 'seed': seed,
          'test_loss': 1 - n / 20 + seed / 10, 'test_loss_se': 0.01, 'floor': 1 - n / 20, 'load': n / 20,
          'is_bound': model == 'ffn'}
         for model, learner in (('ffn', 'min_norm'), ('ffn', 'stationary'), ('zero', 'closed_form'))
         for length, scale in ((5, 1), (10, 2)) for n in (5 * scale, 10 * scale) for seed in (0, 1)]
    )  # fmt: skip
    figure = plots.loss_against_floor(rows)
    assert gids(figure, 'mean') == {'mean ffn learner=min_norm', 'mean ffn learner=stationary', 'mean zero'}
    assert gids(figure, 'margin') == {'margin ffn learner=min_norm', 'margin ffn learner=stationary'}
    assert OPEN not in legend_texts(figure.axes[0])
    [line] = [line for line in figure.axes[0].lines if line.get_gid() == 'floor']
    np.testing.assert_allclose(line.get_ydata(), np.maximum(0, 1 - line.get_xdata()))


def test_models_that_the_floor_is_not_about_have_open_marks_beside_it():
    """Runs of which one learns and one does not have no mean, which would be of the one that does not."""
    rows = pd.DataFrame(
        [{'model': model, 'learner': learner, 'seq_len': 5, 'num_samples': 10, 'seed': seed, 'test_loss': loss,
          'test_loss_se': 1e-4, 'floor': 0.5, 'load': 0.5, 'is_bound': model == 'theorem6_oracle'}
         for model, learner, losses in (('transformer', 'constrained', (0.001, 1.2)),
                                        ('theorem6_oracle', 'closed_form', (0.49, 0.51)))
         for seed, loss in enumerate(losses)]
    )  # fmt: skip
    left, right = plots.loss_against_floor(rows).axes
    margins = {line.get_gid(): line for line in right.lines if 'margin' in (line.get_gid() or '')}
    assert {gid: line.get_fillstyle() for gid, line in margins.items()} == {
        'margin transformer': 'none',
        'margin theorem6_oracle': 'full',
    }
    assert OPEN in legend_texts(left)
    assert right.get_ylim()[0] < min(margins['margin transformer'].get_ydata())
    drawn = {line.get_gid(): len(line.get_xdata()) for line in left.lines if len(line.get_xdata())}
    assert (drawn.get('mean transformer'), drawn['mean theorem6_oracle']) == (None, 1)
    assert drawn['runs transformer'] == 2


def test_a_cell_whose_least_n_was_enough_is_no_failure():
    rows = grid(outcome='censored_below', min_samples=10).query('ffn_widths == "60,1000"')
    axis = plots.samples_heatmap(rows, 'learning_rate', 'weight_decay').axes[0]
    assert {text.get_text() for text in axis.texts} == {'≤ 10'}
