"""Entries: rows of a suite, by the name of what is compared. Those of the board ship with the package as one table."""

import functools
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from qstr_jax.comparison.suite import CHOSEN, Suite
from qstr_jax.outside import LEARNER
from qstr_jax.storage import files, provenance, results

REFERENCE = pathlib.Path(__file__).parent / 'reference.parquet'
# What an entry keeps of each row.
COLUMNS = (
    'entry', 'suite', 'model', 'learner', 'task', 'seq_len', 'seed', 'outcome', 'num_samples', 'samples_to_threshold',
    'max_samples', 'threshold', 'no_retrieval', 'test_loss', 'batch_size', 'check_every', 'learning_rate',
    'num_parameters', 'state_size', 'steps_per_second', 'device', 'train_loss', 'lanes_per_batch', 'program',
)  # fmt: skip

_POSITIVE = (
    'num_samples', 'samples_to_threshold', 'max_samples', 'threshold', 'batch_size', 'check_every', 'learning_rate',
    'num_parameters', 'steps_per_second', 'lanes_per_batch',
)  # fmt: skip
_TEXTS = ('entry', 'suite', 'model', 'learner', 'task', 'outcome', 'device', 'program')


def of_directory(workdir: Any, suite: Suite) -> pd.DataFrame:
    """The entries of a results directory: the rows of the suite's points, an entry for each model."""
    every = results.load(workdir)
    rows = suite.rows_of(every)
    if rows.empty:
        return pd.DataFrame(columns=list(COLUMNS))
    _check_chosen(workdir, rows)
    speed = _speed(provenance.load(workdir), every[every['cell'].isin(rows['cell'])])
    rows = rows.assign(entry=rows['model'], suite=suite.version).merge(speed, on='cell', how='left')
    twice = rows.duplicated(['entry', 'task', 'seq_len', 'seed'])
    if twice.any():
        one = rows[twice].iloc[0]
        raise ValueError(
            f'{workdir}: several rows of {one["model"]} at {one["task"]}, N = {one["seq_len"]}, seed {one["seed"]}; '
            'give each setting of a model a directory of its own'
        )
    rows = rows.reindex(columns=list(COLUMNS)).sort_values(['entry', 'task', 'seq_len', 'seed'], ignore_index=True)
    try:
        check_values(rows)
    except ValueError as error:
        raise ValueError(f'{workdir}: {error}') from None
    return rows


def check_values(rows: pd.DataFrame) -> None:
    """Raises ValueError unless each column has texts or finite numbers; a lane that diverged may have any loss."""
    for name, values in rows.items():
        may_say = values[rows['outcome'].ne('diverged')] if str(name).endswith('_loss') else values
        _check_column(str(name), may_say.dropna())


def _check_column(name: str, known: pd.Series) -> None:
    """Raises ValueError unless the known values of a column are texts, or numbers of the right sign."""
    wanted = 'texts' if name in _TEXTS else 'positive numbers' if name in _POSITIVE else 'numbers of at least 0'
    if name in _TEXTS:
        is_right = known.map(type).eq(str).all()
    elif not (is_right := known.empty):
        is_number = pd.api.types.is_numeric_dtype(known) and not pd.api.types.is_bool_dtype(known)
        is_right = is_number and np.isfinite(found := known.to_numpy(float)).all() and (found >= 0).all()
        is_right = is_right and (name not in _POSITIVE or (found > 0).all())
    if not is_right:
        raise ValueError(f'{name}: must be {wanted}')


def _check_chosen(workdir: Any, rows: pd.DataFrame) -> None:
    """Raises ValueError for rates that were not chosen as the suite does, on a seed that is not reported."""
    ours = rows[rows['learner'].ne(LEARNER)]
    for name, value in CHOSEN.items() if len(ours) else ():
        found = ours[name] if name in ours.columns else pd.Series(None, ours.index)
        if len(other := ours[~found.eq(value)]):
            raise ValueError(
                f'{workdir}: learning rates of {other["model"].iloc[0]} were not chosen as the suite does '
                f'({name}={found[other.index[0]]}, not {value}): run python -m qstr_jax compare --models=… --workdir=…'
            )


@functools.cache
def reference() -> pd.DataFrame:
    """The committed entries of all suites."""
    return files.read_table(REFERENCE)


def _speed(runs: Sequence[dict[str, Any]], rows: pd.DataFrame) -> pd.DataFrame:
    """Training steps of lanes per second of each cell, and on which device; `wall_seconds` begin after compilation."""
    batches = [{'device': run.get('device'), **batch} for run in runs for batch in run['batches']]
    found = []
    for cell, lanes in rows.groupby('cell'):
        programs = set(lanes.get('program', ()))  # without those that --refresh replaced
        own = [batch for batch in batches if batch['cell'] == cell and batch.get('program') in programs]
        seconds = sum(batch['wall_seconds'] for batch in own)
        steps = lanes['steps'].sum() if 'steps' in lanes.columns else 0
        rate = steps / seconds if seconds > 0 and steps else None
        found.append({'cell': cell, 'steps_per_second': rate, 'device': own[-1]['device'] if own else None})
    return pd.DataFrame(found).astype({'steps_per_second': float})
