"""Pages of exhibits: made from whatever config, results and gallery are there."""

import pytest

from qstr_jax.report import exhibit_pages
from tests import helpers

CONFIG = """\"\"\"A new exhibit: samples *to* MSE 0.7.

More about it.

Command:  make new
          python -m experiments.sample_complexity --config=experiments/configs/new.py --workdir=DIR
          and once more with another directory
Runtime:  a minute
Expect:   x_1 < 3 | 4
\"\"\"

def get_config():
    return None


def reduced():
    return None
"""
GALLERY = """# Gallery

## The new one

<!-- exhibit: new -->

![picture](../experiments/results/new/figure.png)

It shows this.

### In numbers

Seven.

## Another

<!-- exhibit: other -->

That.
"""


@pytest.fixture
def made(tmp_path):
    """The page of a new config; its results have a picture that the gallery shows, one that it does not, a table."""
    (tmp_path / 'configs').mkdir()
    (tmp_path / 'configs/new.py').write_text(CONFIG)
    (tmp_path / 'configs/base.py').write_text('"""No command, so no exhibit."""')
    folder = tmp_path / 'results/new'
    folder.mkdir(parents=True)
    for name in ('figure.png', 'curves.png'):
        (folder / name).write_bytes(b'')
    (folder / 'table.md').write_text('| N |\n|---|\n| 4 |\n')
    (exhibit,) = exhibit_pages.exhibits(tmp_path / 'configs')
    folders = exhibit_pages.folders(tmp_path / 'results', ['new'])
    return exhibit, exhibit_pages.page(exhibit, folders['new'], GALLERY)


def test_a_new_config_is_a_page_by_itself(made):
    exhibit, page = made
    assert exhibit.title == 'A new exhibit'
    assert page.startswith('# A new exhibit\n\nSamples')
    for part in (
        'More about it.',
        'make new\npython -m',
        'a minute',
        'x\\_1 &lt; 3 &#124; 4',
        'reduced()',
        'configs/new.py)',
    ):
        assert part in page, part


def test_only_commands_stand_in_blocks_of_commands(made):
    _, page = made
    assert 'new.py --workdir=DIR\n```\n\nand once more with another directory' in page


def test_it_has_its_section_of_the_gallery_and_no_other(made):
    _, page = made
    assert 'It shows this.' in page
    assert 'Seven.' in page
    assert 'That.' not in page
    assert '](../../experiments/results/new/figure.png)' in page


def test_pictures_and_tables_are_there_once(made):
    _, page = made
    assert page.count('new/figure.png') == page.count('new/curves.png') == 1
    assert '    | 4 |' in page


def test_without_results_and_gallery_it_is_a_page_too(made):
    exhibit, _ = made
    assert '# A new exhibit' in exhibit_pages.page(exhibit, [], '')


def test_all_committed_rows_belong_to_a_config():
    configs = [exhibit.name for exhibit in exhibit_pages.exhibits(helpers.ROOT / 'experiments/configs')]
    results = helpers.ROOT / 'experiments/results'
    found = exhibit_pages.folders(results, configs)
    assigned = {folder.name for folders in found.values() for folder in folders}
    with_rows = {path.parent.name for path in results.glob('*/rows')}
    assert len(with_rows) > 10
    assert with_rows <= assigned
