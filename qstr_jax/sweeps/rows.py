"""Rows and curves of a finished lane batch."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import pandas as pd

from qstr_jax import columns
from qstr_jax.models import probes
from qstr_jax.sweeps import cost
from qstr_jax.sweeps.cells import Cell


def rows(
    cell: Cell, lanes: Sequence[Any], data_K: Any, state_K: Any, probe_functions: Sequence[Callable] = ()
) -> pd.DataFrame:
    """One row per lane.

    Args:
        cell: the cell of the lanes.
        lanes: the batch's lanes; the state may have more, which are fillers.
        data_K: constants of the batch, as `training.train` returns them.
        state_K: its last state, as `training.train` returns it.
        probe_functions: of `models.probes`.
    """

    def describe(params: Any, task_draw: Any) -> dict[str, Any]:
        described = probes.encoding_columns(task_draw)
        for probe in probe_functions:
            described |= probe(params, task_draw, cell.problem)
        return described

    described = jax.device_get(jax.jit(jax.vmap(describe))(state_K.params, data_K.task_draw))
    measured = {**cell.problem.learner.report(state_K, cell.problem), **described}
    frame = pd.DataFrame(
        {
            **dict(cell.columns),
            **dict(zip(lanes[0]._fields, zip(*lanes, strict=True), strict=True)),
            **{name: values[: len(lanes)] for name, values in measured.items()},
            'num_parameters': cost.num_parameters(cell.problem),
            'backend': next(iter(state_K.outcome.devices())).platform,
            'lanes_per_batch': state_K.outcome.shape[0],
        }
    )
    return frame.astype({name: 'Int64' for name in frame.columns if columns.get(name).type == 'count'})


def curves(cell: Cell, lanes: Sequence[Any], state_K: Any) -> pd.DataFrame:
    """One line per check of a lane, or per fit of a lane on a fixed sample; the cell's settings are in its rows only.

    Args:
        cell: the cell of the lanes.
        lanes: the batch's lanes.
        state_K: the last state, as `training.train` returns it.
    """
    curves_K = cell.problem.learner.report_curves(state_K, cell.problem)
    frames = [pd.DataFrame({**lane._asdict(), **curve}) for lane, curve in zip(lanes, curves_K, strict=False)]
    return pd.concat(frames, ignore_index=True)
