"""Several results directories as one."""

import os
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd
from etils import epath

from qstr_jax.storage import cell_tables, defaults, files, lane_keys, names, provenance, records, results
from qstr_jax.storage.files import ResultsError

# Columns that may differ: another program may compute the same, and another search may find the same values.
UNTOLD = {'program', 'tuned_grid', 'tuned_samples'}


def merge(sources: Sequence[Any], destination: Any) -> pd.DataFrame:
    """Merges results directories into `destination`, new or one of them; returns its rows.

    A lane that several directories hold is taken from `destination`, or else from the first of them. Rows of one lane,
    backend and `lanes_per_batch` must be equal; others may differ by rounding, which gives a warning. Runs that chose
    settings, in `selection/`, are merged too; trained parameters and checkpoints stay where they are. No worker may
    write to the destination meanwhile.
    """
    if not sources:
        raise ResultsError('sources: give at least one results directory')
    own = os.path.abspath(destination)
    sources = sorted(map(epath.Path, sources), key=lambda source: os.path.abspath(source) != own)
    if (epath.Path(destination) / 'config.json').exists() and os.path.abspath(sources[0]) != own:
        raise ResultsError(f'destination={str(destination)!r} holds results: name it among the sources too')
    sweeps: list[dict[str, Any]] = []
    for source in sources:
        for sweep in results.read_config(source):
            results.check_tuned_alike(destination, sweeps, sweep)
            sweeps.append(sweep)
    tables = {}
    for name in sorted({path.name for source in sources for path in names.listed(source / 'rows', '.parquet')}):
        tables[name] = _merge_cell(name, [s for s in sources if (s / 'rows' / name).exists()])
    plan: dict[str, Any] = {}
    for source in sources:
        for cell_id, entry in records.read_plan(source).items():
            plan[cell_id] = joined(plan.get(cell_id), entry)
    paths = [path for source in sources for path in names.listed(source / 'provenance', '.json')]
    runs = {path.name: records.read(path, 'run') for path in paths}
    _check_programs(tables, runs.values())
    target = results.open_workdir(destination)
    for sweep in sweeps:
        results.add_sweep(target, sweep)
    for name, (rows, curves) in tables.items():
        results.add(target, name.removesuffix('.parquet'), rows, curves)
    files.write_json(target / 'plan.json', plan)
    for name, run in runs.items():
        files.write_json(target / 'provenance' / name, run)
    if choosing := [part for source in sources if (part := source / results.SELECTION / 'config.json').exists()]:
        merge([path.parent for path in choosing], target / results.SELECTION)
    return results.load(target)


def joined(known: dict[str, Any] | None, entry: dict[str, Any]) -> dict[str, Any]:
    """A cell's entry of plan.json with the lanes of two entries."""
    lanes = dict.fromkeys([*(known or {}).get('lanes', []), *entry['lanes']])
    return {'columns': entry['columns'], 'lanes': list(lanes)}


def _merge_cell(name: str, sources: Sequence[Any]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows and curves of one cell, each lane from the first source that has it."""
    paths = [source / 'rows' / name for source in sources]
    lanes = list(dict.fromkeys(one for path in paths for one in lane_keys.columns_of(cell_tables.read_rows(path))))
    rows, *others = (cell_tables.read_rows(path, lanes) for path in paths)
    curves = _curves_of(rows, sources[0], name)
    for source, other in zip(sources[1:], others, strict=True):
        rows, other = defaults.shared(rows, other), defaults.shared(other, rows)
        if newer := set(lane_keys.columns_of(rows)) ^ set(lane_keys.columns_of(other)):
            raise ResultsError(f'{name}: older rows lack {min(newer)}: import qstr_jax.sweeps and the plugins first')
        _check_same(name, rows, other, source)
        known = lane_keys.found_in(rows)
        more = _curves_of(other, source, name)
        rows, curves = (
            pd.concat([mine, lane_keys.without(theirs, known)], ignore_index=True)
            for mine, theirs in ((rows, other), (curves, more))
        )
    _check_chosen(name, rows)
    return lane_keys.sort(rows), lane_keys.sort(curves, 'samples')


def _curves_of(rows: pd.DataFrame, source: Any, name: str) -> pd.DataFrame:
    """The curves of the lanes that have rows; a killed write leaves others."""
    curves = defaults.filled_curves(cell_tables.read_curves(source / 'curves' / name), rows)
    return lane_keys.without(curves, lane_keys.found_in(curves) - lane_keys.found_in(rows))


def _check_programs(tables: dict[str, tuple[pd.DataFrame, pd.DataFrame]], runs: Iterable[dict[str, Any]]) -> None:
    """Raises ResultsError where rows of a cell are of several programs of the same versions: edited code."""
    made_by = provenance.by_program(runs)
    for name, (rows, _) in tables.items():
        cell_id = name.removesuffix('.parquet')
        seen: dict[tuple, str] = {}
        made = ['backend', 'lanes_per_batch', 'program']
        known = rows[made].dropna().drop_duplicates() if {*made} <= {*rows.columns} else pd.DataFrame(columns=made)
        for backend, size, program in known.itertuples(index=False, name=None):
            for version in map(provenance.versions, made_by.get((cell_id, program), ())):
                if seen.setdefault((backend, size, version), program) != program:
                    raise ResultsError(f'{cell_id}: rows of two programs, since code was edited: nothing was merged')


def is_same(a: Any, b: Any) -> bool:
    return bool(pd.isna(a) and pd.isna(b) if pd.isna(a) or pd.isna(b) else a == b)


def _check_chosen(name: str, rows: pd.DataFrame) -> None:
    """Raises ResultsError where lanes of one point were tuned to different values."""
    tuned = rows['tuned'].dropna().unique() if 'tuned' in rows.columns else ()
    chosen = [setting for names in tuned for setting in names.split() if setting in lane_keys.columns_of(rows)]
    point = [setting for setting in lane_keys.columns_of(rows) if setting not in ('seed', 'task_seed', *chosen)]
    for setting in chosen:
        if (rows.groupby(['tuned', *point])[setting].nunique() > 1).any():
            what = f'{name.removesuffix(".parquet")}: lanes of one point were tuned to different values of {setting}'
            raise ResultsError(f'{what}: nothing was merged')


def _check_same(name: str, rows: pd.DataFrame, other: pd.DataFrame, source: Any) -> None:
    """Raises ResultsError where two rows of a lane differ though they were computed in the same way."""
    both = rows.merge(other, on=lane_keys.columns_of(rows), suffixes=('', ' there'))
    for _, row in both.iterrows():
        pairs = {c: (row[c], row[f'{c} there']) for c in rows.columns if f'{c} there' in both.columns}
        different = [c for c, (a, b) in pairs.items() if not is_same(a, b)]
        if not set(different) - UNTOLD:
            continue
        what = f'{name.removesuffix(".parquet")}, {lane_keys.name_of(row)}: {", ".join(different)} in {source}'
        if {'backend', 'lanes_per_batch'} & set(different):
            warnings.warn(f'{what} differ by backend or lanes_per_batch: the first is kept', stacklevel=4)
        else:
            raise ResultsError(f'{what} contradict the same lane elsewhere: nothing was merged')
