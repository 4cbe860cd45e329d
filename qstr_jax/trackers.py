"""Rows and curves of a results directory in an experiment tracker with wandb's interface: a run for each lane.

The directory stays the truth; a tracker is one more way to look at it.
"""

import importlib
import os
from collections.abc import Iterable
from typing import Any

import pandas as pd

from qstr_jax import columns, progress
from qstr_jax.settings import checks
from qstr_jax.storage import lane_keys, results

TRACKERS = ('trackio', 'wandb')
_NO_MEASURE = ('samples', 'is_due')


def send(workdir: Any, tracker: str, project: str = 'qstr_jax') -> int:
    """Sends all lanes that a directory has: settings as the run's config, checks as steps, the row as its last step.

    wandb works offline and writes to the folder `wandb/` here, until WANDB_MODE=online is set; trackio keeps its runs
    on this machine. Sending twice makes every run twice.

    Args:
        workdir: the results directory.
        tracker: 'trackio' or 'wandb', which has to be installed.
        project: the tracker's name for all these runs.

    Returns:
        The number of runs.

    Raises:
        ValueError: another tracker, one that is not installed, or no rows.

    Example:
        trackers.send('results/quickstart', 'trackio')
    """
    checks.choice('tracker', tracker, TRACKERS)
    try:
        module = importlib.import_module(tracker)
    except ImportError as error:
        raise ValueError(f'tracker={tracker!r}: is not installed; pip install {tracker}') from error
    rows = results.load(workdir)
    if rows.empty:
        raise ValueError(f'{str(workdir)!r}: has no rows to send yet')
    curves = results.load_curves(workdir, rows=rows)
    # Lanes are found by name, since they lack the settings that only lanes of other cells have.
    checks_of = dict(list(curves.groupby(['cell', lane_keys.names_of(curves)]))) if len(curves) else {}
    shared = lane_keys.names_of(rows[['cell', *lane_keys.columns_of(curves)]]) if len(curves) else [''] * len(rows)
    more = {'mode': os.environ.get('WANDB_MODE', 'offline')} if tracker == 'wandb' else {}
    settings = dict.fromkeys(['cell', *columns.settings(rows.columns), *lane_keys.columns_of(rows)])
    named = list(zip(rows.to_dict('records'), lane_keys.names_of(rows), shared, strict=True))
    for row, name, curve in progress.each(named, f'{tracker}: lane'):
        run = module.init(project=project, name=f'{row["cell"]}-{name}', config=_known(row, settings), **more)
        own = checks_of.get((row['cell'], curve), pd.DataFrame())
        for line in own.to_dict('records'):
            run.log(_known(line, _measures(own)), step=int(line['samples']))
        run.log(_known(row, _measures(rows)))
        run.finish()
    return len(rows)


def _measures(table: pd.DataFrame) -> list[str]:
    """What a lane measured, at a check or in the end."""
    found = [name for role in ('outcome', 'measure') for name in columns.with_role(table.columns, role)]
    return [name for name in found if name not in _NO_MEASURE]


def _known(line: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """The values of a line that are not missing."""
    return {name: line[name] for name in names if not pd.api.types.is_scalar(line[name]) or not pd.isna(line[name])}
