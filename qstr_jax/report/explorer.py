"""What the page's explorer shows: per directory its lanes, thinned curves and commands, as plain data for JSON."""

import functools
import itertools
import math
import os
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from qstr_jax import analysis, columns
from qstr_jax.analysis import crossings, erms, exponents, kinds, names, resolution, selection, summary, tuning
from qstr_jax.report import commands
from qstr_jax.report.section import Section
from qstr_jax.settings import function_names
from qstr_jax.storage import lane_keys

# Points of a lane's curve that are kept, more of them early.
_MOST_POINTS = 40
# Settings with more values get no filter.
_MOST_VALUES = 24
_CHOSEN = 'chosen'
# What every row has, beside its settings.
_MEASURED = (
    'num_samples', 'samples', 'crossed', 'bound', 'is_short', 'loss_threshold', 'test_loss', 'seed', 'lane', 'outcome',
)  # fmt: skip


def exhibits(sections: Sequence[Section]) -> list[dict[str, Any]]:
    """One exhibit for each kind of learner in each directory that has rows."""
    found, short = [], short_names([section.name for section in sections])
    for section in sections:
        if section.rows.empty or 'test_loss' not in section.rows.columns:
            continue
        rows = section.rows.assign(lane=range(len(section.rows)))
        parts = {name: some for name, some in kinds.split_kinds(rows)._asdict().items() if len(some)}
        for name, some in parts.items():
            suffix = f' ({name})' if len(parts) > 1 else ''
            named = {
                'name': f'{section.name}{suffix}',
                'short': f'{short[section.name]}{suffix}',
                'directory': short[section.name],
                'folder': section.name,
            }
            found.append({**named, **_exhibit(section, some, is_fit=name == 'fits')})
    return found


def short_names(folders: Sequence[str]) -> dict[str, str]:
    """Directories without the path that all of them share."""
    paths = [pathlib.PurePath(name) for name in folders]
    levels = [len(set(parts)) == 1 for parts in zip(*(path.parts[:-1] for path in paths), strict=False)]
    shared = levels.index(False) if False in levels else len(levels)
    return {name: str(pathlib.PurePath(*path.parts[shared:])) for name, path in zip(folders, paths, strict=True)}


def _exhibit(section: Section, rows: pd.DataFrame, is_fit: bool) -> dict[str, Any]:
    lanes, order = _lanes(section, rows), {lane: place for place, lane in enumerate(rows['lane'])}
    own_thresholds = set(rows.get('threshold', ()))
    is_worst = bool(rows['learner'].eq(erms.WORST).all())  # its rows are of n at which an ERM errs
    rows = erms.worst(rows) if is_worst else rows
    rows = resolution.interpolated(crossings.at_thresholds(rows), section.curves)
    rows = _sorted(_with_choice(rows))
    has_samples = not is_fit and bool(rows['outcome'].eq('reached').any())
    settings = _settings(rows, is_fit)
    rows = _with_measures(rows.assign(lane=rows['lane'].map(order)))
    rows['samples'] = rows['samples'] if has_samples else np.nan
    rows['loss_threshold'] = math.nan if is_fit else crossings.loss_thresholds(rows)
    rows['test_loss'] = math.nan if is_worst else rows['test_loss']  # of the search's last fit, which is of another n
    numeric = [name for name in settings if pd.api.types.is_numeric_dtype(rows[name]) and name != _CHOSEN]
    axes = [name for name in numeric if rows[name].nunique() > 1] or ['seq_len']
    fits, named = _fits(rows, axes) if has_samples else ([], {})
    added = [name for name in named if name not in settings]
    rows = rows.assign(**{name: named[name] for name in added})
    headings = _headings(rows, settings) | {name: analysis.heading(name) for name in added}
    filters = [_filter(name, heading, rows[name], own_thresholds) for name, heading in headings.items()]
    tuned = sorted(tuning.tuned_settings(rows))
    shown = {name: analysis.heading(name) for name in tuned if name in rows.columns and name not in headings}
    drawn = [name for name in shown if pd.api.types.is_numeric_dtype(rows[name])]
    samples_heading = columns.label('erring_samples').replace('$', '') if is_worst else 'samples to threshold'
    return {
        'filters': [one for one in filters if one],
        'axes': [['num_samples', 'training samples n']] * is_fit
                + [[name, columns.label(name).replace('$', '')] for name in axes],
        'values': [['samples', samples_heading]] * has_samples + [['test_loss', 'test loss']] * (not is_worst)
                  + [[name, f'tuned {shown[name]}'] for name in drawn],
        'settings': headings,
        'symbols': [name for name in headings if columns.get(name).symbol],
        'shown': shown,
        'fits': fits,
        'rows': {name: _plain(rows[name]) for name in [*headings, *shown, *_MEASURED]},
        'over': list(selection.DEFAULT_OVER),
        'lanes': lanes,
    }  # fmt: skip


def _settings(rows: pd.DataFrame, is_fit: bool) -> list[str]:
    """The settings that rows are told apart by."""
    apart = [name for name in analysis.curve_columns(rows) if name != 'sample_size' or not is_fit]
    more = (_CHOSEN,) if is_fit else ('threshold', _CHOSEN)  # a fit ends at no threshold
    return list(dict.fromkeys(['model', 'seq_len', *apart, *(name for name in more if name in rows.columns)]))


def _headings(rows: pd.DataFrame, settings: Sequence[str]) -> dict[str, str]:
    """What the page calls each setting."""
    found = analysis.headings(settings) | {'model': 'architecture'}
    if _CHOSEN in found:
        found[_CHOSEN] = 'chosen by validation'
    if 'threshold' in found and resolution.is_of_rate(rows).all():
        found['threshold'] = 'threshold of the error rate'
    return found


def _with_measures(rows: pd.DataFrame) -> pd.DataFrame:
    """Adds how lanes ended, bounds included: samples, and whether these are bounds, interpolated or of no ERM."""
    outcome = erms.with_bounds(rows)['outcome']
    return rows.assign(
        samples=summary.samples_or_bound(rows).where(outcome.ne(erms.UNFITTED)),
        crossed=rows.get(resolution.CROSSING, pd.Series(None, rows.index)).notna(),
        is_short=erms.is_short(rows),
        bound=outcome.isin(summary.NEED_MORE).astype(int) - outcome.isin(('censored_below', erms.AT_MOST)).astype(int),
        outcome=outcome,
    )


def _fits(rows: pd.DataFrame, axes: Sequence[str]) -> tuple[list[dict[str, Any]], dict[str, pd.Series]]:
    """The exponent of each curve over each axis, and the settings that name their rows, missing in all other rows."""
    found: list[dict[str, Any]] = []
    named: dict[str, pd.Series] = {}
    chosen: dict[str, Any] = {}
    if _CHOSEN in rows.columns:
        rows, chosen = rows[rows[_CHOSEN].eq(True)], {_CHOSEN: True}
    groups = rows.groupby('threshold') if 'threshold' in rows.columns else [(None, rows)]
    for x, (threshold, own) in itertools.product(axes, groups):
        curves = analysis.split_curves(own, x) if own[x].notna().any() else []
        for curve, fit in zip(curves, exponents.fits(curves, own, x), strict=True):
            if fit.value is not None:
                point = {**curve.task, **curve.settings}
                where = {'model': curve.model, **point, **chosen, 'threshold': threshold}
                task = [analysis.setting_text(*item) for item in curve.task.items() if not pd.isna(item[1])]
                found.append(_fit(fit, x, where, ', '.join([curve.short, *task])))
                for name, value in point.items():
                    values = named.setdefault(name, pd.Series(None, rows.index, dtype=object))
                    values[curve.lanes.index] = value
    return found, named


def _fit(fit: analysis.Exponent, x: str, where: dict[str, Any], name: str) -> dict[str, Any]:
    """An exponent over an axis: the settings of its rows, its texts, and the values of x that it leaves out."""
    plain = {name: _one(value) for name, value in where.items() if value is not None}
    return {
        'x': x, 'where': plain, 'value': f'{fit.value:.2f}', 'text': fit.with_note, 'name': name,
        'left_out': _plain(fit.left_out),
    }  # fmt: skip


def _sorted(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows by architecture in the paper's order, N and seed."""
    order = rows['model'].map(analysis.model_order(rows).index)
    by = ['_order', *(name for name in ('sparsity', 'seq_len', 'seed') if name in rows.columns)]
    return rows.assign(_order=order).sort_values(by, kind='stable', ignore_index=True).drop(columns='_order')


def _with_choice(rows: pd.DataFrame) -> pd.DataFrame:
    """Marks the fits and searches whose settings validation prompts choose, unless that is all of them."""
    if 'validation_loss' not in rows.columns or rows['validation_loss'].isna().all():
        return rows
    chosen = set(selection.select(rows)['lane'])
    return rows if chosen >= set(rows['lane']) else rows.assign(**{_CHOSEN: rows['lane'].isin(chosen)})


def _filter(name: str, heading: str, values: pd.Series, own_thresholds: set) -> dict[str, Any] | None:
    """The values of a setting to choose from, and which are chosen first: for a threshold the lanes' own."""
    found: list[Any] = analysis.ordered(values) if name != 'model' else analysis.model_order(values.to_frame())
    if values.isna().any() and name != 'threshold':  # lanes that no threshold judges are always shown
        found.append(None)
    if not 1 < len(found) <= _MOST_VALUES and name not in ('model', 'seq_len', 'threshold'):
        return None
    first = [True] if name == _CHOSEN else found
    if name == 'threshold' and len(found) > 1:
        first = sorted(own_thresholds & set(found))[:1] or found[:1]
    texts = ['yes' if value else 'no' for value in found] if name == _CHOSEN else [*map(_value_text, found)]
    return {'name': name, 'heading': heading, 'values': _plain(found), 'texts': texts, 'first': _plain(first)}


def _value_text(value: Any) -> str:
    return '–' if value is None else names.value_text(value)


def _lanes(section: Section, rows: pd.DataFrame) -> dict[str, Any]:
    """Cell, curve and command of each lane; the common start of a cell's commands is stored once."""
    records = rows.to_dict('records')
    plugins = commands.plugins_of(section.runs)
    lines = commands.commands_of(records, section.sweeps, plugins)
    of_cells: dict[str, list[str]] = {}
    for row, line in zip(records, lines, strict=True):
        of_cells.setdefault(row['cell'], []).append(line)
    shared = {cell: os.path.commonprefix(some) for cell, some in of_cells.items()}  # noqa: RUF071
    number = {cell: place for place, cell in enumerate(shared)}
    return {
        'cells': list(shared),
        'shared': list(shared.values()),
        'cell': [number[row['cell']] for row in records],
        'command': [line[len(shared[row['cell']]) :] for row, line in zip(records, lines, strict=True)],
        'curve': _curves(section.curves, rows),
    }


def _curves(curves: pd.DataFrame, rows: pd.DataFrame) -> list[list[list[float]]]:
    """Samples and test losses of each lane, in the order of the rows."""
    empty: list[list[float]] = [[], []]
    if not {'cell', 'samples', 'test_loss'} <= set(curves.columns):
        return [empty] * len(rows)
    keys = ['cell', *(name for name in lane_keys.columns_of(rows) if name in curves.columns)]
    finite = curves[np.isfinite(curves['test_loss'].astype(float)) & curves['samples'].gt(0)]
    lines = finite[[*keys, 'samples', 'test_loss']].merge(rows[[*keys, 'lane']], on=keys)
    if lines.empty:
        return [empty] * len(rows)
    lines = lines.sort_values(['lane', 'samples'])
    lanes, samples, losses = (lines[name].to_numpy() for name in ('lane', 'samples', 'test_loss'))
    starts = np.flatnonzero(np.diff(lanes, prepend=lanes[0] - 1))
    parts = zip(np.split(samples, starts[1:]), np.split(losses, starts[1:]), strict=True)
    found = {lane: _thin(*part) for lane, part in zip(lanes[starts].tolist(), parts, strict=True)}
    return [found.get(lane, empty) for lane in rows['lane']]


def _thin(samples: np.ndarray, losses: np.ndarray) -> list[list[float]]:
    """Samples and losses of the checks that are kept, as plain numbers."""
    kept = _kept(len(samples))
    return [[int(value) for value in samples[kept]], [float(f'{value:.3g}') for value in losses[kept]]]


@functools.cache  # Many lanes have equally many checks.
def _kept(count: int) -> np.ndarray:
    """Which of `count` checks are kept."""
    return np.unique(np.geomspace(1, count, _MOST_POINTS).round().astype(int)) - 1


def _plain(values: pd.Series | Sequence[Any]) -> list[Any]:
    """Values as JSON holds them: a number that is missing or not finite is null, one with a fraction has 4 digits."""
    return [_one(value) for value in values]


def _one(value: Any) -> Any:
    if value is None or value is pd.NA or isinstance(value, (bool, np.bool_)):
        return None if value is pd.NA or value is None else bool(value)
    if isinstance(value, (int, float, np.integer, np.floating)):
        number = float(value)
        if not math.isfinite(number):
            return None
        return int(number) if number.is_integer() and abs(number) < 2**53 else float(f'{number:.4g}')
    return str(function_names.plain(value))
