"""Words beside marks: a name and a value at the end of each line, moved apart where they would overlap."""

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import matplotlib
from matplotlib import patheffects
from matplotlib.axes import Axes

# Of a panel's height: a line of small type.
_LINE = 0.068
# Of a panel's width: words whose marks are nearer to each other move apart.
_NEAR = 0.12
_HALF = 0.5


class Words(NamedTuple):
    """Words at a point."""

    x: float
    y: float
    text: str  # one or more lines
    colour: Any
    gid: str


def at_ends(axis: Axes, words: Sequence[Words]) -> None:
    """Writes words beside a panel at the heights of their points, with a thin line from points that are not near.

    What ends in the left half of a panel has its words where it ends. The axes must have their limits and scales.
    """
    at = _places(axis, words)
    far = [i for i, (x, _) in enumerate(at) if x > _HALF]
    near = [i for i, (x, _) in enumerate(at) if x <= _HALF]
    for group in far, near:
        heights = _apart([at[i][1] for i in group], [_height(words[i]) for i in group])
        for i, y in zip(group, heights, strict=True):
            x = 1.0 if group is far else at[i][0]
            _write(axis, words[i], (x, y), line=abs(y - at[i][1]) > _LINE / 2 or at[i][0] < x - _NEAR)


def above(axis: Axes, words: Sequence[Words]) -> None:
    """Writes words above their points; where several points are near each other, above each other."""
    at = _places(axis, words)
    for group in _groups([x for x, _ in at]):
        heights = _apart([at[i][1] + _LINE for i in group], [_height(words[i]) for i in group])
        for i, y in zip(group, heights, strict=True):
            _write(axis, words[i], (at[i][0], y), shift=0, ha='center')


def _places(axis: Axes, words: Sequence[Words]) -> list[tuple[float, float]]:
    """Where the points stand, as shares of the panel."""
    return [tuple((axis.transScale + axis.transLimits).transform((one.x, one.y))) for one in words]


def _height(words: Words) -> float:
    return _LINE * (words.text.count('\n') + 1)


def _write(
    axis: Axes, words: Words, at: tuple[float, float], *, line: bool = False, shift: float = 6, ha: str = 'left'
) -> None:
    # The white edge is a text of its own behind all words: it would cut into the line above.
    edge = {'path_effects': [patheffects.withStroke(linewidth=2, foreground='white')], 'zorder': 2.9}
    for look in ({'color': 'white', **edge}, {'color': words.colour, 'gid': words.gid}):
        axis.annotate(
            words.text, at, (shift, 0), xycoords='axes fraction', textcoords='offset points', ha=ha, va='center',
            fontsize=matplotlib.rcParams['figure.labelsize'] + 0.5, annotation_clip=False, linespacing=1.1, **look,
        )  # fmt: skip
    if line:
        axis.annotate(
            '', at, (words.x, words.y), xycoords='axes fraction', textcoords='data',
            arrowprops={'arrowstyle': '-', 'color': words.colour, 'linewidth': 0.4, 'alpha': 0.6, 'shrinkA': 0},
        )  # fmt: skip


def _groups(places: Sequence[float]) -> list[list[int]]:
    """The indices of those that are near each other."""
    groups: list[list[int]] = []
    for i in sorted(range(len(places)), key=lambda i: places[i]):
        if groups and places[i] - places[groups[-1][0]] < _NEAR:
            groups[-1].append(i)
        else:
            groups.append([i])
    return groups


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
