r"""The gallery, and the numbers of the README and of the page on accelerators, filled from the committed rows.

python -m experiments.gallery

The texts are docs/gallery.md.template and docs/readme.md.template; `qstr_jax.report.gallery` says what their
placeholders are.
"""

import json
import pathlib

from experiments import command_line, exhibits
from qstr_jax.accelerators import store, summary
from qstr_jax.report import gallery
from qstr_jax.storage import files

ROOT = pathlib.Path(__file__).parents[1]
TEMPLATES = (ROOT / 'docs/gallery.md.template', ROOT / 'docs/readme.md.template')
RESULTS = ROOT / 'experiments/results'
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


def run() -> None:
    """Writes the gallery, and the numbers into README and page on accelerators."""
    for path, text in filled().items():
        files.write_text(path, text)


if __name__ == '__main__':
    command_line.launch(run, required=None, used=())
