"""Several results directories as one."""

import warnings
from collections.abc import Sequence
from typing import Any

import pandas as pd
from etils import epath

from qstr_jax.storage import defaults, files, lane_keys, results
from qstr_jax.storage.files import ResultsError


def merge(sources: Sequence[Any], destination: Any) -> pd.DataFrame:
    """Merges results directories into `destination`, new or one of them; returns its rows.

    A lane that several directories hold is taken from the first of them. Rows of one lane, backend and
    `lanes_per_batch` must be equal; rows of different ones may differ by rounding, which is warned of. Trained
    parameters and checkpoints stay where they are.

    Args:
        sources: results directories.
        destination: the directory to write to.

    Raises:
        ResultsError: a damaged file, rows that contradict each other, or a destination that holds other results;
            nothing is written then.
    """
    sources = [epath.Path(source) for source in sources]
    if (epath.Path(destination) / 'config.json').exists() and epath.Path(destination) not in sources:
        raise ResultsError(f'destination={str(destination)!r} holds results: name it among the sources too')
    sweeps = [sweep for source in sources for sweep in results.read_config(source)]
    tables = {}
    for name in sorted({path.name for source in sources for path in (source / 'rows').glob('*.parquet')}):
        tables[name] = _merge_cell(name, [s for s in sources if (s / 'rows' / name).exists()])
    plan: dict[str, Any] = {}
    for path in [source / 'plan.json' for source in sources if (source / 'plan.json').exists()]:
        for cell_id, entry in files.read_json(path).items():
            plan[cell_id] = joined(plan.get(cell_id), entry)
    runs = {path.name: files.read_json(path) for source in sources for path in (source / 'provenance').glob('*.json')}
    target = results.open_workdir(destination)
    for sweep in sweeps:
        results.add_sweep(target, sweep)
    for name, (rows, curves) in tables.items():
        files.write_table(target / 'curves' / name, curves)
        files.write_table(target / 'rows' / name, rows)
    files.write_json(target / 'plan.json', plan)
    for name, run in runs.items():
        files.write_json(target / 'provenance' / name, run)
    return results.load(target)


def joined(known: dict[str, Any] | None, entry: dict[str, Any]) -> dict[str, Any]:
    """A cell's entry of plan.json with the lanes of two.

    Args:
        known: the first entry, None if there is none.
        entry: the second.
    """
    lanes = dict.fromkeys([*(known or {}).get('lanes', []), *entry['lanes']])
    return {'columns': entry['columns'], 'lanes': list(lanes)}


def _merge_cell(name: str, sources: Sequence[Any]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows and curves of one cell, each lane from the first source that has it."""
    rows = results.read_rows(sources[0] / 'rows' / name)
    curves = defaults.filled_curves(files.read_table(sources[0] / 'curves' / name), rows)
    for source in sources[1:]:
        other = results.read_rows(source / 'rows' / name)
        _check_same(name, rows, other, source)
        known = lane_keys.found_in(rows)
        more = defaults.filled_curves(files.read_table(source / 'curves' / name), other)
        rows, curves = (
            pd.concat([mine, lane_keys.without(theirs, known)], ignore_index=True)
            for mine, theirs in ((rows, other), (curves, more))
        )
    return lane_keys.sort(rows), lane_keys.sort(curves, 'samples')


def _is_same(a: Any, b: Any) -> bool:
    return bool(pd.isna(a) and pd.isna(b) if pd.isna(a) or pd.isna(b) else a == b)


def _check_same(name: str, rows: pd.DataFrame, other: pd.DataFrame, source: Any) -> None:
    """Raises ResultsError where two rows of a lane differ though they were computed in the same way."""
    both = rows.merge(other, on=lane_keys.columns_of(rows), suffixes=('', ' there'))
    for _, row in both.iterrows():
        pairs = {c: (row[c], row[f'{c} there']) for c in rows.columns if f'{c} there' in both.columns}
        different = [c for c, (a, b) in pairs.items() if not _is_same(a, b)]
        if not different:
            continue
        what = f'{name.removesuffix(".parquet")}, {lane_keys.name_of(row)}: {", ".join(different)} in {source}'
        if {'backend', 'lanes_per_batch'} & set(different):
            warnings.warn(f'{what} differ by backend or lanes_per_batch: the first is kept', stacklevel=4)
        else:
            raise ResultsError(f'{what} contradict the same lane elsewhere: nothing was merged')
