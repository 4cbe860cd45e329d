"""What the figures show: every lane, bound and word is an artist that can be found again."""

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib import colors

from qstr_jax import analysis, plots
from qstr_jax.plots import style


def make_rows(model='transformer', exponent=0.6, budget=10**6, num_lanes=3, lengths=(2, 4, 8), task='qstr'):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        [
            {
                'model': model,
                'task': task,
                'seq_len': length,
                'sparsity': 1,
                'seed': seed,
                'threshold': 0.7,
                'learner': 'online',
                'max_samples': budget,
                'outcome': 'reached',
                'samples_to_threshold': int(4000 * length**exponent * np.exp(0.1 * rng.normal())),
            }
            for length in lengths
            for seed in range(num_lanes)
        ]
    )
    rows['samples_to_threshold'] = rows['samples_to_threshold'].astype('Int64')
    late = rows['samples_to_threshold'] >= budget
    rows.loc[late, ['outcome', 'samples_to_threshold']] = ['censored', pd.NA]
    return rows


def make_curves():
    samples = np.arange(1, 6) * 640
    return pd.concat(
        [
            pd.DataFrame(
                {
                    'model': model,
                    'seq_len': length,
                    'seed': seed,
                    'samples': samples,
                    'train_loss': 1.0,
                    'test_loss': [1.0, np.nan, 0.9, 0.8, 0.6],
                }
            )
            for model in ('ffn', 'transformer')
            for length in (4, 8)
            for seed in (0, 1)
        ]
    )


def artists(axis, gid):
    return [artist for artist in axis.get_children() if artist.get_gid() == gid]


def points(axis, gid):
    [artist] = artists(axis, gid)
    return np.column_stack(artist.get_data(orig=False)).astype(float)


def labels(axis):
    return [text.get_text() for text in axis.get_legend().get_texts()]


def test_every_lane_mean_and_interval_is_there():
    rows = pd.concat([make_rows(), make_rows('rnn', 1.1)])
    figure = plots.samples_against_length(rows)
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
    assert axis.get_ylim()[0] == 0
    assert axis.get_xlim()[0] == 0
    assert axis.get_ylim()[1] > rows['samples_to_threshold'].max()


def test_legend_has_the_exponents_of_analysis():
    rows = make_rows()
    fit = analysis.exponent(rows)
    [label] = labels(plots.samples_against_length(rows).axes[0])
    assert label == f'Transformer  $N^{{{fit.value:.2f}}}$ [{fit.low:.2f}, {fit.high:.2f}], 3 lanes'
    [label] = labels(plots.samples_against_length(rows.drop(rows.index[0])).axes[0])
    assert label.endswith(', 2–3 lanes')


def test_legend_says_why_there_is_no_exponent():
    [label] = labels(plots.samples_against_length(make_rows(lengths=(2, 4))).axes[0])
    assert label == 'Transformer  (only 2 N, 3 needed), 3 lanes'
    [label] = labels(plots.samples_against_length(make_rows(num_lanes=1)).axes[0])
    assert label.endswith('}$, 1 lane')  # A value, and no interval.


def test_censored_lanes_stand_at_their_budget_and_the_mean_is_open():
    rows = make_rows(exponent=1.0, budget=31_000)
    assert (rows['outcome'] == 'censored').sum() == 2  # Two lanes of three at N = 8.
    [axis] = plots.samples_against_length(rows).axes
    assert set(points(axis, 'censored transformer')[:, 1]) == {31_000}
    [triangles] = artists(axis, 'censored transformer')
    assert triangles.get_marker() == '^'
    assert triangles.get_fillstyle() == 'none'
    [bound] = artists(axis, 'bound transformer')
    assert colors.same_color(bound.get_markerfacecolor(), 'white')
    assert [text.get_text() for text in axis.texts] == ['≥']
    assert np.isnan(points(axis, 'mean transformer')[-1, 1])
    assert 'not reached within 31k' in labels(axis)


def test_all_censored():
    rows = pd.concat([make_rows(budget=640), make_rows('ffn', budget=640)])
    [axis] = plots.samples_against_length(rows).axes
    assert len(points(axis, 'censored ffn')) == 9
    assert labels(axis) == [
        'Transformer  (threshold not reached), 3 lanes',
        'FFN  (threshold not reached), 3 lanes',
        'not reached within 640',
    ]
    assert axis.get_ylim()[1] > 640


def test_a_budget_far_above_the_data_does_not_flatten_it():
    rows = pd.concat([make_rows(), make_rows('ffn').assign(outcome='censored')])
    [axis] = plots.samples_against_length(rows).axes
    top = axis.get_ylim()[1]
    assert top < 30_000
    assert (points(axis, 'censored ffn')[:, 1] < top).all()
    assert 'not reached within 1,000k (off scale)' in labels(axis)


def test_diverged_lanes_are_crosses_at_the_top():
    rows = make_rows()
    rows.loc[3, ['outcome', 'samples_to_threshold']] = ['diverged', pd.NA]
    [axis] = plots.samples_against_length(rows).axes
    [[_, height]] = points(axis, 'diverged transformer')
    assert 0.9 * axis.get_ylim()[1] < height < axis.get_ylim()[1]
    assert 'diverged' in labels(axis)
    figure = plots.samples_against_length(rows.assign(outcome='diverged'))
    figure.canvas.draw()
    assert len(points(figure.axes[0], 'diverged transformer')) == 9


def test_reference_has_one_legend_entry_and_one_panel():
    reference = {'transformer': {8: 17_000}, 'rnn': {8: 74_000}}
    [axis] = plots.samples_against_length(make_rows(), reference=reference).axes
    assert points(axis, 'reference rnn').tolist() == [[8, 74_000]]
    assert artists(axis, 'reference transformer')[0].get_fillstyle() == 'none'
    assert labels(axis).count('published') == 1
    assert axis.get_ylim()[1] > 74_000
    with pytest.raises(ValueError, match='one panel'):
        plots.samples_against_length(pd.concat([make_rows(), make_rows(task='simple_qstr')]), reference=reference)


def test_a_panel_per_task_and_an_axis_of_q():
    figure = plots.samples_against_length(pd.concat([make_rows(), make_rows(task='simple_qstr')]))
    assert [axis.get_legend().get_title().get_text() for axis in figure.axes] == ['qSTR', 'simple-qSTR']
    rows = pd.concat([make_rows(lengths=(7,)).assign(sparsity=q) for q in (1, 2, 3)])
    [axis] = plots.samples_against_length(rows, x='sparsity').axes
    assert axis.get_xlabel().endswith('q')
    assert '$q^' in labels(axis)[0]


def test_words_are_printed_as_they_are():
    rows = make_rows('_my$model$')
    figure = plots.samples_against_length(rows, title='cost: $5', notes=('1,000 test prompts', 'b'))
    figure.canvas.draw()
    assert labels(figure.axes[0])[0].startswith(r' _my\$model\$')  # A leading '_' hides a label.
    assert figure.get_suptitle() == r'cost: \$5'
    assert figure.get_supxlabel().replace('\n', ' ') == (
        '1,000 test prompts; b; dots: lanes; lines: their means; bands: 95 % bootstrap intervals'
    )
    assert figure.axes[0].get_ylabel() == 'samples to test MSE < 0.7'
    assert [text.get_text() for text in figure.axes[0].get_xticklabels()] == ['2', '4', '8']
    assert figure.axes[0].get_yticklabels()[-1].get_text().endswith('k')


def test_a_long_title_stays_inside_the_figure():
    title = '1STR, N = 64, d = 10: a Transformer below the floor of feedforward networks'
    figure = plots.samples_against_length(make_rows('transformer'), title=title)
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
    figure = plots.curves(make_curves(), threshold=0.7, title='losses')
    assert [axis.get_legend().get_title().get_text() for axis in figure.axes] == ['Transformer', 'FFN']
    for axis in figure.axes:
        for length in (4, 8):
            for seed in (0, 1):
                lane = points(axis, f'lane {length} {seed}')
                np.testing.assert_array_equal(lane[:, 1], [1.0, 0.9, 0.8, 0.6])
        assert artists(axis, 'threshold')[0].get_ydata()[0] == 0.7
        assert labels(axis) == ['N = 4', 'N = 8', 'threshold 0.7']
    shades = {artists(figure.axes[0], f'lane {length} 0')[0].get_color().tobytes() for length in (4, 8)}
    assert len(shades) == 2


def test_curves_of_nothing():
    with pytest.raises(ValueError, match='lack the columns: seed, test_loss'):
        plots.curves(make_curves().drop(columns=['seed', 'test_loss']))
    with pytest.raises(ValueError, match='no rows'):
        plots.curves(make_curves().iloc[:0])
    plots.curves(make_curves().assign(test_loss=np.nan), threshold=0.7).canvas.draw()


def test_low_losses_get_a_logarithmic_axis_on_every_panel():
    curves = make_curves()
    curves.loc[curves['model'] == 'ffn', 'test_loss'] *= 0.01
    assert [axis.get_yscale() for axis in plots.curves(curves).axes] == ['log', 'log']
    assert plots.curves(make_curves()).axes[0].get_yscale() == 'linear'


def test_save_writes_both_files_and_leaves_nothing_else(tmp_path):
    target = tmp_path / 'new' / 'threshold_0.7'
    pdf, png = plots.save(plots.samples_against_length(make_rows()), target)
    assert (pdf.name, png.name) == ('threshold_0.7.pdf', 'threshold_0.7.png')
    assert sorted(target.parent.iterdir()) == [pdf, png]
    assert pdf.read_bytes().startswith(b'%PDF')
    assert b'/Type3' not in pdf.read_bytes()
    assert png.read_bytes().startswith(b'\x89PNG')
    assert b'CreationDate' not in pdf.read_bytes()
    first, inode = (pdf.read_bytes(), png.read_bytes()), pdf.stat().st_ino
    plots.save(plots.samples_against_length(make_rows()), str(target))
    assert (pdf.read_bytes(), png.read_bytes()) == first
    assert pdf.stat().st_ino != inode  # Replaced, not written over.


def test_a_failed_save_keeps_the_old_file(tmp_path, monkeypatch):
    figure = plots.samples_against_length(make_rows())
    pdf, _ = plots.save(figure, tmp_path / 'figure')
    before = pdf.read_bytes()

    def fail(temporary, **_):
        temporary.write_text('half')
        raise OSError('disk full')

    monkeypatch.setattr(figure, 'savefig', fail)
    with pytest.raises(OSError, match='disk full'):
        plots.save(figure, tmp_path / 'figure')
    assert pdf.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 2


def test_drawing_touches_no_global_state():
    before = dict(matplotlib.rcParams)
    plots.samples_against_length(make_rows())
    plots.curves(make_curves())
    assert dict(matplotlib.rcParams) == before
