"""One prompt: its tokens, where each position points and looks, its labels and what was answered."""

from collections.abc import Sequence

import matplotlib
import numpy as np
from matplotlib import patches
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from qstr_jax.plots.style import STYLE, frame


def prompt(
    x_NxD: ArrayLike,
    t_NxQ: ArrayLike,
    y_N: ArrayLike,
    title: str = '',
    *,
    rows: Sequence[str] = (),
    positions: Sequence[str] = (),
    weights_HxNxN: ArrayLike | None = None,
    answers: ArrayLike | None = None,
    classes: Sequence[str] = (),
) -> Figure:
    """Tokens as columns of colour, an arc from every position i to each token t_ij, and labels as bars or names.

    Args:
        x_NxD: tokens, (N, d).
        t_NxQ: 0-based indices, (N, q).
        y_N: labels, (N,): numbers, or integers where they are classes.
        title: above the figure.
        rows: names of the d coordinates of a token.
        positions: names of the positions, such as the words of a sentence.
        weights_HxNxN: attention weights, (H, N, N): column i of their panel is where position i looks, the mean of the
            heads, and a ring is its t_ij.
        answers: what a model says, (N,), beside the labels: numbers, or classes.
        classes: names of the classes.

    Raises:
        ValueError: shapes that do not belong together.
    """
    x_NxD, t_NxQ, y_N = (np.asarray(array) for array in (x_NxD, t_NxQ, y_N))
    if not len(x_NxD) == len(t_NxQ) == len(y_N):
        raise ValueError(f'x {x_NxD.shape}, t {t_NxQ.shape}, y {y_N.shape}: they must agree in N')
    seq_len, looks = len(x_NxD), weights_HxNxN is not None
    heights = (1.4, max(1.6, 0.18 * len(rows)), *([1.6] if looks else []), 1)
    with matplotlib.rc_context(STYLE):
        figure, (first,) = frame(1, title, ())
        first.remove()
        figure.set_size_inches(max(3.4, 0.5 * seq_len + 1.2 + 0.6 * bool(rows)), 0.9 * sum(heights))
        arcs, tokens, *attention, labels = figure.subplots(len(heights), 1, sharex=True, height_ratios=heights)
        _draw_arcs(arcs, t_NxQ)
        _draw_tokens(tokens, x_NxD, rows)
        if attention:
            _draw_attention(attention[0], np.mean(np.asarray(weights_HxNxN), axis=0), t_NxQ)
        draw_labels = _draw_classes if np.issubdtype(y_N.dtype, np.integer) else _draw_numbers
        draw_labels(labels, y_N, None if answers is None else np.asarray(answers), classes)
        labels.set(xlabel='' if positions else 'position i')
        labels.set_xticks(range(seq_len), positions or range(seq_len), rotation=45 if positions else 0)
    return figure


def _draw_tokens(axis: Axes, x_NxD: np.ndarray, rows: Sequence[str]) -> None:
    limit = float(np.abs(x_NxD).max())
    axis.imshow(x_NxD.T, cmap='RdBu', vmin=-limit, vmax=limit, aspect='auto')
    axis.set(ylabel='token $x_i$')
    axis.set_yticks(range(len(rows)), rows)
    axis.grid(False)


def _draw_attention(axis: Axes, weights_NxN: np.ndarray, t_NxQ: np.ndarray) -> None:
    """Column i: where position i looks."""
    axis.imshow(weights_NxN.T, cmap='Greys', vmin=0, vmax=1, aspect='auto')
    for number, t_N in enumerate(t_NxQ.T):
        axis.plot(range(len(t_N)), t_N, 'o', markerfacecolor='none', color=f'C{number}', gid=f'asked {number}')
    axis.set(ylabel='looks at $x_j$', yticks=range(len(t_NxQ)))
    axis.grid(False)


def _draw_numbers(axis: Axes, y_N: np.ndarray, answers: np.ndarray | None, classes: Sequence[str]) -> None:
    axis.bar(range(len(y_N)), y_N, color='0.4' if answers is None else '0.75', width=0.6, label='label')
    axis.axhline(0, color='0.2', linewidth=0.6)
    axis.set(ylabel='label $y_i$')
    if answers is not None:
        axis.plot(range(len(y_N)), answers, 'D', color='C0', markersize=4, label='answer', gid='answers')
        axis.margins(y=0.15)
        axis.legend(ncols=2)


def _draw_classes(axis: Axes, y_N: np.ndarray, answers: np.ndarray | None, classes: Sequence[str]) -> None:
    """The label's name, and below it what was answered, in red where that is wrong."""
    said = y_N if answers is None else np.append(y_N, answers)
    names = classes or [str(number) for number in range(said.max() + 1)]
    lines = {'label': y_N} if answers is None else {'label': y_N, 'answer': answers}
    for line, (what, said_N) in enumerate(lines.items()):
        for i, one in enumerate(said_N):
            colour = '0.2' if one == y_N[i] else '#D55E00'
            axis.text(i, -line, names[one], ha='center', va='center', fontsize='small', color=colour, gid=what)
    axis.set(ylim=(-len(lines) + 0.5, 0.5))
    axis.set_yticks(range(0, -len(lines), -1), lines)
    axis.grid(False)


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
