r"""The gallery, the index of results, and the numbers of README and docs, written from the exhibits and their rows.

python -m experiments.gallery

The texts are the exhibits' own, in experiments/exhibits, put together by the templates docs/*.jinja. Table 1 is the one
that experiments.table1 wrote; `make gallery` makes it first.
"""

import functools
import pathlib

import jinja2
from matplotlib.figure import Figure

from experiments import exhibit
from qstr_jax import plots
from qstr_jax.accelerators import entries
from qstr_jax.cli import command_line
from qstr_jax.report import lanes, numbers
from qstr_jax.storage import files

ROOT = pathlib.Path(__file__).parents[1]
RESULTS = ROOT / 'experiments/results'
# Each text and its template; README and docs/accelerators.md hold it between marks.
TEXTS = {
    ROOT / 'docs/gallery.md': 'gallery',
    RESULTS / 'README.md': 'results',
    ROOT / 'README.md': 'readme',
    ROOT / 'docs/accelerators.md': 'accelerators',
}
# What the README's table and picture show.
SHOWN = 'one_label'
PICTURE = ROOT / 'docs/assets/headline.png'
START, END = '<!-- numbers: written by make gallery -->\n', '<!-- end of the numbers -->\n'


@functools.cache
def environment() -> jinja2.Environment:
    """What templates know: the exhibits, and the committed rows."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(ROOT / 'docs'), undefined=jinja2.StrictUndefined, keep_trailing_newline=True
    )
    made.globals.update(exhibits=tuple(exhibit.every().values()), rows=numbers.Rows(RESULTS), root=RESULTS)
    made.globals['programs'] = lambda: entries.by_device(entries.read(RESULTS / 'accelerators')['programs'])
    made.filters['cell'] = lambda text: ' '.join(text.split()).replace('|', '\\|')
    return made


def page(one: exhibit.Exhibit) -> str:
    """The page of an exhibit, as it stands in docs/exhibits of the site."""
    return environment().get_template('exhibit.md.jinja').render(one=one)


def filled(path: pathlib.Path) -> str:
    """What one of the texts should be: the whole file, or with other numbers between its marks."""
    text = environment().get_template(f'{TEXTS[path]}.md.jinja').render()
    return placed(path, text) if START in path.read_text() else text


def placed(path: pathlib.Path, text: str) -> str:
    """The page with its numbers, which stand between two marks, replaced by the text."""
    page = path.read_text()
    if not 0 <= page.find(START) < page.find(END):
        raise ValueError(f'{path.name}: must hold {START.strip()!r} and then {END.strip()!r}')
    head, rest = page.split(START, 1)
    return f'{head}{START}{text}{END}{rest.split(END, 1)[1]}'


def picture() -> Figure:
    """The picture of the README: samples of the three architectures, each lane with a draw of the task."""
    rows = lanes.load(RESULTS / SHOWN, strict=True)
    return plots.samples_against(rows, title='Prompts, of one label each, until the test error is below 0.7')


def run() -> None:
    """Writes all texts, and the picture of the README."""
    plots.save(picture(), PICTURE.with_suffix(''))[0].unlink()  # A page needs no PDF.
    for path in TEXTS:
        files.write_text(path, filled(path))


if __name__ == '__main__':
    command_line.launch(run, used=())
