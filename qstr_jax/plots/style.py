"""What all figures share: type sizes, looks of the models, the frame, labels, and saving.

Figures are plain `Figure` objects on an Agg canvas: no pyplot, no display, no global state. They
fit a column of print (3.4 inches), and marker and line style tell models apart without colour.
"""

import logging
import os
import pathlib
import re
import textwrap
from collections.abc import Sequence

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from qstr_jax import analysis

STYLE = {
    'font.size': 8,
    'axes.titlesize': 8,
    'axes.labelsize': 8,
    'figure.titlesize': 9,
    'xtick.labelsize': 7,
    'ytick.labelsize': 7,
    'legend.fontsize': 7,
    'figure.labelsize': 6,
    'legend.title_fontsize': 8,
    'axes.spines.top': False,
    'axes.spines.right': False,
    'axes.linewidth': 0.6,
    'xtick.major.width': 0.6,
    'ytick.major.width': 0.6,
    'axes.grid': True,
    'axes.axisbelow': True,
    'grid.color': '0.92',
    'grid.linewidth': 0.5,
    'lines.linewidth': 1.3,
    'lines.markersize': 4.5,
    'legend.frameon': False,
    'legend.handlelength': 2.6,
    'legend.labelspacing': 0.3,
    'pdf.fonttype': 42,  # Type 3 fonts are refused by many submission sites.
}

# Writing a PDF logs every table of every font at INFO, which absl's binaries show.
logging.getLogger('fontTools').setLevel(logging.WARNING)

WIDTH, HEIGHT = 3.4, 2.2  # Inches, of one panel without legend.
# Okabe and Ito's colours: told apart by colour-blind readers. Marker and line style do it in grey.
_LOOKS = {
    'transformer': ('#0072B2', 'o', '-'),
    'rnn': ('#D55E00', 's', (0, (4, 2))),
    'ffn': ('#009E73', 'D', (0, (1.5, 1.2))),
}
_OTHER_LOOKS = (
    ('#CC79A7', 'v', (0, (5, 1.2, 1.2, 1.2))),
    ('#56B4E9', 'P', (0, (8, 2))),
    ('#E69F00', 'p', (0, (3, 1, 1, 1, 1, 1))),
    ('#000000', 'h', (0, (1, 2.5))),
    ('0.55', 'X', (0, (6, 1.5))),
    ('#8C564B', '<', (0, (2, 1))),
    ('#7F3C8D', '>', (0, (5, 2, 1, 2))),
    ('#4B6A00', '*', (0, (1, 1))),
)
AXIS_NAMES = {'seq_len': 'sequence length N', 'sparsity': 'number of relevant tokens q'}


def save(figure: Figure, path: str | os.PathLike) -> tuple[pathlib.Path, pathlib.Path]:
    """Writes `path`.pdf and `path`.png (200 dpi) and returns both; makes the directory.

    Each file appears whole or not at all. The same figure gives the same bytes.
    """
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    written = []
    for suffix, metadata in (('pdf', {'CreationDate': None}), ('png', None)):
        target = path.parent / f'{path.name}.{suffix}'  # Not with_suffix: '0.7' is no suffix.
        temporary = path.parent / f'.{path.name}.{os.getpid()}.{suffix}'
        try:
            with matplotlib.rc_context(STYLE):
                figure.savefig(temporary, dpi=200, metadata=metadata)
            os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)
        written.append(target)
    return tuple(written)


def looks(models: list[str]) -> dict[str, tuple]:
    """(colour, marker, line style) per model; a user's models take what the paper's three leave."""
    others = [model for model in models if model not in _LOOKS]
    taken = {model: _OTHER_LOOKS[i % len(_OTHER_LOOKS)] for i, model in enumerate(others)}
    return {model: _LOOKS.get(model) or taken[model] for model in models}


def frame(
    num_panels: int, title: str, notes: Sequence[str], sharey: bool = False, key: str = ''
) -> tuple[Figure, list[Axes]]:
    """A row of panels, its title, and under it the notes and `key`, what lines and bands are."""
    width = WIDTH if num_panels == 1 else 2.9 * num_panels
    notes = [*([notes] if isinstance(notes, str) else notes), *([key] if key else [])]
    text = wrap(display('; '.join(notes)), int(22 * width))
    title = wrap(display(title), int(15.5 * width))
    height = HEIGHT + (0.05 if title else 0) + 0.15 * len(title) + 0.11 * len(text)
    figure = Figure(figsize=(width, height), layout='constrained')
    FigureCanvasAgg(figure)
    if title:
        figure.suptitle('\n'.join(title))
    if text:
        figure.supxlabel('\n'.join(text), x=0.02, ha='left', color='0.35')
    return figure, list(figure.subplots(1, num_panels, sharey=sharey, squeeze=False)[0])


def wrap(text: str, width: int) -> list[str]:
    """A text in lines of at most `width` characters, none of which ends within 'N = 7' or 'MSE 0.7'."""
    joined = re.sub(r'(?<=[^\W\d]) (?=\d)', '\u00a0', text.replace(' = ', '\u00a0=\u00a0'))
    return textwrap.wrap(joined, width=width)


def display(name: str) -> str:
    """A name, title or note for print: '$' is no mathtext, and a leading '_' would hide a label."""
    first, _, rest = str(name).partition(' ')  # 'ffn min_norm': a model with its learner
    text = analysis.DISPLAY_NAMES.get(name) or ' '.join([analysis.DISPLAY_NAMES.get(first, first), rest]).rstrip()
    text = text.replace('$', r'\$')
    return f' {text}' if text.startswith('_') else text


def thousands(samples: float, _: int = 0) -> str:
    """Tick labels: 20000 -> '20k', 500 -> '500'."""
    return f'{samples / 1000:,g}k' if samples >= 1000 else f'{samples:g}'


def spaced(lengths: list[int], width: float) -> list[int]:
    """The lengths that have room for a tick label; the longest has the first claim."""
    ticks = []
    for length in reversed(lengths):
        if not ticks or ticks[0] - length >= 0.07 * width:
            ticks.insert(0, length)
    return ticks
