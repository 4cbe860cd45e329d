"""The gallery and the README's numbers: texts whose numbers come from rows.

In the template a placeholder `{{mean figure1b model=ffn seq_len=25}}` names a quantity (a function of this module in
`QUANTITIES`), a results directory (or several, joined by +), settings that choose lanes, and options that the quantity
takes: `by` a setting, `x` for exponents against another setting than N, another `column` than the samples, with so many
`digits`, and `table=table.md` for numbers that a binary wrote beside the rows. `{{table1}}` is Table 1, and
`{{published 117k}}` the paper's number. A number that rests on fewer than three lanes at some point is an error.
"""

import pathlib
import re
import shlex
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pandas as pd

from qstr_jax import analysis
from qstr_jax.analysis import evidence, exponents, floors, formats, growth, kinds, selection, summary, table1
from qstr_jax.analysis.samples_table import learn_text
from qstr_jax.report import lanes as exhibit_lanes
from qstr_jax.storage import files, provenance, results

MIN_LANES = 3
START, END = '<!-- numbers: written by make gallery -->\n', '<!-- end of the numbers -->\n'
_PLACEHOLDER = re.compile(r'\{\{(.+?)\}\}')
_OPTIONS = ('x', 'by', 'column', 'digits', 'table')


class Chosen(NamedTuple):
    """What a placeholder is about.

    Attributes:
        root: the folder of all results directories.
        folders: the names of its directories.
        lanes: their rows, of the settings that it names.
        options: its options.
    """

    root: pathlib.Path
    folders: tuple[str, ...]
    lanes: pd.DataFrame
    options: Mapping[str, str]


def render(template: str, root: str | pathlib.Path) -> str:
    """The template with its placeholders filled.

    Args:
        template: the text.
        root: the folder of the results directories.

    Raises:
        ValueError: a placeholder that cannot be filled, or rests on a damaged file; the message names it.
    """
    rows: dict[str, pd.DataFrame] = {}

    def fill(match: re.Match[str]) -> str:
        try:
            return _filled(match.group(1), pathlib.Path(root), rows)
        except (ValueError, KeyError, OSError, files.ResultsError) as error:
            raise ValueError(f'{match.group(0)}: {error}') from None

    return _PLACEHOLDER.sub(fill, template)


def placed(path: pathlib.Path, numbers: str) -> str:
    """The text of a page, such as the README, with other numbers.

    Args:
        path: the page, in which the numbers stand between `START` and `END`.
        numbers: of `render`.

    Raises:
        ValueError: it does not hold both, in this order.
    """
    page = path.read_text()
    if not 0 <= page.find(START) < page.find(END):
        raise ValueError(f'{path.name}: must hold {START.strip()!r} and then {END.strip()!r}')
    head, rest = page.split(START, 1)
    return f'{head}{START}{numbers}{END}{rest.split(END, 1)[1]}'


def _filled(text: str, root: pathlib.Path, rows: dict[str, pd.DataFrame]) -> str:
    """The text of one placeholder; `rows` keeps what was read."""
    name, *words = shlex.split(text)
    if name == 'published':
        return ' '.join(words)
    if name == 'table1':
        return table1.markdown(table1.measure(results.load_all([root], strict=True, read=exhibit_lanes.load)))
    if name not in QUANTITIES:
        raise ValueError(f'no such quantity: there are table1, published, {", ".join(QUANTITIES)}')
    folders = tuple(words[0].split('+'))
    pairs = [word.partition('=')[::2] for word in words[1:]]
    options = {column: value for column, value in pairs if column in _OPTIONS}
    table = options.get('table', '')
    for folder in folders:
        if f'{folder}/{table}' not in rows:
            path = root / folder / table
            read = formats.read_markdown(path.read_text()) if table else exhibit_lanes.at_thresholds(path, strict=True)
            rows[f'{folder}/{table}'] = read.assign(folder=folder)
    lanes = pd.concat([rows[f'{folder}/{table}'] for folder in folders], ignore_index=True)
    for column, value in pairs:
        if column not in _OPTIONS:
            lanes = lanes[lanes[column].map(_text).isin(value.split('|'))]
    if lanes.empty:
        raise ValueError('no lanes')
    return QUANTITIES[name](Chosen(root, folders, lanes, options)).replace('-', '−')


def _text(value: Any) -> str:
    """A setting in a placeholder: '0.01', '25', '60,1000', 'ffn'; True is '1', a missing value 'None' or 'nan'."""
    return str(value) if isinstance(value, str) or value is None else f'{float(value):g}'


def _check_lanes(lanes: pd.DataFrame, by: list[str]) -> None:
    """Raises ValueError where a point has fewer than three lanes."""
    fewest = lanes.groupby(by, dropna=False)['seed'].nunique().min() if by else lanes['seed'].nunique()
    if fewest < MIN_LANES:
        raise ValueError(f'rests on {fewest} lanes, {MIN_LANES} are needed')


def _curve(chosen: Chosen) -> pd.DataFrame:
    """The lanes of the only curve; against N they are those of Table 1."""
    x = chosen.options.get('x', 'seq_len')
    found = list(evidence.curves(chosen.lanes)) if x == 'seq_len' else [chosen.lanes]
    if len(found) != 1:
        raise ValueError(f'{len(found)} curves, one is needed')
    _check_lanes(found[0], [x])
    return found[0]


def _fit(chosen: Chosen) -> analysis.Exponent:
    fit = exponents.fit(_curve(chosen), chosen.options.get('x', 'seq_len'))
    if fit.value is None:
        raise ValueError(f'no exponent: {fit.note}')
    return fit


def _exponent(chosen: Chosen) -> str:
    """'0.82 [0.43, 1.20]'."""
    return str(_fit(chosen))


def _law(chosen: Chosen) -> str:
    """'N^a', '(log N)^1.5', 'undecided' or 'undecided: N = 4 decides'."""
    return growth.law(_fit(chosen))


def _slopes(chosen: Chosen) -> str:
    """'1.36, 0.58': exponents between neighbouring N."""
    return growth.local_slopes(_fit(chosen))


def _points(chosen: Chosen) -> list[dict[str, Any]]:
    """`summary.point` of the lanes, or mean, smallest and largest of another column, by the option `by`."""
    lanes, options = chosen.lanes, chosen.options
    if 'table' not in options and kinds.split_kinds(lanes).online.empty:
        lanes = selection.select(lanes)  # by validation, as the figures
    by = options['by'].split('|') if 'by' in options else []
    others = [] if 'column' in options else analysis.curve_columns(lanes)[1:]
    if others := [name for name in others if name not in by and lanes[name].nunique() > 1]:
        raise ValueError(f'several points: choose {", ".join(others)}')
    _check_lanes(lanes, by)
    groups = [own for _, own in lanes.groupby(by)] if by else [lanes]
    if 'column' in options:
        columns = [pd.to_numeric(own[options['column']]) for own in groups]
        return [{'mean': own.mean(), 'min': own.min(), 'max': own.max()} for own in columns]
    return [summary.point(own) for own in groups]


def _listed(name: str) -> Callable[[Chosen], str]:
    """A quantity that lists one statistic: '248k, 28.5k (3 of 5 learn), ≥ 1000k (0 of 5 learn)'."""

    def text(point: Mapping[str, Any], options: Mapping[str, str]) -> str:
        if 'column' in options:
            return f'{point[name]:.{int(options.get("digits", 2))}g}'
        bound = '≥ ' if point['lower_bound'] and name != 'min' else ''
        some = learn_text(point) if name == 'mean' else ''
        return f'{bound}{analysis.short_number(point[name])}{some and f" ({some})"}'

    return lambda chosen: ', '.join(text(point, chosen.options) for point in _points(chosen))


def _thousands(chosen: Chosen) -> str:
    """'28.5 (25.6 – 30.1), 3 of 5 learn': mean, smallest and largest in thousands."""
    point = _points(chosen)[0]
    mean, least, most = (point[name] / 1000 for name in ('mean', 'min', 'max'))
    text = f'{"≥ " * point["lower_bound"]}{mean:.3g} ({least:.3g} – {most:.3g})'
    return ', '.join(part for part in (text, learn_text(point)) if part)


def _lanes(chosen: Chosen) -> str:
    """'5', or '5 to 24': lanes of a point."""
    counts = chosen.lanes.groupby(['folder', 'cell'])['seed'].nunique()
    return f'{counts.min()}' if counts.nunique() == 1 else f'{counts.min()} to {counts.max()}'


def _count(chosen: Chosen) -> str:
    """The number of rows."""
    return str(len(chosen.lanes))


def _below_floor(chosen: Chosen) -> str:
    """How many runs of FFNs lie below Theorem 6's floor of their own training set: 'none', or a number."""
    table = floors.floor_table(floors.with_floor(chosen.lanes))
    number = int(table.loc[table['model'] == 'ffn', 'num_below'].sum())
    return str(number) if number else 'none'


def _time(chosen: Chosen) -> str:
    """'13 minutes': what the cells took, with compiling, in all sittings."""
    cells = set(chosen.lanes['cell'])
    runs = [run for folder in chosen.folders for run in provenance.load(chosen.root / folder)]
    batches = [batch for run in runs for batch in run.get('batches') or [] if batch['cell'] in cells]
    seconds = sum(batch['wall_seconds'] + batch['compile_seconds'] for batch in batches)
    if seconds < 100:
        return f'{seconds:.0f} seconds'
    return f'{seconds / 60:.0f} minutes' if seconds < 6000 else f'{seconds / 3600:.1f} hours'


QUANTITIES: dict[str, Callable[[Chosen], Any]] = {
    'exponent': _exponent,
    'law': _law,
    'slopes': _slopes,
    'mean': _listed('mean'),
    'smallest': _listed('min'),
    'largest': _listed('max'),
    'thousands': _thousands,
    'lanes': _lanes,
    'count': _count,
    'below_floor': _below_floor,
    'time': _time,
}
