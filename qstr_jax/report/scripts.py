"""The page's scripts, and the policy that lets exactly these scripts run."""

import base64
import functools
import gzip
import hashlib
import json
import pathlib
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import vl_convert
from matplotlib import colors
from matplotlib.markers import MarkerStyle

from qstr_jax import analysis
from qstr_jax.plots import style

ASSETS = pathlib.Path(__file__).parent / 'assets'
_SVG = {1: 'M', 2: 'L', 3: 'Q', 4: 'C', 79: 'Z'}  # Matplotlib's codes of a path.


@functools.cache
def javascript() -> tuple[str, ...]:
    """The scripts of a page with an explorer: Vega-Lite with all that it needs, then ours."""
    ours = ''.join((ASSETS / name).read_text() for name in ('charts.js', 'explorer.js'))
    # Within a script the end tag may only stand escaped, which is the same inside a string.
    bundle = vl_convert.javascript_bundle()  # type: ignore[call-arg]
    return tuple(text.replace('</script', r'<\/script') for text in (bundle, ours))


def policy(scripts: Sequence[str]) -> str:
    """A Content-Security-Policy: no network, no frames, no code but the given."""
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts]
    allowed = ' '.join(f"'sha256-{digest}'" for digest in digests) or "'none'"
    return (
        f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src {allowed}; "
        "base-uri 'none'; form-action 'none'"
    )


def packed(data: Any) -> str:
    """Data without NaN as JSON, gzip and base64."""
    text = json.dumps(data, allow_nan=False, ensure_ascii=False, separators=(',', ':'))
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def looks(models: Sequence[str]) -> dict[str, dict[str, Any]]:
    """What figures show each model with, for Vega: `name`, `colour`, `shape` as an SVG path and `dash`."""
    found = {}
    for model, (colour, marker, line) in style.looks(models).items():
        shade = 'currentColor' if colour == '#000000' else colors.to_hex(colour)  # Black is lost on a dark page.
        dash = [1, 0] if line == '-' else [1.6 * part for part in line[1]]
        found[model] = {'name': analysis.display(model), 'colour': shade, 'shape': _path(marker), 'dash': dash}
    return found


def _path(marker: str) -> str:
    """Matplotlib's marker as an SVG path within a square from −1 to 1."""
    shape = MarkerStyle(marker)
    path = shape.get_path().transformed(shape.get_transform())
    size = np.abs(path.vertices).max()
    parts = []
    for vertices, code in path.iter_segments(curves=True, simplify=False):
        points = vertices.reshape(-1, 2) / size * (1, -1)  # SVG's y axis points down.
        numbers = '' if _SVG[int(code)] == 'Z' else ','.join(f'{value:.3f}' for value in points.flatten())
        parts.append(_SVG[int(code)] + numbers)
    return re.sub(r'-0\.000', '0', ''.join(parts))
