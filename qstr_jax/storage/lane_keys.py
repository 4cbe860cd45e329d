"""Which lane a line of a table is of, and the names of lanes."""

from typing import Any

import pandas as pd

from qstr_jax import columns

# Short names of settings, in names of lanes.
SHORT = {'seed': 'seed', 'task_seed': 'task', 'learning_rate': 'lr', 'weight_decay': 'wd', 'radius': 'R',
         'sample_size': 'n', 'stop_after': 'stop'}  # fmt: skip
# Names leave out these settings at these values, so that names that are older than a setting stay as they are.
UNNAMED = {'stop_after': 0}


def columns_of(frame: pd.DataFrame) -> list[str]:
    """The columns of a table that tell its lanes apart."""
    return columns.with_role(frame.columns, 'lane')


def found_in(frame: pd.DataFrame) -> set[tuple]:
    """The lanes of a table, as tuples."""
    return set(frame[columns_of(frame)].itertuples(index=False, name=None))


def without(frame: pd.DataFrame, lanes: set[tuple]) -> pd.DataFrame:
    """A table without some lanes."""
    keys = frame[columns_of(frame)].itertuples(index=False, name=None)
    return frame[[key not in lanes for key in keys]]


def sort(frame: pd.DataFrame, *more: str) -> pd.DataFrame:
    """A table sorted by its lanes."""
    return frame.sort_values([*columns_of(frame), *more], ignore_index=True)


def name_of(lane: Any) -> str:
    """Short name of a lane within its cell, for folders and the plan."""
    values = lane._asdict() if hasattr(lane, '_asdict') else dict(lane)
    lane = {name: values[name] for name in columns.with_role(values, 'lane')}
    named = {name: value for name, value in lane.items() if not pd.isna(value) and UNNAMED.get(name) != value}
    return '-'.join(f'{SHORT.get(name, name)}{_number(value)}' for name, value in named.items())


def names_of(frame: pd.DataFrame) -> list[str]:
    """`name_of` each line of a table, in which many cells have lanes of the same name."""
    columns_here = columns_of(frame)
    lanes = list(zip(*(frame[name].tolist() for name in columns_here), strict=True))
    known = {lane: name_of(dict(zip(columns_here, lane, strict=True))) for lane in dict.fromkeys(lanes)}
    return [known[lane] for lane in lanes]


def _number(value: Any) -> str:
    """A number as short as it can be without becoming another: 0.001, 1e+06, 1234567."""
    if float(f'{value:g}') == value:
        return f'{value:g}'
    return str(int(value)) if value == int(value) else repr(float(value))
