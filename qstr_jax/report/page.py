"""Sections as one HTML page that loads nothing: all is inside, and its policy forbids the network and other code."""

import base64
import html
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from qstr_jax import analysis
from qstr_jax.analysis import formats
from qstr_jax.report import explorer, pictures, scripts
from qstr_jax.report.section import Section

_HEAD = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>qstr_jax: report</title>
<style>
{css}</style></head><body>
<h1>How many samples does each architecture need?</h1>
"""
# What the scripts fill.
_EXPLORER = """<section id="explore"><h2>Explore</h2>
<noscript><p>This part needs JavaScript; all that follows does not.</p></noscript>
<div id="explorer">
<div class="controls">
<label class="field" for="exhibit">exhibit<select id="exhibit"></select></label>
<label class="field" for="x">across<select id="x"></select></label>
<label class="field" for="y">up<select id="y"></select></label>
</div>
<div class="controls" id="filters"></div>
<div class="charts">
<figure><div class="chart" id="points"></div>
<figcaption>Each mark is a lane, the line joins their means. Hollow marks with ↑ need more samples than they were given.
</figcaption></figure>
<figure><div class="chart" id="curves"></div>
<figcaption>Test loss of each lane; the dotted line is the threshold.</figcaption></figure>
</div>
<div id="lane"></div>
<p class="note" id="count" role="status"></p>
<div id="lanes" tabindex="0" role="region" aria-label="Lanes"></div>
</div></section>
"""


def html_of(overview: Section, sections: Sequence[Section], headline: Section | None = None) -> str:
    """The page of a headline, an explorer, an overview and sections.

    Args:
        overview: Table 1.
        sections: one per directory.
        headline: comes first.
    """
    exhibits = explorer.exhibits(sections)
    code = scripts.javascript() if exhibits else ()
    names = {f's{i}': html.escape(section.name) for i, section in enumerate(sections)}
    entries = ''.join(f'<li><a href="#{anchor}">{name}</a></li>\n' for anchor, name in names.items())
    known = {exhibit['name']: exhibit['short'] for exhibit in exhibits}
    parts = [
        _HEAD.format(policy=scripts.policy(code), css=scripts.css()),
        *([_section(headline, 'headline', known)] if headline else []),
        *([_EXPLORER] if exhibits else []),
        _section(overview, 'overview', known),
        f'<h2>Directories</h2>\n<nav><ul>{entries}</ul></nav>\n',
        *(_folded(section, anchor, known) for anchor, section in zip(names, sections, strict=True)),
        *([f'<script type="application/json" id="data">{_data(exhibits)}</script>\n'] if exhibits else []),
        *(f'<script>{text}</script>\n' for text in code), '</body></html>\n',
    ]  # fmt: skip
    return ''.join(parts)


def _data(exhibits: Sequence[dict[str, Any]]) -> str:
    """What the explorer shows; the exhibit with most of the paper's models, and most lanes of these, comes first."""
    models = {model for exhibit in exhibits for model in exhibit['rows']['model']}
    looks = scripts.looks(analysis.model_order(pd.DataFrame({'model': list(models)})))

    def richness(exhibit: dict[str, Any]) -> tuple[bool, int, int]:
        rows = exhibit['rows']
        return exhibit['values'][0][0] == 'samples', len({*rows['model']} & {*analysis.MODELS}), len(rows['lane'])

    first = max(exhibits, key=richness)['name']
    return scripts.as_json({'exhibits': list(exhibits), 'looks': looks, 'first': first})


def command(arguments: Sequence[object]) -> str:
    """The command of a run as one would type it: `python -m experiments.NAME …` for our binaries.

    Args:
        arguments: the program's, as provenance has them.
    """
    if not arguments:
        return '(called from Python)'
    first = pathlib.Path(str(arguments[0]))
    is_ours = first.parent.name == 'experiments' and first.suffix == '.py'
    start = f'python -m experiments.{first.stem}' if is_ours else str(first)
    return ' '.join([start, *map(str, arguments[1:])])


def _section(section: Section, anchor: str, exhibits: Mapping[str, str]) -> str:
    return f'<section id="{anchor}"><h2>{html.escape(section.name)}</h2>\n{_body(section, exhibits)}</section>\n'


def _folded(section: Section, anchor: str, exhibits: Mapping[str, str]) -> str:
    """A section that opens on a click."""
    title = f'<summary><h2>{html.escape(section.name)}</h2></summary>'
    return f'<section id="{anchor}"><details class="section">{title}\n{_body(section, exhibits)}</details></section>\n'


def _body(section: Section, exhibits: Mapping[str, str]) -> str:
    parts = []
    if section.name in exhibits:
        parts.append(f'<p class="screen">{_link(section.name)}</p>\n')
    for text, is_problem in section.words:
        parts.append(f'<p{" class=gap" if is_problem else ""}>{html.escape(text)}</p>\n')
    for caption, frame in section.tables:
        table = formats.as_html(frame)
        for name in frame['directory'] if 'directory' in frame.columns else ():
            if name in exhibits:
                link = _link(name, exhibits[name])
                table = table.replace(f'<td>{html.escape(name)}</td>', f'<td>{link}</td>')
        parts.append(f'<p><b>{html.escape(caption)}</b></p>\n{table}')
    # What a binary drew from the same rows is not drawn again.
    if not section.pictures:
        parts += [_picture(caption, pictures.png_of(draw())) for caption, draw in section.figures]
    parts += [_picture(caption, pictures.small(png), ' class="kept"') for caption, png in section.pictures]
    for caption, text in section.texts:
        parts.append(f'<p><b>{html.escape(caption)}</b></p>\n<pre>{html.escape(text)}</pre>\n')
    return ''.join([*parts, *map(_settings, section.sweeps), _runs(section.runs)])


def _link(name: str, text: str = 'Show in the explorer') -> str:
    return f'<a href="#explore" data-exhibit="{html.escape(name)}">{html.escape(text)}</a>'


def _picture(caption: str, png: bytes, kind: str = '') -> str:
    data, text = base64.b64encode(png).decode(), html.escape(caption)
    image = f'<img{kind} alt="{text}" src="data:image/png;base64,{data}">'
    return f'<figure>{image}<figcaption>{text}</figcaption></figure>\n'


def _settings(sweep: Mapping[str, Any]) -> str:
    """The settings of one sweep, as a table that opens on a click."""
    given = sweep.get('settings')
    flat = {**sweep, **given} if isinstance(given, dict) else dict(sweep)
    items = ''.join(
        f'<tr><td>{html.escape(str(name))}</td><td>{html.escape(_value(value))}</td></tr>\n'
        for name, value in flat.items()
        if value is not given or not isinstance(given, dict)
    )
    return f'<details><summary>Settings</summary><table><tbody>{items}</tbody></table></details>\n'


def _value(value: Any) -> str:
    return str(value) if isinstance(value, dict) else formats.text(value)


def _runs(runs: Sequence[Mapping[str, Any]]) -> str:
    """Where the rows come from: versions, device, seconds and command of each run."""
    items = ''.join(f'<li>{_run(run)}</li>\n' for run in runs)
    return f'<details><summary>Provenance: {len(runs)} runs</summary><ul>{items}</ul></details>\n' if runs else ''


def _run(run: Mapping[str, Any]) -> str:
    batches = [batch for batch in run.get('batches', []) if isinstance(batch, dict)]
    seconds = sum(batch.get('wall_seconds', 0) + batch.get('compile_seconds', 0) for batch in batches)
    versions = ', '.join(f'{name} {version}' for name, version in run.get('packages', {}).items())
    facts = (
        f'{run.get("started", "?")}: {len(batches)} lane batches in {seconds:.0f} s on {run.get("device", "?")}; '
        f'commit {run.get("git_commit")}; Python {run.get("python", "?")}, {versions}'
    )
    return f'{html.escape(facts)}<br><code>{html.escape(command(run.get("command", [])))}</code>'
