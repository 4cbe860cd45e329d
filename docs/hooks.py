"""What mkdocs is told besides mkdocs.yml: generated pages, the explorer, what stands outside docs/, formulas as MathML.

Links are written so that they work where a file stands in the repository; here they become links of the site.
"""

import ast
import functools
import html
import os
import pathlib
import posixpath
import re
import tempfile

from latex2mathml import converter
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

import qstr_jax
from experiments import exhibit, gallery
from qstr_jax import report
from qstr_jax.analysis import formats
from qstr_jax.comparison import board
from qstr_jax.storage.files import ResultsError

ROOT = pathlib.Path(__file__).parents[1]
REPOSITORY = 'https://github.com/qstr-jax/qstr_jax'
PICTURES = ('experiments/results/**/*.png', 'experiments/benchmarks/*.png')
# Pages that stand elsewhere in the repository, by their address in the site.
MOVED = {
    'README.md': 'index.md',
    'CONTRIBUTING.md': 'contributing.md',
    'CHANGELOG.md': 'changelog.md',
    'qstr_jax/theory/README.md': 'theory.md',
    'experiments/results/README.md': 'results.md',
    **{
        f'experiments/benchmarks/{path.name}': f'benchmarks/{path.name}'
        for path in ROOT.glob('experiments/benchmarks/*.md')
    },
}
_LINK = re.compile(r'(\]\()([^)\s]+)(\))')
_FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', flags=re.DOTALL)


def on_files(files, config):
    """Adds what does not stand in docs/, and names it in the navigation."""
    try:
        return _with_generated(files, config)
    except (OSError, SyntaxError, ValueError, ResultsError) as error:  # a damaged file ends the build in one line
        raise PluginError(f'docs/hooks.py: {error}') from error


def _with_generated(files, config):
    for source, uri in MOVED.items():
        if uri != 'index.md':
            files.append(File.generated(config, uri, abs_src_path=str(ROOT / source)))
    for path in (path for pattern in PICTURES for path in ROOT.glob(pattern)):
        files.append(File.generated(config, path.relative_to(ROOT).as_posix(), abs_src_path=str(path)))
    files.append(File.generated(config, 'report.html', content=explorer()))
    pictures = board.pictures(ROOT / 'board')
    files.append(File.generated(config, 'board.md', content=board.page(ROOT / 'board', pictures)))
    for name, content in pictures.items():
        files.append(File.generated(config, f'board/{name}', content=content))
    pages = {'Gallery': exhibits(), 'API': api()}
    for uri, text in (pages['Gallery'] | pages['API']).items():
        files.append(File.generated(config, uri, content=text))
    known = {file.src_uri for file in files}
    for section in config.nav:
        for name, entries in section.items():
            if isinstance(entries, list):
                section[name] = [uri for uri in [*entries, *pages.get(name, ())] if uri in known]
    return files


@functools.cache
def explorer():
    """The page to explore the committed rows, of `make report`; made once where mkdocs builds again and again."""
    with tempfile.TemporaryDirectory() as folder:
        # A path from here, since the page names the directories as they are given.
        links = {'Documentation': 'index.html', 'Gallery': 'gallery.html'}
        results = os.path.relpath(ROOT / 'experiments/results')
        pages = exhibit.pages(linked=True)
        return report.write([results], folder, pages=pages, links=links, home=ROOT).read_text()


def exhibits():
    """By address the page of each exhibit."""
    return {f'exhibits/{name}.md': gallery.page(one) for name, one in exhibit.every().items()}


def api():
    """By address a page for each package, with all that its modules have and is public."""
    pages = {}
    for init in sorted(ROOT.glob('qstr_jax/**/__init__.py')):
        package = init.parent.relative_to(ROOT).as_posix().replace('/', '.')
        modules = [path.stem for path in sorted(init.parent.glob('*.py')) if not path.stem.startswith('_')]
        # As it stands: the docstrings of packages are columns of names and meanings.
        parts = [f'# {package}', f'```pycon\n{ast.get_docstring(ast.parse(init.read_text()))}\n```']
        if package == 'qstr_jax':
            parts.append(short_names())
        pages[f'api/{package}.md'] = '\n\n'.join(parts + [f'::: {package}.{module}' for module in modules]) + '\n'
    return pages


def short_names():
    """What `import qstr_jax` offers, with links to where each name is defined."""
    lines = []
    for name in qstr_jax.__all__:
        value = getattr(qstr_jax, name)
        place = f'{value.__module__}.{value.__qualname__}'
        lines.append([f'`qstr_jax.{name}`', f'[`{place}`][{place}]'])
    return formats.pipes(['name', 'is'], lines)


def on_page_markdown(markdown, page, config, files):
    """Turns links that leave docs/ into links of the site, or to the repository."""
    uri = page.file.src_uri
    source = next((path for path, moved in MOVED.items() if moved == uri and uri != 'index.md'), f'docs/{uri}')
    if source == 'docs/gallery.md':
        markdown = re.sub(r'<!-- exhibit: (\w+) -->', r'[All of this exhibit](exhibits/\1.md)', markdown)
    known = {file.src_uri for file in files}

    def moved(match):
        target, hash_sign, anchor = match[2].partition('#')
        if target.startswith(config.site_url):
            inside = path = target.removeprefix(config.site_url)
        elif not target or re.match(r'\w+:', target):
            return match[0]
        else:
            path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
            inside = MOVED.get(path, path.removeprefix('docs/'))
        if inside in known:
            place = posixpath.relpath(inside, posixpath.dirname(uri) or '.')
        elif (ROOT / path).exists():
            place = f'{REPOSITORY}/{"tree" if (ROOT / path).is_dir() else "blob"}/main/{path}'
        else:
            return match[0]
        return f'{match[1]}{place}{hash_sign}{anchor}{match[3]}'

    return _LINK.sub(moved, markdown)


def on_page_content(text, page, config, files):
    """Formulas as MathML, which browsers draw by themselves."""

    def drawn(match):
        display = 'block' if match[1] == 'div' else 'inline'
        return converter.convert(html.unescape(match[2]).strip(), display=display)

    return _FORMULA.sub(drawn, text)
