"""What mkdocs is told by docs/hooks.py: links that leave docs/, generated pages, formulas. The site is built by CI."""

import importlib.util
import types

import pytest

import qstr_jax
from tests import helpers

files = pytest.importorskip('mkdocs.structure.files', reason='needs mkdocs: make docs')

pytestmark = pytest.mark.slow

SITE = 'https://example.org/project/'


@pytest.fixture(scope='module')
def hooks():
    """The module; its explorer and the pages of exhibits, which take minutes, are a word each."""
    spec = importlib.util.spec_from_file_location('hooks', helpers.ROOT / 'docs/hooks.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.explorer = lambda: 'the explorer'
    module.gallery = types.SimpleNamespace(page=lambda one: one.title)
    return module


@pytest.fixture(scope='module')
def built(hooks):
    """All files, and the configuration with its navigation."""
    nav = [{'Home': 'index.md'}, {'Gallery': ['gallery.md', 'gone.md']}, {'API': []}]
    plugins = types.SimpleNamespace(_current_plugin='hooks')
    config = types.SimpleNamespace(
        site_url=SITE, site_dir='site', use_directory_urls=False, nav=nav, plugins=plugins, docs_dir='docs'
    )
    own = [files.File(name, 'docs', 'site', use_directory_urls=False) for name in ('index.md', 'gallery.md')]
    return hooks.on_files(files.Files(own), config), config


@pytest.mark.parametrize(
    ('uri', 'link', 'expected'),
    [
        ('gallery.md', '../experiments/results/figure1a/figure.png', 'experiments/results/figure1a/figure.png'),
        ('howto/add.md', '../../CONTRIBUTING.md#tests', '../contributing.md#tests'),
        ('theory.md', '../../docs/gallery.md', 'gallery.md'),
        (
            'gallery.md',
            '../experiments/exhibits',
            'https://github.com/qstr-jax/qstr_jax/tree/main/experiments/exhibits',
        ),
        ('gallery.md', '../setup.py', 'https://github.com/qstr-jax/qstr_jax/blob/main/setup.py'),
        ('howto/report.md', f'{SITE}report.html', '../report.html'),
        ('gallery.md', f'{SITE}report.html#explore', 'report.html#explore'),
        ('gallery.md', '#here', '#here'),
        ('gallery.md', 'https://example.com/a', 'https://example.com/a'),
        ('gallery.md', 'gone.md', 'gone.md'),  # which mkdocs refuses
    ],
)
def test_links_work_on_the_site_as_in_the_repository(hooks, built, uri, link, expected):
    page = types.SimpleNamespace(file=types.SimpleNamespace(src_uri=uri))
    found, config = built
    assert hooks.on_page_markdown(f'[text]({link})', page, config, found) == f'[text]({expected})'


def test_generated_pages_are_there_and_in_the_navigation(hooks, built):
    found, config = built
    uris = {file.src_uri for file in found}
    gallery, api = config.nav[1]['Gallery'], config.nav[2]['API']
    assert {*hooks.MOVED.values(), *gallery, *api, 'report.html'} <= uris
    assert gallery[:2] == ['gallery.md', 'exhibits/quickstart.md']
    assert 'gone.md' not in gallery
    assert len(gallery) > 15
    assert all((helpers.ROOT / source).exists() for source in hooks.MOVED)


def test_the_api_has_every_package_and_short_name(hooks):
    pages = hooks.api()
    packages = {path.parent.name for path in (helpers.ROOT / 'qstr_jax').glob('*/__init__.py')}
    assert {'api/qstr_jax.md', *(f'api/qstr_jax.{name}.md' for name in packages)} <= set(pages)
    assert '::: qstr_jax.learners.online\n' in pages['api/qstr_jax.learners.md']
    assert all(f'`qstr_jax.{name}`' in pages['api/qstr_jax.md'] for name in qstr_jax.__all__)


def test_formulas_become_mathml(hooks):
    text = '<p>As <span class="arithmatex">\\(a &lt; N^2\\)</span> and <code>\\(x\\)</code></p>'
    shown = hooks.on_page_content(text, None, None, None)
    assert '<math' in shown
    assert '<msup>' in shown
    assert 'arithmatex' not in shown
    assert '<code>\\(x\\)</code>' in shown
