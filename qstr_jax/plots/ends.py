"""Words beside marks: a name and a value at the end of each line, placed so that they cover neither marks nor words."""

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.transforms import Bbox, ScaledTranslation

# Height of a line of small type, as a share of the panel's height.
_LINE = 0.068
# Words whose marks are nearer to each other than this share of the panel's width have a line to their mark.
_NEAR = 0.12
# Points further left than this have their words beside them.
_FIRST_END = 0.75
_HALF, _CROWD = 0.5, 3
# Points nearer to a tick than this count as standing at it, since curves are shifted a little sideways.
_SAME = 0.04
# What a point of print between words and their mark costs, in covered marks.
_FAR = 0.1
# In points: the gap from a mark to its words, across and up, and the margin that stays free around words.
_GAP, _EDGE = np.array([6.0, 4.0]), 4.0
# Lines up to this height in the stack lie behind a figure, and words may stand on them.
_BEHIND = 0.5
# Directions from a mark to its words, in halves of the size of the words; the first free one is taken.
_UP = (1.0, -1.0, 1.7, -1.7, 2.5, -2.5, 3.5, -3.5, 4.5, -4.5)
_ABOVE = ((0.0, 1.0), (0.0, -1.0), (1.0, 0.0), (-1.0, 0.0), *itertools.product((0.0, 1.0, -1.0, 2.0, -2.0), _UP))
_RIGHT = ((1.0, 0.0), (-1.0, 0.0), *itertools.product((1.0, 0.0, -0.25, -0.5, -1.0), _UP))


class Words(NamedTuple):
    """Words at a point."""

    x: float
    y: float
    text: str  # one or more lines
    colour: Any
    gid: str


def at_ends(axis: Axes, words: Sequence[Words]) -> None:
    """Writes words at the heights of their points beside a panel, with a thin grey line from those that are not near.

    The axes must have their limits and scales.
    """
    at = [tuple((axis.transScale + axis.transLimits).transform((one.x, one.y))) for one in words]
    heights = _apart([y for _, y in at], [_LINE * (one.text.count('\n') + 1) for one in words])
    for one, (x, y), height in zip(words, at, heights, strict=True):
        _write(axis, one, (1.0, height), 'left', 6)
        if abs(height - y) > _LINE / 2 or x < 1 - _NEAR:
            # Grey, and behind all: it is not data, and does not go on where a curve ends.
            look: dict[str, Any] = {'color': '0.8', 'linewidth': 0.5, 'linestyle': (0, (2, 3)), 'zorder': _BEHIND}
            axis.add_line(Line2D([x, 1.01], [y, height], transform=axis.transAxes, clip_on=False, gid='leader', **look))


def is_early(axis: Axes, words: Words, others: Sequence[Words], num_marked: int = 0) -> bool:
    """Whether a point is far from a panel's side, or a tick stands between: a line from it would look like data.

    In the right half names stand beside the panel where three lines or more end together, or three marks or more have
    words: there is no room at the points.
    """
    to_shares = axis.transScale + axis.transLimits
    x, *all_x = (to_shares.transform((one.x, one.y))[0] for one in (words, *others))
    if x > _HALF and max(num_marked, sum(abs(other - x) < _SAME for other in all_x)) >= _CROWD:
        return False
    ticks = [to_shares.transform((tick, words.y))[0] for tick in axis.get_xticks()]
    return x < _FIRST_END or any(x + _SAME < tick < 1 for tick in ticks)


def settle(axis: Axes) -> None:
    """Gives the panels of a figure the places at which they will be drawn."""
    if (figure := axis.get_figure(root=True)) is not None:
        figure.draw_without_rendering()


def at_points(axis: Axes, words: Sequence[Words], *, above: bool) -> None:
    """Writes words above or below their points, or to the right of them, where they cover least.

    The panels must be settled.
    """
    for one in sorted(words, key=lambda one: one.y, reverse=above):
        texts = _write(axis, one, (0.5, 0.5), 'center')
        room = _size(texts[0]) / 2 + _GAP * _point(axis)
        mark = axis.transData.transform((one.x, one.y))
        place(axis, texts, mark + room * np.array(_ABOVE if above else _RIGHT), mark)


def along(axis: Axes, ends: Sequence[tuple[float, float]], text: Text) -> None:
    """Moves a text to a rising straight line, from its upper end on to where it covers least."""
    start, end = axis.transData.transform(ends)
    shares = np.repeat(np.linspace(0.97, 0.2, 15), 2)[:, None]
    # Alternately above the line and left of the point, and below the line and right of the point.
    sides = np.tile([(-1, 1), (1, -1)], (15, 1)) * (_size(text) / 2 + _point(axis))
    place(axis, [text], start + shares * (end - start) + sides)


def place(axis: Axes, texts: Sequence[Text], centres: np.ndarray, mark: np.ndarray | None = None) -> None:
    """Moves the copies of a text to the centre, in pixels, where it covers least; the first one wins a tie.

    Words of a mark stand near it, and avoid places that have other lines between them and the mark.
    """
    half, others = _size(texts[0]) / 2, [text for text in axis.texts if text not in texts]
    edge = half + 1.01 * _EDGE * _point(axis)
    centres = np.clip(centres, axis.bbox.min + edge, axis.bbox.max - edge) if mark is not None else centres
    words, marks = [text.get_window_extent() for text in others], _marks(axis)

    def covered(centre: np.ndarray) -> float:
        own = Bbox([centre - half, centre + half])
        box = own.padded(_EDGE * _point(axis))  # Marks and edges need more room than other words.
        is_inside = axis.bbox.count_contains(box.corners()) == 4
        num_covered = sum(map(own.padded(_point(axis) / 2).overlaps, words))
        cost = 1000 * num_covered + 300 * (not is_inside) + box.count_contains(marks)
        if mark is None:
            return cost
        far = np.hypot(*(centre - mark)) / _point(axis)
        return cost + 20 * _between(mark, centre, marks, _EDGE * _point(axis)) + _FAR * far

    x, y = axis.transAxes.inverted().transform(min(centres, key=covered))
    for text in texts:
        text.set_position((x, y))


def _between(start: np.ndarray, end: np.ndarray, marks: np.ndarray, near: float) -> int:
    """How many places on the way from one point to another are near a mark, not counting marks at the start."""
    way = start + np.linspace(0, 1, 12)[:, None] * (end - start)
    others = marks[np.hypot(*(marks - start).T) > 4 * near]
    return int((np.hypot(*(way[:, None] - others[None]).transpose(2, 0, 1)) < near).any(axis=1).sum())


def _point(axis: Axes) -> float:
    """A point of print in pixels."""
    return axis.figure.dpi / 72


def _size(text: Text) -> np.ndarray:
    """Width and height in pixels."""
    return np.array(text.get_window_extent().size)


def _marks(axis: Axes) -> np.ndarray:
    """Places in pixels through which lines run, (n, 2), and where their marks stand."""
    found = [np.empty((0, 2))]
    for line in axis.lines:
        if line.get_zorder() > _BEHIND:
            at = line.get_transform().transform(np.column_stack(line.get_data(orig=False)).astype(float))
            shares = np.linspace(0, 1, 20)[:, None, None]
            between = at[:-1] + shares * np.diff(at, axis=0)
            found += [at] if line.get_linestyle() == 'None' else [at, between.reshape(-1, 2)]
    marks = np.concatenate(found)
    return marks[np.isfinite(marks).all(axis=1)]


def _write(axis: Axes, words: Words, at: tuple[float, float], ha: str, shift: float = 0.0) -> list[Text]:
    """Two copies of words at a place, given in shares of the panel, and moved `shift` points to its right."""
    # The white edge is a text of its own behind all words: it would cut into the line above.
    edge = {'path_effects': [patheffects.withStroke(linewidth=2, foreground='white')], 'zorder': 2.9}
    looks: tuple[dict[str, Any], ...] = ({'color': 'white', **edge}, {'color': words.colour, 'gid': words.gid})
    beside = axis.transAxes + ScaledTranslation(shift / 72, 0, axis.figure.dpi_scale_trans)
    return [
        axis.text(
            *at, words.text, transform=beside, ha=ha, va='center', ma='left', linespacing=1.1,
            fontsize=matplotlib.rcParams['figure.labelsize'], **look,
        )
        for look in looks
    ]  # fmt: skip


def _apart(middles: Sequence[float], heights: Sequence[float]) -> list[float]:
    """The middles moved so that nothing overlaps and nothing leaves the panel at its top, in their order."""
    order = sorted(range(len(middles)), key=lambda i: middles[i])
    moved = list(middles)
    for before, after in itertools.pairwise(order):
        moved[after] = max(moved[after], moved[before] + (heights[before] + heights[after]) / 2)
    for i in order[-1:]:
        moved[i] = min(moved[i], 1.0)
    for after, before in itertools.pairwise(reversed(order)):
        moved[before] = min(moved[before], moved[after] - (heights[before] + heights[after]) / 2)
    return moved
