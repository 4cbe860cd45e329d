"""Numbers in texts: what committed rows say, as the text writes it.

    rows = numbers.Rows('experiments/results')
    lanes = rows('figure1a_tuned', model='ffn')
    f'The FFN needs {lanes.mean(by="seq_len")} samples, N^{lanes.exponent()}.'

A number that rests on fewer than three lanes at some point is an error, and so is a number from a damaged file.
"""

import pathlib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from qstr_jax import analysis
from qstr_jax.analysis import answers, evidence, exponents, floors, formats, growth, kinds, names, selection, summary
from qstr_jax.analysis.exponents import MIN_LANES
from qstr_jax.analysis.measured import measured
from qstr_jax.analysis.samples_table import learn_text, mean_text
from qstr_jax.report import lanes as exhibit_lanes
from qstr_jax.storage import files, provenance, results


class Rows:
    """The results directories below a folder, each read once."""

    def __init__(self, root: str | pathlib.Path) -> None:
        self.root = pathlib.Path(root)
        self._stored: dict[str, pd.DataFrame] = {}
        self._tables: dict[str, pd.DataFrame] = {}

    def __call__(self, *folders: str, **settings: Any) -> 'Lanes':
        """The lanes of some directories with some settings."""
        tables = [self._table(folder) for folder in folders]
        lanes = pd.concat(tables, ignore_index=True) if len(tables) > 1 else tables[0]
        return Lanes(self.root, folders, lanes).where(**settings)

    def written(self, folder: str, name: str) -> 'Lanes':
        """A table that a drawing wrote beside the rows, such as 'table.md'."""
        table = formats.read_markdown((self.root / folder / name).read_text())
        return Lanes(self.root, (folder,), table.assign(folder=folder))

    def table1(self) -> str:
        """Table 1 in six lines, as Markdown; `make table1` wrote it beside the rows."""
        return formats.markdown(answers.answers(files.read_table(self.root / 'table1/table1.parquet')))

    def stored(self, folder: str) -> pd.DataFrame:
        """The rows of a directory as they are stored."""
        if folder not in self._stored:
            self._stored[folder] = results.load(self.root / folder, strict=True)
        return self._stored[folder]

    def _table(self, folder: str) -> pd.DataFrame:
        if folder not in self._tables:
            table = self.stored(folder)
            # Lanes that chose a setting are counted; nobody asks where between two checks they crossed, and their
            # curves are longer than all others.
            if pathlib.Path(folder).name != results.SELECTION:
                table = exhibit_lanes.at_thresholds(self.root / folder, strict=True, rows=table)
            self._tables[folder] = table.assign(folder=folder)
        return self._tables[folder]


class Lanes:
    """Some lanes, and what a text says about them."""

    def __init__(self, root: pathlib.Path, folders: tuple[str, ...], table: pd.DataFrame) -> None:
        self.root, self.folders, self.table = root, folders, table

    def where(self, **settings: Any) -> 'Lanes':
        """The lanes with some settings."""
        table = self._with(settings)
        if table.empty:
            raise ValueError(f'no lanes of {", ".join(self.folders)} with {settings}')
        return Lanes(self.root, self.folders, table)

    def exponent(self, x: str = 'seq_len') -> str:
        """'0.82 [0.43, 1.20]'."""
        return _minus(str(self._fit(x)))

    def law(self, x: str = 'seq_len') -> str:
        """'N^a', '(log N)^1.5', 'undecided' or 'undecided: N = 4 decides'."""
        return _minus(growth.law(self._fit(x)))

    def slopes(self, x: str = 'seq_len') -> str:
        """'1.36, 0.58': exponents between neighbours."""
        return _minus(growth.local_slopes(self._fit(x)))

    def mean(self, column: str = '', by: str = '', digits: int = 2) -> str:
        """'12k, 20k, ≥ 40k': means of samples, or of a column, at each value of a setting."""
        return self._listed('mean', column, by, digits)

    def mean_or_dash(self, **settings: Any) -> str:
        """The mean samples of the lanes with some settings; '–' for fewer of them than a number needs."""
        table = self._with(settings)
        return '–' if table['seed'].nunique() < MIN_LANES else Lanes(self.root, self.folders, table).mean()

    def median(self, column: str, digits: int = 2) -> str:
        """As `mean`, of a column: its median, which the figure of learning curves draws."""
        return self._listed('median', column, '', digits)

    def smallest(self, column: str = '', digits: int = 2) -> str:
        """As `mean`, of the smallest values."""
        return self._listed('min', column, '', digits)

    def largest(self, column: str = '') -> str:
        """As `mean`, of the largest values."""
        return self._listed('max', column, '', 2)

    def thousands(self) -> str:
        """'28.5 (25.6 – 30.1), 3 of 5 learn': mean, smallest and largest samples in thousands."""
        point = self._points('', '')[0]
        mean, least, most = (point[name] / 1000 for name in ('mean', 'min', 'max'))
        text = f'{"≥ " * point["lower_bound"]}{mean:.3g} ({least:.3g} – {most:.3g})'
        return ', '.join(part for part in (text, learn_text(point)) if part)

    def lanes(self) -> str:
        """'5', or '5 to 24': lanes of a point."""
        counts = self.table.groupby(['folder', 'cell'])['seed'].nunique()
        return f'{counts.min()}' if counts.nunique() == 1 else f'{counts.min()} to {counts.max()}'

    def samples_table(self, by: str) -> str:
        """Markdown: a line an architecture, a column a value of a setting, mean samples of the lanes that get there."""
        values = self.values(by)
        lines = [
            [names.display(model), *(self.mean_or_dash(model=model, **{by: value}) for value in values)]
            for model in names.model_order(self.table)
        ]
        return formats.pipes(['samples', *(names.setting_text(by, value) for value in values)], lines)

    def count(self, **settings: Any) -> int:
        """How many lanes there are, or how many with some settings."""
        return len(self._with(settings))

    def values(self, column: str) -> list[Any]:
        """The values of a column, sorted, each once."""
        return sorted(self.table[column].dropna().unique())

    def extent(self, column: str) -> str:
        """'0.03', or '0.001 to 0.01' where there are several: the values of a setting."""
        values = self.values(column)
        return f'{values[0]:g}' if len(values) == 1 else f'{values[0]:g} to {values[-1]:g}'

    def below_floor(self) -> str:
        """How many runs of FFNs lie below Theorem 6's floor of their own training set: 'none', or a number."""
        table = floors.floor_table(floors.with_floor(self.table))
        number = int(table.loc[table['model'] == 'ffn', 'num_below'].sum())
        return str(number) if number else 'none'

    def time(self) -> str:
        """'13 minutes': what the cells took, with compiling, in all sittings."""
        cells = set(self.table['cell'])
        runs = [run for folder in self.folders for run in provenance.load(self.root / folder)]
        batches = [batch for run in runs for batch in run['batches'] if batch['cell'] in cells]
        seconds = sum(batch['wall_seconds'] + batch['compile_seconds'] for batch in batches)
        if seconds < 100:
            return f'{seconds:.0f} seconds'
        return f'{seconds / 60:.0f} minutes' if seconds < 6000 else f'{seconds / 3600:.1f} hours'

    def _with(self, settings: Mapping[str, Any]) -> pd.DataFrame:
        """The rows with some settings; perhaps none."""
        is_wanted = np.ones(len(self.table), bool)
        for name, value in settings.items():
            wanted = [_plain(one) for one in (value if isinstance(value, tuple) else (value,))]
            is_wanted &= self.table[name].map(_plain).isin(wanted).to_numpy()
        return self.table[is_wanted]

    def _fit(self, x: str) -> analysis.Exponent:
        """The exponent of the only curve; against N, of those lanes that Table 1 would take."""
        found = list(evidence.curves(self.table)) if x == 'seq_len' else [self.table]
        if len(found) != 1:
            raise ValueError(f'{len(found)} curves, one is needed')
        _check_lanes(found[0], [x])
        fit = exponents.fit(found[0], x)
        if fit.value is None:
            raise ValueError(f'no exponent: {fit.note}')
        return fit

    def _selected(self) -> pd.DataFrame:
        """The lanes; of searches and fits those that validation chooses, as in the figures."""
        is_fixed = 'outcome' in self.table.columns and kinds.split_kinds(self.table).online.empty
        return selection.select(self.table) if is_fixed else self.table

    def _points(self, column: str, by: str) -> list[dict[str, Any]]:
        """`summary.point_of`, or mean, median, smallest and largest of another column, at each value of a setting."""
        lanes = self._selected()
        others = [] if column else analysis.curve_columns(lanes)[1:]
        if others := [name for name in others if name != by and lanes[name].nunique() > 1]:
            raise ValueError(f'several points: choose {", ".join(others)}')
        _check_lanes(lanes, [by] if by else [])
        groups = [own for _, own in lanes.groupby(by)] if by else [lanes]
        if column:
            values = [pd.to_numeric(own[column]) for own in groups]
            return [own.agg(['mean', 'median', 'min', 'max']).to_dict() for own in values]
        return [summary.point_of(measured(own)) for own in groups]

    def _listed(self, statistic: str, column: str, by: str, digits: int) -> str:
        """One statistic at each value of a setting: '248k, 28.5k (3 of 5 learn), ≥ 1M (0 of 5 learn)'."""
        points = self._points(column, by)
        texts = [f'{point[statistic]:.{digits}g}' if column else _text(point, statistic) for point in points]
        return _minus(', '.join(texts))


def _plain(value: Any) -> Any:
    """A setting so that 1, 1.0, True and numpy's are equal, and so are all missing values."""
    if isinstance(value, str):
        return value
    return 'None' if value is None or pd.isna(value) else float(value)


def _check_lanes(lanes: pd.DataFrame, by: list[str]) -> None:
    """Raises ValueError where a point has fewer than three lanes."""
    fewest = lanes.groupby(by, dropna=False)['seed'].nunique().min() if by else lanes['seed'].nunique()
    if fewest < MIN_LANES:
        raise ValueError(f'rests on {fewest} lanes, {MIN_LANES} are needed')


def mean_of(point: Mapping[str, Any]) -> str:
    """'12.3k', '27.4k (3 of 5 learn)', '~ 1.28k' or '≥ 1M'; '(2 of 5 learn)' of too few for a mean."""
    some = learn_text(point)
    if some and 0 < point['num_learn'] < MIN_LANES:
        return f'({some})'
    return f'{mean_text(point)}{some and f" ({some})"}'


def and_last(parts: Iterable[Any]) -> str:
    """'4, 8 and 16'."""
    *most, last = map(str, parts)
    return f'{", ".join(most)} and {last}' if most else last


def _text(point: dict[str, Any], statistic: str) -> str:
    """The mean, smallest or largest samples of a point."""
    if statistic == 'mean':
        return mean_of(point)
    bound = '≥ ' if point['lower_bound'] and statistic == 'max' else ''
    return f'{bound}{analysis.short_number(point[statistic])}'


def _minus(text: str) -> str:
    return text.replace('-', '−')
