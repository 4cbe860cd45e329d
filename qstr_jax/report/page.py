"""Sections as one HTML page that loads nothing: all is inside, and its policy forbids the network and other code."""

import base64
import os
import pathlib
import urllib.parse
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jinja2
import pandas as pd

from qstr_jax import analysis
from qstr_jax.analysis import formats
from qstr_jax.report import explorer, pictures, scripts
from qstr_jax.report.section import Section

# Pictures that would make the page larger are left out.
MOST_BYTES = 4_000_000


class Page(NamedTuple):
    """What is known of a results directory."""

    title: str
    address: str = ''  # of its page; '' if it has none


def html_of(
    overview: Section,
    sections: Sequence[Section],
    headline: Section | None = None,
    *,
    pages: Mapping[str, Page] | None = None,
    links: Mapping[str, str] | None = None,
    home: str | os.PathLike | None = None,
) -> str:
    """The page of an explorer, a headline, an overview and sections; in the folder `home` it links to pictures."""

    def page_of(name: str) -> Page | None:
        return (pages or {}).get(pathlib.PurePath(name).name)

    def title_of(name: str) -> str:
        page = page_of(name)
        return f'{page.title} ({pathlib.PurePath(name).name})' if page else name

    exhibits = explorer.exhibits(sections)
    for exhibit in exhibits:
        page = page_of(exhibit['folder'])
        exhibit['title'] = f'{page.title} ({exhibit["short"]})' if page else exhibit['short']
        exhibit['page'] = page.address if page else ''
    code = scripts.javascript() if exhibits else ()
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(scripts.ASSETS), autoescape=True, undefined=jinja2.StrictUndefined
    )
    template, css = environment.get_template('page.html.jinja'), (scripts.ASSETS / 'page.css').read_text()
    given: dict[str, Any] = {
        'policy': scripts.policy(code), 'css': css, 'code': code, 'cells': formats.cells,
        'data': scripts.packed(_data(exhibits)), 'known': {one['name']: one['title'] for one in exhibits},
        'first': [('headline', headline)] * bool(headline) + [('overview', overview)],
        'others': [(f's{i}', section) for i, section in enumerate(sections)], 'links': list((links or {}).items()),
        'title_of': title_of, 'page_of': page_of, 'command': command, 'settings': _settings, 'provenance': _run,
    }  # fmt: skip
    room = MOST_BYTES - len(template.render(given, pictures=lambda section: []).encode(errors='backslashreplace'))
    shown = _shown(sections, room, home)
    return template.render(given, pictures=lambda section: shown.get(id(section), ()))


class _Shown(NamedTuple):
    """A picture on the page."""

    caption: str
    data: str  # base64; '' where there was no room
    kind: str  # its class
    address: str  # of the file; '' if the page cannot link to it


def _shown(sections: Sequence[Section], room: int, home: str | os.PathLike | None) -> dict[int, list[_Shown]]:
    """The pictures of each section by its id; as long as there is room the first of each, then the second ones."""
    found = {id(section): _pictures(section, home) for section in sections}
    places = sorted((place, number) for number, own in enumerate(found.values()) for place in range(len(own)))
    lists = list(found.values())
    room -= sum(2 * len(one.caption.encode()) + len(one.address) + 200 for own in lists for one in own)
    for place, number in places:
        one = lists[number][place]
        if len(one.data) <= room:
            room -= len(one.data)
        else:
            lists[number][place] = one._replace(data='')
    return found


def _pictures(section: Section, home: str | os.PathLike | None) -> list[_Shown]:
    """What a binary drew; or else what is drawn from the same rows."""
    if not section.pictures:
        return [_Shown(caption, _base64(pictures.png_of(draw())), '', '') for caption, draw in section.figures]
    return [
        _Shown(caption, _base64(pictures.small(png)), 'kept', _address(path, home))
        for caption, png, path in section.pictures
    ]


def _base64(png: bytes) -> str:
    return base64.b64encode(png).decode()


def _address(path: pathlib.Path, home: str | os.PathLike | None) -> str:
    """The address of a file for a page in the folder `home`; '' without a folder, or on another drive."""
    try:
        return urllib.parse.quote(pathlib.Path(os.path.relpath(path, home)).as_posix()) if home else ''
    except ValueError:
        return ''


def _data(exhibits: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What the explorer shows; the exhibit with most of the paper's models, and most lanes of these, comes first."""
    models = {model for exhibit in exhibits for model in exhibit['rows']['model']}
    looks = scripts.looks(analysis.model_order(pd.DataFrame({'model': list(models)})))

    def richness(exhibit: dict[str, Any]) -> tuple[bool, int, int]:
        rows = exhibit['rows']
        return exhibit['values'][0][0] == 'samples', len({*rows['model']} & {*analysis.MODELS}), len(rows['lane'])

    first = max(exhibits, key=richness)['short'] if exhibits else ''
    return {'exhibits': list(exhibits), 'looks': looks, 'first': first}


def command(arguments: Sequence[object]) -> str:
    """The command of a run as one would type it: `python -m experiments.NAME …` for our binaries."""
    if not arguments:
        return '(called from Python)'
    path, *rest = str(arguments[0]).split(' ')  # a command of the package follows its file
    first = pathlib.Path(path)
    if first.name == '__main__.py':
        path = f'python -m {first.parent.name}'
    elif first.parent.name == 'experiments' and first.suffix == '.py':
        path = f'python -m experiments.{first.stem}'
    elif path.startswith('experiments.'):  # of a launcher's worker
        path = f'python -m {path}'
    return ' '.join([path, *rest, *map(str, arguments[1:])])


def _settings(sweep: Mapping[str, Any]) -> dict[str, str]:
    """The settings of one sweep by name."""
    own = sweep.get('settings')
    nested = own if isinstance(own, dict) else {}
    flat = {name: value for name, value in {**sweep, **nested}.items() if value is not own or not nested}
    return {name: str(value) if isinstance(value, dict) else formats.text(value) for name, value in flat.items()}


def _run(run: Mapping[str, Any]) -> str:
    """Where rows come from: versions, device and seconds of a run."""
    batches = run['batches']
    seconds = sum(batch['wall_seconds'] + batch['compile_seconds'] for batch in batches)
    versions = ', '.join(f'{name} {version}' for name, version in run.get('packages', {}).items())
    return (
        f'{run.get("started", "?")}: {len(batches)} lane batches in {seconds:.0f} s on {run.get("device", "?")}; '
        f'commit {run.get("git_commit")}; Python {run.get("python", "?")}, {versions}'
    )
