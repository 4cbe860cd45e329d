"""Words at the ends of lines never overlap."""

import itertools

import matplotlib.pyplot as plt
import numpy as np
import pytest

from qstr_jax.plots import ends
from qstr_jax.plots.style import STYLE


@pytest.mark.parametrize('seed', range(20))
def test_words_of_any_heights_move_apart_and_stay_below_the_top(seed):
    rng = np.random.default_rng(seed)
    middles = rng.uniform(0.6, 1.2, size=6)
    heights = rng.choice([0.07, 0.14, 0.21], size=6)
    moved = ends._apart(middles, heights)
    order = np.argsort(middles)
    for below, above in itertools.pairwise(order):
        assert moved[above] - moved[below] >= (heights[above] + heights[below]) / 2 - 1e-9
    assert max(moved) <= 1.0


def test_words_that_have_room_stay_where_they_are():
    assert ends._apart([0.2, 0.8, 0.5], [0.1, 0.1, 0.1]) == [0.2, 0.8, 0.5]
    assert ends._apart([], []) == []


def test_the_white_edge_of_a_line_cuts_no_words():
    with plt.rc_context(STYLE):
        figure, axis = plt.subplots(figsize=(4, 2))
        axis.set_axis_off()
        two = 'Transformer gjp\n$N^{1.17}$ [1.02, 1.33]'
        ends.at_ends(axis, [ends.Words(1.0, y, two, 'tab:blue', '') for y in (0.4, 0.45, 0.5)])

        def drawn():
            figure.canvas.draw()
            return np.asarray(figure.canvas.buffer_rgba()).copy()

        with_edges = drawn()
        for text in axis.texts:
            text.set_path_effects([])
        np.testing.assert_array_equal(with_edges, drawn())
        assert (with_edges < 255).any()
        plt.close(figure)


def test_words_beside_lines_that_end_early_do_not_cover_each_other():
    with plt.rc_context(STYLE):
        figure, axis = plt.subplots(figsize=(5, 3))
        two = 'RNN\n$N^{2.93}$ [2.78, 3.07]'
        ends.settle(axis)
        ends.at_points(axis, [ends.Words(x, 0.6, two, 'tab:blue', f'{x}') for x in (0.2, 0.35, 0.5)], above=False)
        figure.canvas.draw()
        boxes = [text.get_window_extent() for text in axis.texts if text.get_gid()]
        assert len(boxes) == 3
        assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))
        plt.close(figure)


def boxes(axis, gid):
    """What the words of a gid cover, in pixels."""
    axis.figure.canvas.draw()
    return [text.get_window_extent() for text in axis.texts if text.get_gid() == gid]


def test_the_line_from_a_point_to_its_words_is_no_datum():
    with plt.rc_context(STYLE):
        figure, axis = plt.subplots(figsize=(4, 2))
        ends.at_ends(axis, [ends.Words(0.6, 0.4, 'one', 'tab:blue', 'end'), ends.Words(1.0, 0.9, 'two', 'C1', 'end')])
        [leader] = [line for line in axis.lines if line.get_gid() == 'leader']
        assert leader.get_color() == '0.8'
        assert leader.get_linewidth() < STYLE['lines.linewidth']
        assert leader.get_zorder() < min(line.get_zorder() for line in axis.plot([0, 1], [0, 1]))
        plt.close(figure)


@pytest.mark.parametrize('above', [True, False])
def test_words_at_one_point_cover_neither_each_other_nor_marks_and_stay_in_the_panel(above):
    with plt.rc_context(STYLE):
        figure, axis = plt.subplots(figsize=(4, 2))
        axis.set(xlim=(0, 1), ylim=(0, 1))
        marks = np.array([(0.02, 0.5), (0.03, 0.52), (0.1, 0.5), (0.02, 0.6)])
        axis.plot(*marks.T, '.')
        ends.settle(axis)
        ends.at_points(axis, [ends.Words(0.02, y, '1 of 3', 'C0', 'learn') for y in (0.5, 0.51, 0.52)], above=above)
        found = boxes(axis, 'learn')
        assert len(found) == 3
        assert not any(one.overlaps(other) for one, other in itertools.combinations(found, 2))
        assert not any(box.count_contains(axis.transData.transform(marks)) for box in found)
        assert all(axis.bbox.count_contains(box.corners()) == 4 for box in found)
        plt.close(figure)


def test_many_words_at_one_point_near_the_top_do_not_cover_each_other():
    with plt.rc_context(STYLE):
        figure, axis = plt.subplots(figsize=(4, 2))
        axis.set(xlim=(0, 1), ylim=(0, 1))
        axis.plot([0.6, 0.61], [0.8, 0.8], 'o')
        ends.settle(axis)
        ends.at_points(axis, [ends.Words(0.6, 0.8, f'{k} of 8', 'C0', 'learn') for k in range(8)], above=True)
        assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes(axis, 'learn'), 2))
        plt.close(figure)


def test_the_name_of_a_line_stands_at_its_upper_end_and_on_no_curve():
    with plt.rc_context(STYLE):
        figure, axis = plt.subplots(figsize=(4, 2))
        axis.set(xlim=(0, 1), ylim=(0, 1))
        curve = np.column_stack([np.linspace(0, 1, 200), np.full(200, 0.95)])
        axis.plot(*curve.T)
        text = axis.text(0, 0, 'slope', transform=axis.transAxes, ha='center', va='center', gid='slope')
        ends.settle(axis)
        ends.along(axis, [(0.0, 0.0), (1.0, 1.0)], text)
        [box] = boxes(axis, 'slope')
        assert not box.count_contains(axis.transData.transform(curve))
        assert min(text.get_position()) > 0.7
        plt.close(figure)
