"""Pages of the documentation, one for each exhibit: from its config's docstring, section of the gallery, and results.

A new config is a new page by itself.
"""

import ast
import html
import itertools
import os
import pathlib
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from qstr_jax.storage import provenance
from qstr_jax.storage.files import ResultsError

_FIELD = re.compile(r'^(Command|Runtime|Expect): +', flags=re.MULTILINE)
_SECTION = re.compile(r'^## (?:.+)\n+<!-- exhibit: (\w+) -->\n((?:(?!^## ).*\n)*)', flags=re.MULTILINE)


class Exhibit(NamedTuple):
    """What a config says of itself.

    Attributes:
        name: of the config's file.
        title: the docstring's first line, as far as the colon.
        about: what follows, and the other paragraphs.
        fields: 'Command', 'Runtime' and 'Expect', as far as they are there.
        reduced: whether it has a twin of seconds.
    """

    name: str
    title: str
    about: str
    fields: Mapping[str, str]
    reduced: bool


def exhibits(configs: str | os.PathLike) -> list[Exhibit]:
    """All configs that name a command, by name.

    Args:
        configs: the folder of the configs; they are read, not imported.
    """
    found = [_exhibit(path) for path in sorted(pathlib.Path(configs).glob('*.py'))]
    return [exhibit for exhibit in found if 'Command' in exhibit.fields]


def in_order(found: Sequence[Exhibit], gallery: str) -> list[Exhibit]:
    """Exhibits as the gallery has them, then those that it does not have.

    Args:
        found: of `exhibits`.
        gallery: its text.
    """
    names = [name for name, _ in _SECTION.findall(gallery)]
    return sorted(found, key=lambda one: names.index(one.name) if one.name in names else len(names))


def _exhibit(path: pathlib.Path) -> Exhibit:
    tree = ast.parse(path.read_text())
    head, *parts = _FIELD.split(ast.get_docstring(tree) or '')
    first, _, others = head.strip().partition('\n\n')
    title, _, rest = first.removesuffix('.').partition(': ')
    first_word = rest.split(' ')[0]
    rest = rest[:1].upper() + rest[1:] if first_word.isalpha() else rest
    about = f'{rest}.\n\n{others}' if rest else others
    fields = {name: _unwrapped(text) for name, text in zip(parts[::2], parts[1::2], strict=True)}
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    return Exhibit(path.stem, title, about.strip(), fields, 'reduced' in functions)


def _unwrapped(text: str) -> str:
    """Lines without the indentation that they have below the field's first."""
    return '\n'.join(line.strip() for line in text.strip().splitlines())


def folders(root: str | os.PathLike, names: Sequence[str]) -> dict[str, list[pathlib.Path]]:
    """By config, the results directories that it made: those of its name, and others whose commands name it.

    Args:
        root: the folder of the results directories.
        names: of the configs.
    """
    found: dict[str, list[pathlib.Path]] = {name: [] for name in names}
    for folder in sorted(path for path in pathlib.Path(root).iterdir() if path.is_dir()):
        name = folder.name if folder.name in found else _config_of(folder)
        if name in found:
            found[name].append(folder)
    return found


def _config_of(folder: pathlib.Path) -> str | None:
    """The config that the first recorded command of a results directory names."""
    try:
        words = [word for run in provenance.load(folder) for word in run.get('command') or []]
    except ResultsError:
        return None
    named = (re.fullmatch(r'--config=.*?(\w+)\.py(?::\w+)?', word) for word in words)
    return next((match[1] for match in named if match), None)


def page(exhibit: Exhibit, results: Sequence[pathlib.Path], gallery: str, top: str = '../..') -> str:
    """The page of an exhibit as Markdown.

    Args:
        exhibit: of `exhibits`.
        results: its directories.
        gallery: the text of the gallery, whose section of this exhibit says what it shows.
        top: from the page to the folder that holds `experiments`.
    """
    sections = dict(_SECTION.findall(gallery))
    said = sections.get(exhibit.name, '').replace('](../', f']({top}/').replace(f'{top}/../', f'{top}/')
    parts = [f'# {_escaped(exhibit.title)}', _escaped(exhibit.about), *_how(exhibit, top)]
    if said.strip():
        parts += ['## What came out', said.strip()]
    for folder in results:
        parts += _of_folder(folder, top, shown=said)
    return '\n\n'.join(part for part in parts if part) + '\n'


def _how(exhibit: Exhibit, top: str) -> list[str]:
    """How to make it, how long that takes, and what to expect."""
    config = f'experiments/configs/{exhibit.name}.py'
    parts = ['## How to make it', *_commands(exhibit.fields['Command'])]
    for name, heading in (('Runtime', 'It takes'), ('Expect', 'Expect')):
        if name in exhibit.fields:
            parts.append(f'**{heading}**: {_escaped(exhibit.fields[name])}')
    twin = ' It has a twin of seconds, `reduced()`.' if exhibit.reduced else ''
    return [*parts, f'Its settings are in [`{config}`]({top}/{config}).{twin}']


def _commands(text: str) -> list[str]:
    """Lines of commands as blocks, and what is said between them as it is."""
    parts = []
    for is_command, lines in itertools.groupby(text.splitlines(), lambda line: line.startswith(('make ', 'python '))):
        if is_command:
            joined = '\n'.join(line.replace(', make ', '\nmake ') for line in lines)
            parts.append(f'```bash\n{joined}\n```')
        else:
            parts.append(_escaped('\n'.join(lines)))
    return parts


def _of_folder(folder: pathlib.Path, top: str, shown: str) -> list[str]:
    """Pictures that are not shown yet, and tables, of a results directory."""
    place = f'{top}/experiments/results/{folder.name}'
    parts = [
        f'## Results: {folder.name}',
        f'Rows, curves and provenance are in [`experiments/results/{folder.name}`]({place}).',
    ]
    for path in sorted(folder.glob('*.png')):
        if f'{folder.name}/{path.name}' not in shown:
            parts.append(f'![{folder.name}: {path.stem.replace("_", " ")}]({place}/{path.name})')
    for path in sorted(folder.glob('*.md')):
        parts.append(f'??? note "{path.stem.replace("_", " ")}"\n\n{_indented(path.read_text())}')
    return parts


def _indented(text: str) -> str:
    return '\n'.join(f'    {line}'.rstrip() for line in text.strip().splitlines())


def _escaped(text: str) -> str:
    """Docstrings are plain text: what Markdown would take for emphasis, a link, a table or a tag is kept as it is."""
    return re.sub(r'([*_\[\]])', r'\\\1', html.escape(text, quote=False)).replace('|', '&#124;')
