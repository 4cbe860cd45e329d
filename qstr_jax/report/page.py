"""Sections as one HTML page that loads nothing: styles and pictures are inside, and its policy forbids the network."""

import base64
import html
import io
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from qstr_jax.analysis import formats
from qstr_jax.plots import STYLE
from qstr_jax.report.section import Section

_HEAD = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>qstr_jax: report</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
h2 { margin-top: 2.5rem; border-bottom: 1px solid #ccc; }
pre { font-size: 0.85rem; overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.85rem; margin: 0.5rem 0 1rem; display: block; overflow-x: auto; }
th, td { text-align: left; padding: 0.2rem 0.7rem; border-bottom: 1px solid #ddd; vertical-align: top; }
th { border-bottom: 2px solid #888; } figure { display: inline-block; margin: 0.5rem 1rem 0.5rem 0; max-width: 100%; }
figure img { max-width: 100%; } img.kept { width: 34rem; }
figcaption, caption { color: #555; font-size: 0.85rem; text-align: left; }
code { font-size: 0.85rem; background: #f4f4f4; overflow-wrap: anywhere; } .gap { color: #a33; }
nav li { line-height: 1.35; }
</style></head><body>
"""
_DPI = 110


def html_of(overview: Section, sections: Sequence[Section]) -> str:
    """The page of an overview and sections.

    Args:
        overview: comes first.
        sections: one per directory.
    """
    names = {f's{i}': html.escape(section.name) for i, section in enumerate(sections)}
    entries = ''.join(f'<li><a href="#{anchor}">{name}</a></li>\n' for anchor, name in names.items())
    parts = [
        _HEAD, '<h1>Report</h1>\n', _section(overview, 'overview'),
        f'<h2>Directories</h2>\n<nav><ul>{entries}</ul></nav>\n',
        *(_section(section, anchor) for anchor, section in zip(names, sections, strict=True)), '</body></html>\n',
    ]  # fmt: skip
    return ''.join(parts)


def png_of(figure: Figure) -> bytes:
    """A figure as PNG bytes.

    Args:
        figure: to be drawn.
    """
    buffer = io.BytesIO()
    with matplotlib.rc_context(STYLE):
        figure.savefig(buffer, format='png', dpi=_DPI)
    return buffer.getvalue()


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


def _section(section: Section, anchor: str) -> str:
    parts = [f'<section id="{anchor}"><h2>{html.escape(section.name)}</h2>\n']
    for text, is_problem in section.words:
        parts.append(f'<p{" class=gap" if is_problem else ""}>{html.escape(text)}</p>\n')
    for caption, frame in section.tables:
        parts.append(f'<p><b>{html.escape(caption)}</b></p>\n{formats.as_html(frame)}')
    parts += [_picture(caption, png_of(figure)) for caption, figure in section.figures]
    parts += [_picture(caption, png, ' class="kept"') for caption, png in section.pictures]
    for caption, text in section.texts:
        parts.append(f'<p><b>{html.escape(caption)}</b></p>\n<pre>{html.escape(text)}</pre>\n')
    parts += [*map(_settings, section.sweeps), _runs(section.runs), '</section>\n']
    return ''.join(parts)


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
