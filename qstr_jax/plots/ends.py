"""Words beside marks: a name and a value at the end of each line, moved apart where they would overlap."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import matplotlib
from matplotlib.axes import Axes

# Of a panel's height: a line of small type.
_LINE = 0.068
# Of a panel's width: words whose marks are nearer to each other move apart.
_NEAR = 0.12


class Words(NamedTuple):
    """Words at a point.

    Attributes:
        x: of the point, on the axis.
        y: of the point, on the axis.
        text: one or more lines.
        colour: of the text.
        gid: of the artist.
    """

    x: float
    y: float
    text: str
    colour: Any
    gid: str


def place(axis: Axes, words: Sequence[Words], *, above: bool = False) -> None:
    """Writes words to the right of their points, or above them. The axes must have their limits and scales.

    Args:
        axis: the panel.
        words: what to write.
        above: above their points, in the middle, instead of to the right.
    """
    at = [(axis.transScale + axis.transLimits).transform((one.x, one.y)) for one in words]
    lines = [one.text.count('\n') + 1 for one in words]
    for group in _groups([x for x, _ in at]):
        heights = [at[i][1] + 0.04 * above for i in group]
        for i, y in zip(group, _apart(heights, [_LINE * lines[i] for i in group]), strict=True):
            one = words[i]
            axis.annotate(
                one.text, (one.x, y), (0 if above else 6, 0), xycoords=('data', 'axes fraction'),
                textcoords='offset points', ha='center' if above else 'left', va='bottom' if above else 'center',
                color=one.colour, fontsize=matplotlib.rcParams['figure.labelsize'] + 0.5, annotation_clip=False,
                linespacing=1.0, gid=one.gid,
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
    for before, after in zip(order, order[1:], strict=False):
        moved[after] = max(moved[after], moved[before] + (heights[before] + heights[after]) / 2)
    top = 1.0
    for i in reversed(order):
        moved[i] = min(moved[i], top)
        top = moved[i] - heights[i]
    return moved
