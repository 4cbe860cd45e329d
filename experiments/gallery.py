r"""The gallery and the README's numbers, filled from the committed rows.

python -m experiments.gallery

The texts are docs/gallery.md.template and docs/readme.md.template; `qstr_jax.report.gallery` says what their
placeholders are.
"""

import pathlib

from experiments import command_line
from qstr_jax.report import gallery
from qstr_jax.storage import files

ROOT = pathlib.Path(__file__).parents[1]
TEMPLATES = (ROOT / 'docs/gallery.md.template', ROOT / 'docs/readme.md.template')
RESULTS = ROOT / 'experiments/results'
_NOTE = '<!-- Written by `make gallery` from gallery.md.template: change that. -->\n'


def filled() -> dict[pathlib.Path, str]:
    """By file its text, from templates and rows."""
    page, numbers = (gallery.render(path.read_text(), RESULTS) for path in TEMPLATES)
    readme = ROOT / 'README.md'
    return {ROOT / 'docs/gallery.md': _NOTE + page, readme: gallery.placed(readme.read_text(), numbers)}


def run() -> None:
    """Writes the gallery, and the numbers into the README."""
    for path, text in filled().items():
        files.write_text(path, text)


if __name__ == '__main__':
    command_line.launch(run, required=None)
