"""One prompt: its tokens, where each position points, and its labels."""

import matplotlib
import numpy as np
from matplotlib import patches
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from qstr_jax.plots.style import STYLE, frame


def prompt(x_NxD: ArrayLike, t_NxQ: ArrayLike, y_N: ArrayLike, title: str = '') -> Figure:
    """Tokens as columns of colour, an arc from every position i to each token t_ij, and the labels as bars.

    Args:
        x_NxD: tokens, (N, d).
        t_NxQ: 0-based indices, (N, q).
        y_N: labels, (N,).
        title: above the figure.

    Raises:
        ValueError: shapes that do not belong together.
    """
    x_NxD, t_NxQ, y_N = (np.asarray(array) for array in (x_NxD, t_NxQ, y_N))
    if not len(x_NxD) == len(t_NxQ) == len(y_N):
        raise ValueError(f'x {x_NxD.shape}, t {t_NxQ.shape}, y {y_N.shape}: they must agree in N')
    seq_len, limit = len(x_NxD), float(np.abs(x_NxD).max())
    with matplotlib.rc_context(STYLE):
        figure, (first,) = frame(1, title, ())
        first.remove()
        figure.set_size_inches(max(3.4, 0.5 * seq_len + 1.2), 3.6)
        arcs, tokens, labels = figure.subplots(3, 1, sharex=True, height_ratios=(1.4, 1.6, 1))
        _draw_arcs(arcs, t_NxQ)
        tokens.imshow(x_NxD.T, cmap='RdBu', vmin=-limit, vmax=limit, aspect='auto')
        tokens.set(ylabel='token $x_i$', yticks=[])
        tokens.grid(False)
        labels.bar(range(seq_len), y_N, color='0.4', width=0.6)
        labels.axhline(0, color='0.2', linewidth=0.6)
        labels.set(ylabel='label $y_i$', xlabel='position i', xticks=range(seq_len))
    return figure


def _draw_arcs(axis: Axes, t_NxQ: np.ndarray) -> None:
    """Arrows above the tokens: from i to t_i1, t_i2, …, one colour for each of the q."""
    seq_len = len(t_NxQ)
    for position, row in enumerate(t_NxQ):
        for number, target in enumerate(row):
            if target == position:
                axis.plot(position, 0.1, 'o', color=f'C{number}', markersize=4, gid=f'arc {position} {number}')
                continue
            axis.add_patch(patches.FancyArrowPatch(
                (position, 0), (target, 0), connectionstyle=f'arc3,rad={-0.45 if target > position else 0.45}',
                arrowstyle='-|>', mutation_scale=8, color=f'C{number}', linewidth=0.9, gid=f'arc {position} {number}',
            ))  # fmt: skip
    axis.set(ylim=(0, 0.35 * seq_len), xlim=(-0.6, seq_len - 0.4), yticks=[], ylabel='asks for $t_i$')
    axis.grid(False)
    axis.spines[['left', 'bottom']].set_visible(False)
