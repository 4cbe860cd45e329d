"""Sections as one HTML page that loads nothing: all is inside, and its policy forbids the network and other code."""

import base64
import pathlib
from collections.abc import Iterator, Mapping, Sequence
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
    pages: Mapping[str, Page] | None = None,
    links: Mapping[str, str] | None = None,
) -> str:
    """The page of an explorer, a headline, an overview and sections."""

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
    return template.render(given, pictures=_Pictures(room).of)


class _Pictures:
    """The pictures of sections as base64, as long as there is room."""

    def __init__(self, room: int) -> None:
        self._room = room

    def of(self, section: Section) -> Iterator[tuple[str, str, str]]:
        """Caption, data and class of each; no data where there is no more room."""
        # What a binary drew from the same rows is not drawn again.
        drawn = () if section.pictures else section.figures
        found = [(caption, pictures.png_of(draw()), '') for caption, draw in drawn]
        found += [(caption, pictures.small(png), 'kept') for caption, png in section.pictures]
        for caption, png, kind in found:
            data = base64.b64encode(png).decode()
            size = len(data) + 2 * len(caption.encode()) + 200
            is_there = size <= self._room
            self._room -= size * is_there
            yield caption, data if is_there else '', kind


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
