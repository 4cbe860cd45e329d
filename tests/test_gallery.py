"""Exhibits and their committed rows: every part can be run, the rows are of this code, and all texts are theirs.

What takes all cells of all exhibits is here, since to size their mixers takes half a minute.
"""

import ast
import inspect
import re
import shutil

import matplotlib.text
import pytest

from experiments import exhibit, gallery
from qstr_jax.cli import base
from qstr_jax.report import numbers
from qstr_jax.storage import provenance
from qstr_jax.sweeps import stale
from tests import helpers

# Cards have tests of their own.
TRAINED = {name: one for name, one in exhibit.every().items() if not isinstance(one, exhibit.CardExhibit)}


@pytest.fixture(autouse=True, scope='module')
def _each_text_is_made_once():
    """Several pages have the text of an exhibit, from the same committed rows."""
    said, known = exhibit.Exhibit._said, {}

    def once(self, part, rows):
        key = self.name, part, rows
        if key not in known:
            known[key] = said(self, part, rows)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exhibit.Exhibit, '_said', once)
        yield


@pytest.fixture
def rows():
    """The committed rows, which are read once for all texts."""
    return gallery.environment().globals['rows']


@pytest.mark.parametrize('name', TRAINED)
def test_every_part_is_possible_and_its_twin_too(name):
    for folder, parts in TRAINED[name].folders.items():
        for reduced in (False, True):
            configs = TRAINED[name].configs(folder, reduced)
            assert len(configs) == len(parts)
            for config in configs:
                base.check_drawn(config, exhibit.cells_of(base.to_sweep(config)))


@pytest.mark.parametrize('name', ['one_label', 'architectures'])
def test_committed_rows_are_of_this_code(name, tmp_path):
    """One cell of each architecture; where an edit has changed its program, run with --refresh and commit the rows."""
    for kind in 'rows', 'provenance':
        shutil.copytree(helpers.ROOT / 'experiments/results' / name / kind, tmp_path / kind)
    first = {}
    for sweep in exhibit.find(name)[0].sweeps(name):
        if set(sweep.models) - set(first):
            first = {cell.model: cell for cell in reversed(exhibit.cells_of(sweep))} | first
    stale.check(tmp_path, list(first.values()), provenance.start(['pytest']), refresh=False)


@pytest.mark.slow
@pytest.mark.parametrize('path', gallery.TEXTS, ids=gallery.TEXTS.get)
def test_a_text_is_that_of_the_rows(path):
    """Fails where text and rows part; `make gallery` mends it."""
    assert path.read_text() == gallery.filled(path)


@pytest.mark.parametrize('name', TRAINED)
def test_words_come_from_the_committed_rows(name, rows):
    some = TRAINED[name]
    text = some.text(rows)
    words = f'{text} {some.limits(rows)}'
    assert some.module.QUESTION.endswith('?')
    assert 'nan' not in words
    assert '{' not in words
    assert text.partition('\n\n')[0].count('. ') <= 2
    assert some.caveat(rows).count('. ') <= 2
    assert all(paragraph.count(' ') < 130 for paragraph in words.split('\n\n'))


def test_the_gallery_is_short():
    lines = (gallery.ROOT / 'docs/gallery.md').read_text().splitlines()
    prose = [line for line in lines if not line.startswith(('|', '    ', '<!--', '!['))]
    assert sum(len(line.split()) for line in prose) <= 2500


def test_a_page_has_what_an_exhibit_says_and_its_command(rows):
    one = TRAINED['quickstart']
    page = gallery.page(one)
    assert all(words in page for words in (one.title, one.text(rows), one.limits(rows), 'make quickstart\n'))
    assert f'All {len(rows.stored("quickstart"))} lanes.' in page


def test_all_committed_rows_are_lanes_of_their_exhibit(rows):
    owners = [(folder, one) for one in TRAINED.values() for folder in one.folders]
    assert len(dict(owners)) == len(owners)
    assert {path.parent.name for path in gallery.RESULTS.glob('*/rows')} == set(dict(owners))
    for folder, one in owners:
        planned, done = one.planned(folder), one.done(folder, rows.stored(folder))
        stray = {cell: lanes - planned.get(cell, set()) for cell, lanes in done.items()}
        assert {cell: lanes for cell, lanes in stray.items() if lanes} == {}, folder


def test_table_1_is_the_committed_one():
    """`test_table1` compares that with the rows."""
    title, answers, *_ = (gallery.RESULTS / 'table1/table1.md').read_text().split('\n\n')
    assert 'verdict' in title
    assert answers in (gallery.ROOT / 'docs/gallery.md').read_text()


@pytest.mark.slow
def test_the_readme_shows_the_picture_of_its_table():
    """The same runs, and all architectures, with the exponents of the text."""
    readme = (gallery.ROOT / 'README.md').read_text()
    assert f']({gallery.PICTURE.relative_to(gallery.ROOT).as_posix()})' in readme
    assert repr(gallery.SHOWN) in (gallery.ROOT / 'docs/readme.md.jinja').read_text()
    legend = '\n'.join(text.get_text() for text in gallery.picture().findobj(matplotlib.text.Text))
    exponent = numbers.Rows(gallery.RESULTS)(gallery.SHOWN, model='transformer').exponent()
    assert f'N^{exponent}' in readme
    assert re.search(rf'Transformer\n.*{exponent.split()[0]}', legend)
    assert {'RNN', 'FFN'} <= set(legend.split())


@pytest.mark.parametrize('name', exhibit.every())
def test_no_measured_number_is_typed(name):
    """Texts of functions are constants but for what is computed, so a typed number is one of the constants."""
    module = exhibit.every()[name].module
    functions = [getattr(module, part, None) for part in ('text', 'table', 'limits')]
    trees = [ast.parse(inspect.getsource(function)) for function in functions if function]
    strings = [node.value for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    prose = ' '.join(value for value in (*strings, getattr(module, 'LIMITS', '')) if isinstance(value, str))
    typed = re.findall(r'\d[\d.,]*k\b|N\^[−\d]|[\d.]+ (?:seconds|minutes|hours)|\[−?\d+\.\d', prose)
    assert typed == []


@pytest.mark.parametrize('name', exhibit.every())
def test_pictures_of_an_exhibit_are_there(name):
    one = exhibit.every()[name]
    assert one.figures
    for path, words in one.figures:
        assert (gallery.RESULTS / path).stat().st_size > 1000
        assert path.rpartition('/')[0] in one.folders
        assert len(words) > 10


def test_a_readme_without_its_marks_is_refused(tmp_path):
    page = tmp_path / 'README.md'
    page.write_text(gallery.END + gallery.START)
    with pytest.raises(ValueError, match=r'README\.md: must hold'):
        gallery.placed(page, 'numbers')
