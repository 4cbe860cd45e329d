r"""The gallery, the README's picture and numbers, and those of the page on accelerators, from the committed rows.

python -m experiments.gallery

The texts are docs/gallery.md.template and docs/readme.md.template; `qstr_jax.report.gallery` says what their
placeholders are.
"""

import json
import pathlib

import pandas as pd
from matplotlib.figure import Figure

from experiments import exhibits
from qstr_jax import plots
from qstr_jax.accelerators import store, summary
from qstr_jax.cli import command_line
from qstr_jax.report import gallery
from qstr_jax.storage import files, results

ROOT = pathlib.Path(__file__).parents[1]
TEMPLATES = (ROOT / 'docs/gallery.md.template', ROOT / 'docs/readme.md.template')
RESULTS = ROOT / 'experiments/results'
# What the README's table and picture show: the RNN took so long that it has a directory of its own.
SHOWN = ('figure1a_task_per_lane', 'figure1a_task_per_lane_rnn')
PICTURE = ROOT / 'docs/assets/figure1a.png'
EMULATED = ('cpu_precision.json', 'cpu_precision_1b.json')
_NOTE = '<!-- Written by `make gallery` from gallery.md.template: change that. -->\n'


def filled() -> dict[pathlib.Path, str]:
    """By file its text, from templates and rows."""
    page, numbers = (gallery.render(path.read_text(), RESULTS) for path in TEMPLATES)
    readme, compiled = ROOT / 'README.md', ROOT / 'docs/accelerators.md'
    return {
        ROOT / 'docs/gallery.md': _NOTE + page,
        readme: gallery.placed(readme, numbers),
        compiled: gallery.placed(compiled, accelerators()),
    }


def accelerators() -> str:
    """What was compiled for accelerators, and what precision does to samples."""
    found = [json.loads((ROOT / 'experiments/benchmarks' / name).read_text()) for name in EMULATED]
    records = [one for several in found for one in several['sections']['precision']]
    # Lanes are the same on a GPU: one number of `platforms.TABLE`.
    return summary.text(store.read(RESULTS / 'accelerators')['programs'], exhibits.cells('tpu'), records)


def picture() -> Figure:
    """The picture of the README: samples of the three architectures, each lane with a draw of the task."""
    rows = pd.concat([results.load(RESULTS / name, strict=True) for name in SHOWN], ignore_index=True)
    return plots.samples_against(rows, title='Training prompts until the test error is below 0.7')


def run() -> None:
    """Writes the gallery and the picture, and the numbers into README and page on accelerators."""
    plots.save(picture(), PICTURE.with_suffix(''))[0].unlink()  # A page needs no PDF.
    for path, text in filled().items():
        files.write_text(path, text)


if __name__ == '__main__':
    command_line.launch(run, required=None)
