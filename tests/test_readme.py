"""The README: short, and for a reader who does not have the paper at hand."""

import re

from tests import helpers

README = (helpers.ROOT / 'README.md').read_text()


def test_it_is_short():
    assert len(README.encode()) <= 10_000


def test_the_first_screen_needs_no_paper():
    """What comes before the first commands speaks of no theorem, symbol or task by the paper's name."""
    screen = README.split('## Two commands')[0]
    for word in (
        'Theorem',
        'Lemma',
        'Proposition',
        'Assumption',
        'Table 1',
        'Figure',
        'STR',
        'Ω',
        'polylog',
        'ω',
        'n*',
        '(2.',
    ):
        assert word not in screen, word


def test_words_are_defined_before_they_are_used():
    """'Lane' and 'cell' come first where they are set in bold, which is where they are told."""
    text = README.split('\n\n', 1)[1]
    for word in ('lane', 'cell'):
        assert re.search(rf'\b{word}s?\b', text, flags=re.IGNORECASE).start() > text.index(f'**{word}**') - 1, word


def test_every_folder_of_the_tree_is_there():
    tree = README.split('## Where things are')[1]
    for line in re.findall(r'^ {4} *((?:[\w/]+/ ?)+) {2,}', tree, flags=re.MULTILINE):
        for folder in line.split():
            assert any((helpers.ROOT / base / folder).is_dir() for base in ('', 'qstr_jax', 'experiments')), folder
