"""The gallery and the README's numbers: every number in them is what the committed rows give."""

import re

import matplotlib.text
import numpy as np
import pandas as pd
import pytest

from experiments import gallery as binary
from qstr_jax.report import gallery
from qstr_jax.storage import results
from tests import stored
from tests.test_analysis import make_rows


@pytest.mark.slow
def test_the_texts_are_those_of_the_rows():
    """Fails where text and rows part; `make gallery` mends it."""
    for path, text in binary.filled().items():
        assert path.read_text() == text, path.name


def test_table_1_is_the_committed_one():
    """`test_table1` compares that with the rows."""
    committed = binary.RESULTS / 'table1/table1.md'
    assert committed.read_text() in (binary.ROOT / 'docs/gallery.md').read_text()


def test_the_readme_shows_the_picture_of_its_table():
    """The same runs: as many lanes, and all architectures, with the exponents of the text."""
    readme = (binary.ROOT / 'README.md').read_text()
    assert f']({binary.PICTURE.relative_to(binary.ROOT).as_posix()})' in readme
    template = binary.TEMPLATES[1].read_text()
    table = [line for line in template.splitlines() if line.startswith('| ')]
    assert {name for line in table for name in re.findall(r'\{\{thousands (\w+)', line)} == set(binary.SHOWN)
    (axis,) = binary.picture().axes
    legend = '\n'.join(text.get_text() for text in axis.figure.findobj(matplotlib.text.Text))
    for name, model in (('Transformer', 'transformer'), ('RNN', 'rnn'), ('FFN', 'ffn')):
        folder = binary.SHOWN[1] if model == 'rnn' else binary.SHOWN[0]
        exponent = gallery.render(f'{{{{exponent {folder} model={model}}}}}', binary.RESULTS).split()[0]
        assert re.search(rf'{name}.*{exponent}', legend), (name, exponent)


def test_every_exhibit_of_the_gallery_is_a_config():
    exhibits = re.findall('<!-- exhibit: (.+) -->', binary.TEMPLATES[0].read_text())
    assert len(exhibits) == len(set(exhibits)) > 10
    for exhibit in exhibits:
        assert (binary.ROOT / f'experiments/configs/{exhibit}.py').exists(), exhibit


def test_no_measured_number_is_typed():
    prose = ''.join(re.sub(r'\{\{.+?\}\}', '', path.read_text()) for path in binary.TEMPLATES)
    typed = re.findall(r'\d[\d.,]*k\b|N\^[−\d]|[\d.]+ (?:seconds|minutes|hours)|\[−?\d+\.\d', prose)
    assert typed == []


@pytest.fixture
def filled(monkeypatch):
    """Fills a template from made-up rows, N^0.6 with five lanes."""
    rows = make_rows(0.6, 10_000, lengths=(4, 6, 8, 12)).assign(task_seed=lambda table: table['seed'], cell='a')
    rows['is_erm'] = [True if seed == 0 else None for seed in rows['seed']]
    tables = {'full': rows, 'thin': rows[rows['seed'] < 2], 'bound': rows.assign(outcome='censored')}
    monkeypatch.setattr(results, 'load', lambda path, strict: tables[path.name])
    return lambda template: gallery.render(template, 'nowhere')


def test_placeholders_are_what_the_rows_say(filled):
    rows = make_rows(0.6, 10_000, lengths=(4, 6, 8, 12))
    samples = rows['samples_to_threshold'][rows['seq_len'] == 4].astype(float)
    mean, least, most = samples.mean() / 1000, samples.min() / 1000, samples.max() / 1000
    assert filled('{{mean full seq_len=4}}') == f'{mean:.1f}k'
    assert filled('{{thousands full seq_len=4}}') == f'{mean:.3g} ({least:.3g} – {most:.3g})'
    assert filled('{{mean full seq_len=4|6 by=seq_len}}').count('k') == 2
    assert filled('{{mean full column=sparsity}} {{lanes full seq_len=4}} {{count full}}') == '1 5 20'
    assert filled('{{count full is_erm=1}} {{count full is_erm=None}}') == '4 16'
    assert filled('{{mean bound seq_len=4}}') == '≥ 1000k'
    low, high = re.fullmatch(r'N\^0\.\d\d \[(.+), (.+)\]', filled('N^{{exponent full}}')).groups()
    assert float(low) < 0.6 < float(high)
    assert filled('{{published 117k}}, and no more') == '117k, and no more'


@pytest.mark.parametrize(
    ('template', 'words'),
    [
        ('{{mode full}}', 'no such quantity'),
        ('{{mean full seq_len=5}}', 'no lanes'),
        ('{{mean full}}', 'several points: choose seq_len'),
        ('{{mean thin seq_len=4}}', 'rests on 2 lanes, 3 are needed'),
        ('{{exponent thin}}', 'rests on 2 lanes'),
        ('{{mean full width=3}}', 'width'),
    ],
)
def test_a_placeholder_that_cannot_be_filled_is_named(filled, template, words):
    with pytest.raises(ValueError, match=words) as error:
        filled(f'It is {template}.')
    assert template in str(error.value)


def test_numbers_of_a_table_beside_the_rows(tmp_path):
    folder = tmp_path / 'figure2'
    folder.mkdir()
    frame = pd.DataFrame({'form': ['a', 'a', 'a', 'b'], 'seed': [0, 1, 2, 0], 'cosine': np.array([0.2, 0.3, 0.4, 1])})
    (folder / 'table.md').write_text(gallery.formats.markdown(frame))
    found = gallery.render('{{mean figure2 table=table.md column=cosine form=a}}', tmp_path)
    assert found == '0.3'


def test_numbers_never_rest_on_what_a_damaged_file_left(tmp_path):
    folder = stored.make(tmp_path / 'sweep')
    path = results.cell_path(folder, 'rows', stored.CELL)
    path.write_bytes(path.read_bytes()[:100])
    for template in ('{{count sweep}}', '{{table1}}', '{{mean sweep table=none.md column=cosine}}'):
        with pytest.raises(ValueError, match=re.escape(template)):
            gallery.render(template, tmp_path)


def test_a_readme_without_its_marks_is_refused(tmp_path):
    page = tmp_path / 'README.md'
    page.write_text(gallery.END + gallery.START)
    with pytest.raises(ValueError, match=r'README\.md: must hold'):
        gallery.placed(page, 'numbers')
