"""What all figures share: type sizes, looks of curves, the frame around panels, and saving.

Figures are plain `Figure` objects on an Agg canvas: no pyplot, no display, no global state. They fit a column of print
(3.4 inches), and marker and line style tell curves apart without colour.
"""

import io
import itertools
import logging
import os
import pathlib
import re
from collections.abc import Iterable, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from qstr_jax.plots.labels import display, notes_text, wrap
from qstr_jax.storage import files

STYLE: dict[Any, Any] = {
    'font.size': 8, 'axes.titlesize': 8, 'axes.labelsize': 8, 'figure.titlesize': 9, 'figure.labelsize': 7,
    'xtick.labelsize': 7, 'ytick.labelsize': 7, 'legend.fontsize': 7, 'legend.title_fontsize': 8,
    'axes.spines.top': False, 'axes.spines.right': False, 'axes.linewidth': 0.6, 'xtick.major.width': 0.6,
    'ytick.major.width': 0.6, 'axes.grid': True, 'axes.axisbelow': True, 'grid.color': '0.92', 'grid.linewidth': 0.5,
    'lines.linewidth': 1.3, 'lines.markersize': 4.5,
    'legend.frameon': False, 'legend.handlelength': 2.6, 'legend.labelspacing': 0.3,
    'pdf.fonttype': 42,  # Type 3 fonts are refused by many submission sites.
}  # fmt: skip

# Writing a PDF logs every table of every font at INFO, which absl's binaries show.
logging.getLogger('fontTools').setLevel(logging.WARNING)

WIDTH, HEIGHT = 3.4, 2.2  # Inches, of one panel without legend.
PAGE = 6.5  # Inches: panels in a row are narrower where they would not fit a page.
LETTER = 0.056  # Inches, of small type.
# Colour, marker and line style.
Look = tuple[Any, str, Any]
# Okabe and Ito's colours: told apart by colour-blind readers. Marker and line style do it in grey.
_LOOKS: dict[str, Look] = {
    'transformer': ('#0072B2', 'o', '-'),
    'rnn': ('#D55E00', 's', (0, (4, 2))),
    'ffn': ('#009E73', 'D', (0, (2.4, 1))),
}
_OTHER_LOOKS: tuple[Look, ...] = (
    ('#CC79A7', 'v', (0, (5, 1.2, 1.2, 1.2))),
    ('#56B4E9', 'P', (0, (8, 2))),
    ('#E69F00', 'p', (0, (3, 1, 1, 1, 1, 1))),
    ('#000000', 'h', (0, (1, 2.5))),
    ('0.55', 'X', (0, (6, 1.5))),
    ('#8C564B', '<', (0, (2, 1))),
    ('#7F3C8D', '>', (0, (5, 2, 1, 2))),
    ('#4B6A00', '*', (0, (1, 1))),
)
# None is a ring, which marks what was chosen.
_VALUE_MARKERS = 'svDPX^'
_METADATA: dict[str, dict | None] = {'pdf': {'CreationDate': None}, 'png': None}


def save(figure: Figure, path: str | os.PathLike) -> tuple[pathlib.Path, pathlib.Path]:
    """Writes `path`.pdf and `path`.png (200 dpi) and returns both; makes the directory.

    Each file appears whole or not at all. The same figure gives the same bytes.

    Args:
        figure: to be saved.
        path: without a suffix.

    Raises:
        files.ResultsError: the disk is full or the directory cannot be written.
    """
    path = pathlib.Path(path)
    files.make_folder(path.parent)
    # Not with_suffix, which would cut '0.7' at its point.
    written = {suffix: path.parent / f'{path.name}.{suffix}' for suffix in _METADATA}
    for suffix, target in written.items():
        content = io.BytesIO()  # since a full disk leaves a PDF's writer in pieces
        with matplotlib.rc_context(STYLE):
            figure.savefig(content, format=suffix, dpi=200, metadata=_METADATA[suffix])
        files.write_bytes(target, content.getvalue())
    return written['pdf'], written['png']


def looks(keys: Iterable[str]) -> dict[str, Look]:
    """Colour, marker and line style of each curve. The paper's models always look the same.

    Args:
        keys: of curves, such as 'rnn' or 'rnn radius=0.5'.
    """
    keys = list(dict.fromkeys(keys))
    others = [key for key in keys if key not in _LOOKS]
    return {key: _LOOKS[key] if key in _LOOKS else _other_look(others.index(key)) for key in keys}


def _other_look(index: int) -> Look:
    """One of the looks that the paper's models do not use; after the last one, other pairs of colour and marker."""
    count = len(_OTHER_LOOKS)
    colour, _, _ = _OTHER_LOOKS[index % count]
    _, marker, style = _OTHER_LOOKS[(index + index // count) % count]
    return colour, marker, style


def value_looks(values: Sequence[Any]) -> dict[Any, tuple[Any, str]]:
    """Colour and marker of each value of a setting, from dark to light."""
    colours = colormaps['viridis'](np.linspace(0, 0.88, len(values)))
    return dict(zip(values, zip(colours, itertools.cycle(_VALUE_MARKERS)), strict=True))


def frame(
    num_panels: int,
    title: str,
    notes: str | Sequence[str],
    *,
    sharex: bool = False,
    sharey: bool = False,
    key: str = '',
    beside: Iterable[str] = (),
    panel_width: float = 2.9,
) -> tuple[Figure, list[Axes]]:
    """A row of panels with a title above and notes below; one panel is as wide as a column of print."""
    lengths = [len(re.sub('[${}^]', '', line)) for text in beside for line in text.split('\n')]
    width = max(WIDTH, min(panel_width * num_panels, PAGE) * (num_panels > 1)) + num_panels * LETTER * max(
        lengths, default=0
    )
    text = wrap(notes_text(notes, key), int(19 * width))
    lines = wrap(display(title), int(15.5 * width))
    height = HEIGHT + (0.05 if lines else 0) + 0.15 * len(lines) + 0.13 * len(text)
    figure = Figure(figsize=(width, height), layout='constrained')
    FigureCanvasAgg(figure)
    if lines:
        figure.suptitle('\n'.join(lines))
    if text:
        figure.supxlabel('\n'.join(text), x=0.02, ha='left', color='0.35')
    return figure, list(figure.subplots(1, num_panels, sharex=sharex, sharey=sharey, squeeze=False)[0])


def grid(figure: Figure, count: int, most_columns: int, **shared: Any) -> list[Axes]:
    """Panels in rows of at most `most_columns`, in place of those that a figure has; spare ones are hidden."""
    for axis in figure.axes:
        axis.remove()
    columns = min(count, most_columns)
    axes = list(figure.subplots(-(-count // columns), columns, squeeze=False, **shared).ravel())
    for spare in axes[count:]:
        spare.set_visible(False)
    return axes[:count]


def legend_above(figure: Figure, axis: Axes, entries: Sequence[Any], num_columns: int = 1) -> None:
    """A legend over a panel, with height of its own."""
    axis.legend(handles=entries, loc='lower left', bbox_to_anchor=(0, 1.08), borderaxespad=0.2, ncols=num_columns)
    figure.set_figheight(figure.get_figheight() + 0.15 * -(-len(entries) // num_columns) + 0.35)


def legend_line(look: Look, label: str) -> Line2D:
    """An entry of a legend for one curve."""
    colour, marker, style = look
    return Line2D([], [], color=colour, marker=marker, linestyle=style, label=label)
