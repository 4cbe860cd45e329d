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
        ends.at_ends(axis, [ends.Words(x, 0.6, two, 'tab:blue', f'{x}') for x in (0.2, 0.35, 0.5)])
        figure.canvas.draw()
        boxes = [text.get_window_extent() for text in axis.texts if text.get_gid()]
        assert len(boxes) == 3
        assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))
        plt.close(figure)
