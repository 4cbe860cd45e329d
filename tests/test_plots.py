"""What the figures show: every lane, bound and word is an artist that can be found again."""

import errno
import itertools
import os
import re

import matplotlib
import numpy as np
import pandas as pd
import pytest

from qstr_jax import analysis, plots
from qstr_jax.plots import style, x_axis
from qstr_jax.storage import files
from tests import test_analysis


def make_rows(model='transformer', exponent=0.6, num_lanes=3, lengths=(2, 4, 8), **more):
    return test_analysis.make_rows(exponent, 4000, model=model, num_lanes=num_lanes, lengths=lengths, **more)


def make_curves():
    losses = [1.0, np.nan, 0.9, 0.8, 0.6]
    return pd.DataFrame([
        {'model': model, 'seq_len': length, 'seed': seed, 'samples': 640 * check, 'train_loss': 1.0, 'test_loss': loss}
        for model in ('ffn', 'transformer') for length in (4, 8) for seed in (0, 1)
        for check, loss in enumerate(losses, 1)
    ])  # fmt: skip


def artists(axis, gid):
    return [artist for artist in axis.get_children() if artist.get_gid() == gid]


def key(figure):
    """What stands under a figure, in one line."""
    return figure.get_supxlabel().replace('\n', ' ').replace('\xa0', ' ')


def points(axis, gid):
    [artist] = artists(axis, gid)
    return np.column_stack(artist.get_data(orig=False)).astype(float)


def labels(axis):
    """What stands at the ends of curves and lines, from the first to the last."""
    return [text.get_text() for text in axis.texts if (text.get_gid() or '').startswith('end ')]


def legend(axis):
    return [text.get_text() for text in axis.get_legend().get_texts()]


def test_every_lane_mean_and_interval_is_there():
    rows = pd.concat([make_rows(), make_rows('rnn', 1.1)])
    figure = plots.samples_against(rows)
    [axis] = figure.axes
    summary = analysis.summarize(rows)
    for model in ('transformer', 'rnn'):
        mine = rows[rows['model'] == model]
        dots = points(axis, f'reached {model}')
        assert sorted(dots[:, 1]) == sorted(mine['samples_to_threshold'])
        mean = points(axis, f'mean {model}')
        np.testing.assert_allclose(mean[:, 1], summary['mean'][summary['model'] == model])
        [band] = artists(axis, f'interval {model}')
        corners = band.get_paths()[0].vertices[:, 1]
        assert summary['high'][summary['model'] == model].max() in corners
    first, second = (points(axis, f'reached {model}')[:, 0] for model in ('transformer', 'rnn'))
    assert not set(first) & set(second)  # The offsets keep them apart,
    np.testing.assert_allclose(np.round(first), [2, 2, 2, 4, 4, 4, 8, 8, 8])  # and are slight.
    assert axis.get_xscale() == axis.get_yscale() == 'log'
    assert axis.get_ylim()[1] > rows['samples_to_threshold'].max()


def test_curves_end_with_their_names_and_the_exponents_of_analysis():
    rows = make_rows()
    fit = analysis.exponent(rows)
    figure = plots.samples_against(rows)
    [label] = labels(figure.axes[0])
    assert label == f'Transformer\n$N^{{{fit.value:.2f}}}$ [{fit.low:.2f}, {fit.high:.2f}]*'.replace('-', '−')
    assert '*: by lane noise alone' in figure.get_supxlabel().replace('\n', ' ')
    assert labels(plots.samples_against(make_rows(lengths=(2, 4))).axes[0]) == ['Transformer']  # Two N, no exponent.
    [label] = labels(plots.samples_against(make_rows(num_lanes=1)).axes[0])
    assert label.endswith('}$')  # Three lengths, and nothing known of the noise.
    bent = rows.assign(
        samples_to_threshold=rows['samples_to_threshold'] * rows['seq_len'].eq(4).map({True: 9, False: 1})
    )
    figure = plots.samples_against(bent)
    assert labels(figure.axes[0])[0].endswith('}$')
    assert 'no interval: means off a line' in figure.get_supxlabel().replace('\n', ' ')


def test_names_of_curves_that_end_together_do_not_overlap():
    figure = plots.samples_against(pd.concat([make_rows(model) for model in ('transformer', 'rnn', 'ffn')]))
    figure.canvas.draw()
    boxes = sorted((text.get_window_extent() for text in figure.axes[0].texts if 'end' in (text.get_gid() or '')),
                   key=lambda box: box.y0)  # fmt: skip
    assert len(boxes) == 3
    assert all(below.y1 <= above.y0 + 1 for below, above in itertools.pairwise(boxes))
    assert all(box.x1 <= figure.bbox.x1 for box in boxes)


def test_slopes_to_compare_with():
    [axis] = plots.samples_against(make_rows(lengths=(2, 4, 8, 32))).axes
    for slope in (1, 2):
        (x0, y0), (x1, y1) = points(axis, f'slope {slope}')
        assert np.log(y1 / y0) / np.log(x1 / x0) == pytest.approx(slope)


def test_more_than_six_curves_make_panels():
    rows = pd.concat([make_rows().assign(learning_rate=10.0**-rate) for rate in range(1, 9)])
    figure = plots.samples_against(rows)
    assert [len(labels(axis)) for axis in figure.axes] == [6, 2]


def test_lengths_that_need_no_retrieval_are_grey():
    rows = make_rows(lengths=(2, 4, 8, 16)).assign(link='linear')
    figure = plots.samples_against(rows)
    [axis] = figure.axes
    assert [line.get_gid() for line in axis.lines if 'no retrieval' in (line.get_gid() or '')] == ['no retrieval 2']
    assert 'grey' in figure.get_supxlabel()
    assert 'grey' not in plots.samples_against(rows[rows['seq_len'] > 2]).get_supxlabel()


def test_lanes_that_never_learn_stand_at_their_budget_and_the_mean_is_of_the_others():
    rows = make_rows(exponent=1.0, budget=31_000)
    assert (rows['outcome'] == 'censored').sum() == 2  # Two lanes of three at N = 8.
    [axis] = plots.samples_against(rows).axes
    assert set(points(axis, 'censored transformer')[:, 1]) == {31_000}
    [triangles] = artists(axis, 'censored transformer')
    assert triangles.get_marker() == '^'
    assert triangles.get_fillstyle() == 'none'
    [learned] = rows['samples_to_threshold'][rows['seq_len'] == 8].dropna()
    assert points(axis, 'none transformer')[0, 1] == pytest.approx(learned)
    assert [text.get_text() for text in axis.texts if text.get_gid() == 'learn'] == ['1 of 3']


def test_a_point_at_which_no_lane_learns_says_so_at_the_budget():
    rows = make_rows(exponent=1.0, budget=16_000)
    assert set(rows['outcome'][rows['seq_len'] == 8]) == {'censored'}
    figure = plots.samples_against(rows)
    [axis] = figure.axes
    assert [text.get_text() for text in axis.texts if text.get_gid() == 'none learn'] == ['0 of 3']
    assert 'k of n: lanes that learn' in ' '.join(figure.get_supxlabel().split())
    assert 'k of n' not in plots.samples_against(make_rows()).get_supxlabel()
    assert points(axis, 'mean transformer')[-1, 0] == pytest.approx(4)


def test_outraced_lanes_stand_where_they_were_stopped():
    rows = make_rows(exponent=1.0, budget=31_000).assign(num_samples=25_000)
    rows = rows.replace({'outcome': {'censored': 'outraced'}})
    figure = plots.samples_against(rows)
    [axis] = figure.axes
    assert set(points(axis, 'outraced transformer')[:, 1]) == {25_000}
    assert np.isnan(points(axis, 'mean transformer')[-1, 1])
    bounds = points(axis, 'bounds transformer')[:, 1]  # dotted where the line goes to one
    assert bounds[-1] >= 25_000
    assert np.isnan(bounds[0])
    assert '▲ more than this n' in figure.get_supxlabel()


def test_a_line_has_a_gap_where_most_curves_have_a_value():
    rnn = make_rows('rnn')
    [axis] = plots.samples_against(pd.concat([make_rows(), make_rows('ffn'), rnn[rnn['seq_len'] != 4]])).axes
    mean = points(axis, 'mean rnn')
    np.testing.assert_allclose(mean[:, 0], [2, 4, 8], rtol=0.02)
    assert np.isnan(mean[:, 1]).tolist() == [False, True, False]
    assert np.isfinite(points(axis, 'mean transformer')).all()
    others = [rnn[rnn['seq_len'] != 4].assign(model=model) for model in ('rnn', 'ffn')]
    for few in others[:1], [make_rows(), others[0]], [make_rows(), *others]:  # Where few have the value, it is no gap.
        [axis] = plots.samples_against(pd.concat(few)).axes
        assert np.isfinite(points(axis, 'mean rnn')).all()


def test_few_lanes_are_open_and_not_joined_unless_no_point_has_more():
    one = make_rows('rnn', num_lanes=1)
    figure = plots.samples_against(pd.concat([make_rows(), one]))
    [axis] = figure.axes
    assert np.isnan(points(axis, 'mean rnn')[:, 1]).all()
    assert (len(points(axis, 'none rnn')), len(points(axis, 'full rnn'))) == (3, 0)
    assert artists(axis, 'none rnn')[0].get_fillstyle() == 'none'
    assert np.isfinite(points(axis, 'mean transformer')).all()
    assert 'open large marks: fewer than 3 lanes' in key(figure)
    alone = plots.samples_against(one)
    assert np.isfinite(points(alone.axes[0], 'mean rnn')).all()
    assert len(points(alone.axes[0], 'full rnn')) == 3
    assert alone.get_supxlabel() == 'dots: lanes; lines: single lanes'


def test_a_point_without_neighbours_has_its_interval_as_a_bar():
    rows = make_rows(lengths=(8,))
    [axis] = plots.samples_against(rows).axes
    [mean] = analysis.summarize(rows).to_dict('records')
    np.testing.assert_allclose(points(axis, 'bar transformer')[:, 1], [mean['low'], mean['high']])
    [axis] = plots.samples_against(make_rows()).axes
    assert not artists(axis, 'bar transformer')


def test_all_censored():
    rows = pd.concat([make_rows(budget=640), make_rows('ffn', budget=640)])
    [axis] = plots.samples_against(rows).axes
    assert len(points(axis, 'censored ffn')) == 9
    assert labels(axis) == ['Transformer', 'FFN']
    assert axis.get_ylim()[1] > 640


def test_diverged_lanes_are_crosses_at_the_top():
    rows = make_rows()
    rows.loc[3, ['outcome', 'samples_to_threshold']] = ['diverged', pd.NA]
    [axis] = plots.samples_against(rows).axes
    [[_, height]] = points(axis, 'diverged transformer')  # A share of the panel.
    assert 0.9 < height < 1
    figure = plots.samples_against(rows.assign(outcome='diverged'))
    figure.canvas.draw()
    assert len(points(figure.axes[0], 'diverged transformer')) == 9


def test_reference_has_one_entry_of_the_key_and_one_panel():
    reference = {'transformer': {8: 17_000}, 'rnn': {8: 74_000}}
    figure = plots.samples_against(make_rows(), reference=reference)
    [axis] = figure.axes
    assert points(axis, 'reference rnn').tolist() == [[8, 74_000]]
    assert artists(axis, 'reference transformer')[0].get_fillstyle() == 'none'
    assert figure.get_supxlabel().replace('\n', ' ').count('faint open: published') == 1
    assert axis.get_ylim()[1] > 74_000
    with pytest.raises(ValueError, match='one panel'):
        plots.samples_against(pd.concat([make_rows(), make_rows(task='simple_qstr')]), reference=reference)


def test_a_panel_per_task_and_an_axis_of_q():
    figure = plots.samples_against(pd.concat([make_rows(), make_rows(task='simple_qstr')]))
    assert [axis.get_title('left') for axis in figure.axes] == ['qSTR', 'simple-qSTR']
    two = plots.samples_against(pd.concat([make_rows(), make_rows(task='simple_qstr', exponent=1.6)]))
    exponents = [re.search(r'\^\{?([\d.]+)', labels(axis)[0])[1] for axis in two.axes]
    assert [round(float(one)) for one in exponents] == [1, 2]
    rows = pd.concat([make_rows(lengths=(7,)).assign(sparsity=q) for q in (1, 2, 3)])
    [axis] = plots.samples_against(rows, x='sparsity').axes
    assert axis.get_xlabel() == 'relevant tokens $q$'
    assert '$q^' in labels(axis)[0]


def test_the_samples_axis_is_as_high_with_many_panels_as_with_one():
    [alone] = plots.samples_against(make_rows()).axes
    many = plots.samples_against(pd.concat(make_rows(task=f'task {i}') for i in range(8))).axes
    np.testing.assert_allclose(many[0].get_ylim(), alone.get_ylim())


def test_words_are_printed_as_they_are():
    rows = make_rows('_my$model$')
    figure = plots.samples_against(rows, title='cost: $5', notes=('1,000 test prompts', 'b'))
    figure.canvas.draw()
    assert labels(figure.axes[0])[0].startswith(r' _my\$model\$')  # A leading '_' hides a label.
    assert figure.get_suptitle() == r'cost: \$5'
    assert figure.get_supxlabel().replace('\n', ' ').replace('\xa0', ' ') == (
        '1,000 test prompts; b; dots: lanes; lines: geometric means, with 95 % intervals; *: by lane noise alone'
    )
    assert figure.axes[0].get_ylabel() == 'samples to test MSE < 0.7'
    assert [text.get_text() for text in figure.axes[0].get_xticklabels()] == ['2', '4', '8']
    assert figure.axes[0].get_yticklabels()[-1].get_text().endswith('k')


def test_a_long_title_stays_inside_the_figure():
    title = '1STR, N = 64, d = 10: a Transformer below the floor of feedforward networks'
    figure = plots.samples_against(make_rows('transformer'), title=title)
    figure.canvas.draw()
    (text,) = [text for text in figure.texts if text.get_text().startswith('1STR')]
    assert ' '.join(text.get_text().split()) == title
    assert not any(line.endswith('=') or line.startswith('=') for line in text.get_text().splitlines())
    box = text.get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.x1


@pytest.mark.parametrize('width', range(12, 60))
def test_lines_keep_numbers_with_their_words(width):
    text = 'simple-qSTR, q = 2, N = 100: share 0.995, test MSE 0.7'
    lines = style.wrap(text, width)
    assert ' '.join(' '.join(lines).split()) == text
    assert not any(line[0].isdigit() or line.startswith('=') for line in lines)


def test_looks_differ_without_colour():
    models = ['a', 'b', 'c', 'd', 'transformer', 'rnn', 'ffn']
    looks = plots.looks(models)
    assert looks['rnn'] == plots.looks(['rnn'])['rnn']  # Whatever else is drawn.
    for part in zip(*looks.values(), strict=True):
        assert len(set(part)) == len(models)


def test_curves_have_a_line_per_lane_that_joins_over_screened_checks():
    figure = plots.training_curves(make_curves(), threshold=0.7, title='losses')
    assert [axis.get_legend().get_title().get_text() for axis in figure.axes] == ['Transformer', 'FFN']
    for axis in figure.axes:
        for length in (4, 8):
            for seed in (0, 1):
                lane = points(axis, f'lane {length} {seed}')
                np.testing.assert_array_equal(lane[:, 1], [1.0, 0.9, 0.8, 0.6])
        assert artists(axis, 'threshold')[0].get_ydata()[0] == 0.7
        assert legend(axis) == ['N = 4', 'N = 8', 'threshold 0.7']
    shades = {artists(figure.axes[0], f'lane {length} 0')[0].get_color().tobytes() for length in (4, 8)}
    assert len(shades) == 2


def test_curves_of_nothing():
    with pytest.raises(ValueError, match='lack the columns: seed, test_loss'):
        plots.training_curves(make_curves().drop(columns=['seed', 'test_loss']))
    with pytest.raises(ValueError, match='no rows'):
        plots.training_curves(make_curves().iloc[:0])
    plots.training_curves(make_curves().assign(test_loss=np.nan), threshold=0.7).canvas.draw()


def test_low_losses_get_a_logarithmic_axis_on_every_panel():
    curves = make_curves()
    curves.loc[curves['model'] == 'ffn', 'test_loss'] *= 0.01
    assert [axis.get_yscale() for axis in plots.training_curves(curves).axes] == ['log', 'log']
    assert plots.training_curves(make_curves()).axes[0].get_yscale() == 'linear'


def test_a_wild_start_does_not_squash_curves():
    curves = pd.concat([make_curves().assign(seed=seed) for seed in range(60)])
    assert plots.training_curves(curves).axes[0].get_ylim()[1] < 1.2
    curves.iloc[0, curves.columns.get_loc('test_loss')] = 9.5
    figure = plots.training_curves(curves)
    assert figure.axes[0].get_ylim()[1] < 1.2
    assert 'losses above the panels: up to 9.5' in ' '.join(figure.get_supxlabel().split())


def test_at_most_six_values_are_drawn_each_with_a_mark():
    curves = pd.concat([make_curves().query('seq_len == 4').assign(seq_len=n) for n in range(4, 14)])
    figure = plots.training_curves(curves)
    names = legend(figure.axes[0])
    assert len(names) == 6
    assert (names[0], names[-1]) == ('N = 4', 'N = 13')
    assert 'of 10 values' in ' '.join(figure.get_supxlabel().split())
    marks = {line.get_marker() for line in figure.axes[0].lines if (line.get_gid() or '').startswith('lane')}
    assert len(marks) == 6
    assert 'drawn' not in plots.training_curves(make_curves()).get_supxlabel()


def test_save_writes_both_files_and_leaves_nothing_else(tmp_path):
    target = tmp_path / 'new' / 'threshold_0.7'
    pdf, png = plots.save(plots.samples_against(make_rows()), target)
    assert (pdf.name, png.name) == ('threshold_0.7.pdf', 'threshold_0.7.png')
    assert sorted(target.parent.iterdir()) == [pdf, png]
    assert pdf.read_bytes().startswith(b'%PDF')
    assert b'/Type3' not in pdf.read_bytes()
    assert png.read_bytes().startswith(b'\x89PNG')
    assert b'CreationDate' not in pdf.read_bytes()
    first, inode = (pdf.read_bytes(), png.read_bytes()), pdf.stat().st_ino
    plots.save(plots.samples_against(make_rows()), str(target))
    assert (pdf.read_bytes(), png.read_bytes()) == first
    assert pdf.stat().st_ino != inode  # Replaced, not written over.


def test_a_full_disk_is_a_line_and_keeps_the_old_file(tmp_path, monkeypatch):
    figure = plots.samples_against(make_rows())
    pdf, _ = plots.save(figure, tmp_path / 'figure')
    before = pdf.read_bytes()

    def full(file):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, 'fsync', full)
    with pytest.raises(files.ResultsError, match=r'^cannot write .*figure\.pdf: No space left on device$'):
        plots.save(figure, tmp_path / 'figure')
    assert pdf.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 2


def test_drawing_touches_no_global_state():
    before = dict(matplotlib.rcParams)
    plots.samples_against(make_rows())
    plots.training_curves(make_curves())
    assert dict(matplotlib.rcParams) == before


def wide_rows(column, values, **changes):
    rows = [make_rows(exponent=0, lengths=(7,), **changes).assign(**{column: value}) for value in values]
    return pd.concat(rows, ignore_index=True)


def test_any_setting_can_be_the_x_axis():
    [axis] = plots.samples_against(wide_rows('convolution_channels', (8, 16, 64), model='convolution'),
                                   'convolution_channels').axes  # fmt: skip
    assert axis.get_xlabel() == 'convolution channels'
    assert axis.get_xscale() == 'log'
    np.testing.assert_allclose(points(axis, 'mean convolution')[:, 0], [8, 16, 64])
    assert labels(axis)[0].startswith('convolution\nslope ')
    [axis] = plots.samples_against(wide_rows('learning_rate', (1e-4, 1e-3, 1e-2)), 'learning_rate').axes
    assert (axis.get_xlabel(), axis.get_xscale()) == ('learning rate', 'log')
    assert [text.get_text() for text in axis.get_xticklabels()] == ['0.0001', '0.001', '0.01']


def test_names_stand_side_by_side():
    figure = plots.samples_against(
        wide_rows('ffn_widths', ('60,1000', '60,500', '120,2000'), model='ffn'), 'ffn_widths'
    )
    [axis] = figure.axes
    assert [text.get_text() for text in axis.get_xticklabels()] == ['60,500', '60,1000', '120,2000']
    assert points(axis, 'mean ffn')[:, 0].tolist() == [0, 1, 2]
    assert labels(axis) == ['FFN']
    figure.canvas.draw()


@pytest.mark.parametrize('lengths', [(4, 5, 6, 8, 16, 32, 64, 128, 256), (2, 2.1), (8, 250, 254, 256)])
def test_the_first_and_the_last_label_stand_and_the_others_where_there_is_room(lengths):
    places = np.log(lengths)
    width = places[-1] - places[0] + 1.0
    shown = x_axis.with_room(places, width)
    assert shown[-1] == len(lengths) - 1
    assert shown[0] == 0 or len(shown) == 1
    assert (np.diff(places[shown]) >= 0.07 * width).all()


def test_lines_are_told_apart_by_any_setting():
    rows = pd.concat([make_rows().assign(learning_rate=rate) for rate in (1e-3, 1e-2)])
    [axis] = plots.samples_against(rows).axes
    assert [label.split('\n')[0] for label in labels(axis)] == [
        'Transformer, learning rate 0.001', 'Transformer, learning rate 0.01',
    ]  # fmt: skip
    shown = [artists(axis, f'mean transformer learning_rate={rate}')[0] for rate in (0.001, 0.01)]
    assert shown[0].get_color() != shown[1].get_color()
    assert shown[0]._dash_pattern != shown[1]._dash_pattern


def test_more_curves_than_looks_still_differ():
    looks = plots.looks(f'transformer radius={radius}' for radius in range(40))
    assert len({(colour, marker) for colour, marker, _ in looks.values()}) == 40


def search_rows(**changes):
    """Rows of a search that knows every outcome."""
    outcomes = ['reached', 'reached', 'censored', 'censored_below']
    table = [
        {
            'model': model, 'task': 'qstr', 'sparsity': 1, 'seq_len': n, 'seed': seed, 'outcome': outcome,
            'samples_to_threshold': 10 * n + seed if outcome == 'reached' else pd.NA, 'max_samples': 1000,
            'min_samples': 5, 'threshold': 0.05,
        }
        for model in ('transformer', 'ffn') for n in (8, 16, 64) for seed, outcome in enumerate(outcomes)
    ]  # fmt: skip
    return pd.DataFrame(table).assign(**changes).astype({'samples_to_threshold': 'Int64'})


def test_n_star_draws_every_lane_and_the_mean_dotted_where_it_is_a_bound():
    figure = plots.samples_against(search_rows(), title='title', notes=('note',))
    [axis] = figure.axes
    for outcome in ('reached', 'censored', 'censored_below'):
        assert len(points(axis, f'{outcome} ffn')) in (3, 6)
    # 10 n, 10 n + 1, never, at most 5.
    means = [(10 * n * (10 * n + 1) * 5) ** (1 / 3) for n in (8, 16, 64)]
    np.testing.assert_allclose(points(axis, 'bounds ffn')[:, 1], means)
    assert np.isnan(points(axis, 'mean ffn')[:, 1]).all()
    assert [text.get_text() for text in axis.texts if text.get_gid() == 'learn'] == 6 * ['3 of 4']
    assert '△ more than the budget; ▽ the smallest' in figure.get_supxlabel().replace('\n', ' ')
    assert 'N^{' in labels(axis)[0]
    [axis] = plots.samples_against(search_rows()[lambda table: table['outcome'] == 'reached']).axes
    assert labels(axis)[0].startswith('Transformer\n$N^{1.00}$ [')


def test_the_axis_of_searches_is_n_star_and_means_that_are_bounds_are_half_full():
    figure = plots.samples_against(search_rows(is_search=True))
    [axis] = figure.axes
    assert axis.get_ylabel() == '$n^*$, prompts to test MSE < 0.05'
    assert [artists(axis, f'{fill} ffn')[0].get_xdata().size for fill in ('full', 'bottom', 'none')] == [0, 3, 0]
    assert 'half-filled marks: bounds' in figure.get_supxlabel().replace('\n', ' ')


def counts(rows):
    [axis] = plots.samples_against(rows).axes
    gids = ('learn', 'none learn', 'fit')
    return [text.get_text() for text in axis.texts if text.get_gid() in gids]


def test_where_some_lanes_fit_or_are_erms_their_number_is_said():
    rows = make_rows(num_lanes=5, budget=60_000).assign(learner='constrained', train_risk=0.0)
    assert counts(rows) == []
    last = rows['seq_len'] == 8
    assert counts(rows.assign(is_erm=~(last & rows['seed'].lt(2)))) == ['3 of 5 ERMs']
    assert counts(rows.assign(is_erm=~last)) == ['0 of 5 ERMs']
    lost = rows.assign(outcome=rows['outcome'].mask(last & rows['seed'].lt(2), 'censored'))
    assert counts(lost) == ['3 of 5']
    unfitted = lost.assign(train_risk=lost['outcome'].eq('censored').astype(float))
    assert counts(unfitted) == ['3 of 5 fit']
    assert counts(unfitted.assign(outcome=lost['outcome'].mask(last & rows['seed'].eq(4), 'censored'))) == [
        '3 of 5 fit, 2 learn'
    ]


def test_a_curve_that_ends_before_the_last_tick_has_its_name_beside_it():
    [axis] = plots.samples_against(pd.concat([make_rows(lengths=(2, 4, 8, 16)), make_rows('ffn', 1.5)])).axes
    shares = {
        text.get_gid(): axis.transAxes.inverted().transform(text.get_window_extent().p0)[0]
        for text in axis.texts
        if (text.get_gid() or '').startswith('end ')
    }
    assert shares['end ffn'] < 1 < shares['end transformer']


def test_n_star_fills_the_marks_of_erms_alone_and_draws_further_lines():
    rows = search_rows()[lambda table: (table['outcome'] == 'reached') & (table['model'] == 'ffn')]
    by_rule = rows.assign(encoding_factor=3.0, encoding_dim=rows['seq_len'] // 2)
    rows = pd.concat([by_rule, rows.assign(encoding_factor=np.nan, encoding_dim=75)])
    lines = pd.DataFrame({'name': 'capacity', 'seq_len': (8, 16, 64), 'samples': (80, 160, 640)})
    lines = lines.assign(encoding_factor=np.nan, encoding_dim=75)
    figure = plots.samples_against(rows.assign(is_erm=rows['seq_len'] != 64), lines=lines)
    narrow, wide = figure.axes
    assert [axis.get_title('left') for axis in figure.axes] == ['d_e/ln N = 3', 'd_e = 75']
    np.testing.assert_allclose(points(wide, 'line capacity'), [(8, 80), (16, 160), (64, 640)])
    assert 'capacity' in labels(wide)
    assert 'capacity' not in labels(narrow)
    filled = {line.get_fillstyle(): sorted(line.get_ydata()) for line in wide.lines if line.get_gid() == 'reached ffn'}
    assert filled == {'full': [80, 81, 160, 161], 'none': [640, 641]}
    [mean] = artists(wide, 'mean ffn')  # As the exponent, of ERMs.
    np.testing.assert_allclose(mean.get_ydata(), [(80 * 81) ** 0.5, (160 * 161) ** 0.5])
    assert 'dots: ERMs; small rings: fits that are no ERMs' in figure.get_supxlabel().replace('\n', ' ')


def test_n_star_marks_lanes_that_only_bound_that_of_erms():
    rows = search_rows()[lambda table: (table['outcome'] == 'reached') & (table['model'] == 'ffn')]
    rows = rows.assign(is_erm=True, miss_is_erm=rows['seq_len'] != 64)
    figure = plots.samples_against(rows)
    [axis] = figure.axes
    marks = {line.get_gid(): (line.get_marker(), sorted(line.get_ydata())) for line in axis.lines}
    assert marks['at_most ffn'] == ('v', [640, 641])
    assert marks['reached ffn'] == ('.', [80, 81, 160, 161])
    words = '▼ at most this'
    assert words in figure.get_supxlabel()
    assert words not in plots.samples_against(rows.assign(miss_is_erm=True)).get_supxlabel()


def test_learning_curves_have_a_panel_per_length():
    table = pd.DataFrame([
        {'model': model, 'task': 'qstr', 'seq_len': n, 'seed': seed, 'num_samples': size, 'sample_size': size,
         'test_loss': loss / size}
        for model in ('transformer', 'zero') for n in (4, 8) for seed in range(3) for size in (10, 100)
        for loss in (1.0 + seed,)
    ])  # fmt: skip
    figure = plots.learning_curves(table, threshold=0.05)
    assert [axis.get_title() for axis in figure.axes] == ['N = 4', 'N = 8']
    np.testing.assert_allclose(points(figure.axes[0], 'median transformer')[:, 1], [0.2, 0.02])
    figure = plots.learning_curves(table.assign(test_loss=table['test_loss'].where(table['model'] != 'zero', 1e-12)))
    figure.canvas.draw()
    assert figure.axes[0].yaxis.get_major_formatter()(1e-3, 0) == '≤ 0.001'
    with pytest.raises(ValueError, match='num_samples'):
        plots.learning_curves(table.drop(columns='num_samples'))


def test_a_run_that_diverges_does_not_stretch_learning_curves():
    table = pd.DataFrame([
        {'model': 'ffn', 'task': 'qstr', 'seq_len': 4, 'seed': seed, 'num_samples': size, 'sample_size': size,
         'test_loss': 1e16 if seed == 2 and size == 100 else 0.5}
        for seed in range(3) for size in (10, 100)
    ])  # fmt: skip
    [axis] = plots.learning_curves(table).axes
    assert points(axis, 'lanes ffn')[:, 1].max() == 10
    name = axis.yaxis.get_major_formatter()
    assert (name(10, 0), name(1e-3, 0)) == ('≥ 10', '0.001')
    assert len(axis.yaxis.get_major_locator()()) < 12
    alone = plots.learning_curves(table[table['seed'] < 2]).axes[0]
    assert alone.yaxis.get_major_formatter()(10, 0) == '10'


def test_training_curves_by_another_setting_keep_lanes_of_several_rates_apart():
    curves = pd.concat([make_curves().assign(learning_rate=rate) for rate in (1e-3, 1e-2)])
    [axis, _] = plots.training_curves(curves, by='learning_rate').axes
    assert legend(axis) == ['learning rate 0.001', 'learning rate 0.01']
    assert len(artists(axis, 'lane 0.01 0')) == 2  # One for each N.


def test_tuning_names_what_it_draws():
    rows = pd.DataFrame([
        {'model': 'ffn', 'seq_len': n, 'learning_rate': rate, 'outcome': outcome, 'num_samples': 900,
         'samples_to_threshold': 500 if outcome == 'reached' else np.nan, 'threshold': 0.7}
        for n, first, second in ((4, 'reached', 'reached'), (8, 'reached', 'censored'), (16, 'censored', 'censored'),
                                 (32, 'diverged', 'diverged'))
        for rate, outcome in ((1e-3, first), (1e-2, second))
    ])  # fmt: skip
    rows = rows.assign(is_chosen=rows['learning_rate'].eq(1e-2) & rows['seq_len'].lt(16))
    figure = plots.tuning(rows)
    [axis] = figure.axes
    assert legend(axis) == ['N = 4', 'N = 8', 'N = 16']
    assert [line.get_gid() for line in axis.lines if 'slowest' in line.get_gid()] == ['slowest N = 4']
    assert 'lines: the slowest' in figure.get_supxlabel()
    few = plots.tuning(rows[rows['seq_len'] == 8]).get_supxlabel()
    assert 'lines' not in few
    assert 'rings' in few
    assert 'rings' not in plots.tuning(rows[rows['seq_len'] == 16]).get_supxlabel()


def test_rings_of_a_tuning_are_at_what_was_chosen_and_names_are_ticks():
    rows = pd.DataFrame([
        {'model': 'ffn', 'seq_len': 4, 'optimizer': name, 'outcome': 'reached', 'num_samples': samples,
         'samples_to_threshold': samples, 'threshold': 0.7, 'is_chosen': name == 'sgd'}
        for name, samples in (('adamw', 500), ('sgd', 900))
    ])  # fmt: skip
    [axis] = plots.tuning(rows, 'optimizer').axes
    sizes = rows.assign(batch_size=[16, 256])
    [other] = plots.tuning(pd.concat([sizes, sizes.assign(batch_size=64)], ignore_index=True), 'batch_size').axes
    assert [label.get_text() for label in other.get_xticklabels(which='both')] == ['16', '64', '256']
    assert [label.get_text() for label in axis.get_xticklabels()] == ['adamw', 'sgd']
    [ring] = artists(axis, 'chosen N = 4')
    assert (ring.get_xdata()[0], ring.get_ydata()[0]) == (1, 900)
