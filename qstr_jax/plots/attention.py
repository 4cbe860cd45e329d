"""Matrices of attention: W_QK with its blocks (the paper's Figure 2), and the attention weights of one prompt."""

import itertools
from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib import colors, patches, ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from qstr_jax.plots.labels import display
from qstr_jax.plots.style import HEIGHT, STYLE, frame, grid

_FRAME = '#D55E00'


def query_key_matrices(
    panels: Sequence[tuple[str, ArrayLike, int]],
    task: Any,
    *,
    title: str = '',
    notes: Sequence[str] = (),
    gamma: float = 1.0,
    columns: int = 4,
) -> Figure:
    """|W_QK| per panel, rows the query's coordinates, columns the key's, blocks marked as in Figure 2.

    Lines separate x, ω and ω_{t_1}, …, ω_{t_q}; a frame marks the block (ω_{t_l}, ω) where Lemma 11 puts α I.

    Args:
        panels: (title, matrix (D_e, D_e), l) each; l is the 0-based index whose block is framed, negative for none.
        task: with token_dim, encoding_dim and sparsity, such as `tasks.Task`.
        title: above the figure.
        notes: small, under the figure.
        gamma: colour is (|w|/max |w|)^γ; the paper's 2 hides small entries, 1 shows them.
        columns: panels in a row.

    Raises:
        ValueError: no panels, or a matrix of another size than the task's D_e.
    """
    if not panels:
        raise ValueError('panels: give at least one matrix')
    width = task.token_dim + (task.sparsity + 1) * task.encoding_dim
    with matplotlib.rc_context(STYLE):
        figure, axes = _grid(len(panels), columns, title, notes)
        for axis, (name, given, index) in zip(axes, panels, strict=True):
            matrix = np.abs(np.asarray(given, float))
            if matrix.shape != (width, width):
                raise ValueError(f'{name}: shape {matrix.shape}, the task has D_e = {width}')
            _draw_matrix(axis, matrix, gamma, figure)
            _draw_blocks(axis, task, index)
            axis.set_title(display(name))
    return figure


def attention_weights(
    weights_HxNxN: ArrayLike, t_NxQ: ArrayLike | None = None, *, title: str = '', notes: Sequence[str] = ()
) -> Figure:
    """Softmax weights of one prompt, a panel per head: row i shows where position i looks, and a ring its t_i.

    Args:
        weights_HxNxN: the weights, (H, N, N).
        t_NxQ: 0-based indices, (N, q), drawn as rings; None for none.
        title: above the figure.
        notes: small, under the figure.
    """
    weights_HxNxN = np.asarray(weights_HxNxN, float)
    with matplotlib.rc_context(STYLE):
        figure, axes = _grid(len(weights_HxNxN), 4, title, notes)
        for head, (axis, weights_NxN) in enumerate(zip(axes, weights_HxNxN, strict=True)):
            image = axis.imshow(weights_NxN, cmap='Greys', vmin=0, vmax=1)
            for index, t_N in enumerate(() if t_NxQ is None else np.asarray(t_NxQ).T):
                look: dict[str, Any] = {'color': f'C{index}', 'markerfacecolor': 'none', 'markersize': 5}
                axis.plot(t_N, range(len(t_N)), 'o', gid=f'indices {head} {index}', **look)
            axis.set(xlabel='looks at token j', ylabel='position i', title=f'head {head + 1}')
            axis.grid(False)
        figure.colorbar(image, ax=axes, shrink=0.7)
    return figure


def _grid(count: int, columns: int, title: str, notes: Sequence[str]) -> tuple[Figure, list[Axes]]:
    """Square panels in rows of at most `columns`."""
    figure, _ = frame(1, title, notes)
    lines = -(-count // columns)
    figure.set_size_inches(max(2.6 * min(count, columns), 3.4), 2.5 * lines + figure.get_figheight() - HEIGHT)
    return figure, grid(figure, count, columns)


def _draw_matrix(axis: Axes, matrix: np.ndarray, gamma: float, figure: Figure) -> None:
    norm = colors.PowerNorm(gamma, vmin=0, vmax=max(matrix.max(), 1e-12))
    image = axis.imshow(matrix, cmap='Greys', norm=norm, interpolation='nearest')
    # Few ticks: a power of the entries crowds the small ones.
    figure.colorbar(image, ax=axis, shrink=0.7, ticks=ticker.MaxNLocator(5, steps=(1, 2, 5, 10)))
    axis.grid(False)


def _draw_blocks(axis: Axes, task: Any, index: int) -> None:
    """Lines between the parts of an embedded token, their names as ticks, and the framed block."""
    d, d_e, q = task.token_dim, task.encoding_dim, task.sparsity
    edges = [0, d, *(d + (part + 1) * d_e for part in range(q + 1))]
    asked = [r'$\omega_t$'] if q == 1 else [rf'$\omega_{{t_{part + 1}}}$' for part in range(q)]
    names = ['$x$', r'$\omega_i$', *asked]
    centres = [(a + b - 1) / 2 for a, b in itertools.pairwise(edges)]
    for edge in edges[1:-1]:
        axis.axhline(edge - 0.5, color='0.6', linewidth=0.5)
        axis.axvline(edge - 0.5, color='0.6', linewidth=0.5)
    axis.set_xticks(centres, names)
    axis.set_yticks(centres, names)
    axis.tick_params(length=0)
    axis.set(xlabel='key', ylabel='query')
    if index >= 0:
        corner = (d - 0.5, d + (index + 1) * d_e - 0.5)
        block = patches.Rectangle(corner, d_e, d_e, fill=False, edgecolor=_FRAME, linewidth=1.5, gid=f'block {index}')
        axis.add_patch(block)
