r"""The README's gallery, filled with numbers from the committed rows.

python -m experiments.gallery

The text is docs/gallery.md.template; `qstr_jax.report.gallery` says what its placeholders are.
"""

import pathlib

from experiments import command_line
from qstr_jax.report import gallery
from qstr_jax.storage import files

ROOT = pathlib.Path(__file__).parents[1]
TEMPLATE = ROOT / 'docs/gallery.md.template'
RESULTS = ROOT / 'experiments/results'


def filled() -> str:
    """The gallery, from template and rows."""
    return gallery.render(TEMPLATE.read_text(), RESULTS)


def run() -> None:
    """Writes the gallery into the README."""
    readme = ROOT / 'README.md'
    files.write_text(readme, gallery.placed(readme.read_text(), filled()))


if __name__ == '__main__':
    command_line.launch(run, required=None)
