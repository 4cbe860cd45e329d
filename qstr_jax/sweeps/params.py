"""Trained parameters on disk, one folder per lane."""

from collections.abc import Sequence
from typing import Any

import jax
from etils import epath

from qstr_jax.learners import held_out
from qstr_jax.storage import checkpoint, lane_keys, names, results
from qstr_jax.sweeps.cells import Cell


def _path(workdir: Any, cell: Cell, lane: Any) -> epath.Path:
    return names.inside(workdir, 'params', cell.id, lane_keys.name_of(lane))


def _identity(cell: Cell, lane: Any) -> str:
    return f'{cell.id}: {lane_keys.name_of(lane)}'


def save(workdir: Any, cell: Cell, lanes: Sequence[Any], state_K: Any) -> None:
    """Saves the parameters of each lane of a finished batch.

    Args:
        workdir: the results directory.
        cell: what the lanes share.
        lanes: of the batch.
        state_K: the batch's last state, in which fillers may follow the lanes.
    """
    for k, lane in enumerate(lanes):
        of_lane = jax.tree.map(lambda leaf, k=k: leaf[k], state_K.params)
        checkpoint.save_tree(_path(workdir, cell, lane), of_lane, _identity(cell, lane))


def load(workdir: Any, cell: Cell, lane: Any) -> Any:
    """Trained parameters of one lane of a sweep that was run with `save_params`, as `models.predict` takes them.

    Args:
        workdir: the results directory.
        cell: one of `cells_of(sweep)`.
        lane: one of `cell.lanes`.

    Raises:
        results.ResultsError: there are none, or they cannot be read.
    """
    path = _path(workdir, cell, lane)
    if not path.exists():
        raise results.ResultsError(f'no parameters at {path}: run the sweep with save_params=True')
    wanted = held_out.abstract_params(cell.problem.module, cell.problem.task)
    return checkpoint.load_tree(path, wanted, _identity(cell, lane))
