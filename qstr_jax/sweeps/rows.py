"""Rows and curves of a finished lane batch."""

import jax
import pandas as pd

from qstr_jax import learners
from qstr_jax.models import probes
from qstr_jax.sweeps import cost

# Columns of the cell that its curves repeat.
CURVE_COLUMNS = ('model', 'task', 'seq_len', 'sparsity', 'threshold')
# Columns of samples, which may be missing.
COUNTS = ('samples_to_threshold', 'validation_samples_to_threshold')


def rows(cell, lanes, data_K, state_K, probe_functions=()):
    """One row per lane.

    Args:
        cell: `cells.Cell`.
        lanes: the batch's lanes; the state may have more, which are fillers.
        data_K, state_K: as `batch.train` returns them.
        probe_functions: of `qstr_jax.models.probes`.
    """

    def describe(params, task_draw):
        described = probes.encoding_columns(task_draw)
        for probe in probe_functions:
            described |= probe(params, task_draw, cell.problem)
        return described

    described = jax.device_get(jax.jit(jax.vmap(describe))(state_K.params, data_K.task_draw))
    columns = {**learners.of(cell.problem).report(state_K, cell.problem), **described}
    frame = pd.DataFrame(
        {
            **dict(cell.columns),
            **dict(zip(lanes[0]._fields, zip(*lanes, strict=True), strict=True)),
            **{name: values[: len(lanes)] for name, values in columns.items()},
            'num_parameters': cost.num_parameters(cell.problem),
            'backend': next(iter(state_K.outcome.devices())).platform,
            'lanes_per_batch': state_K.outcome.shape[0],
        }
    )
    return frame.astype({name: 'Int64' for name in COUNTS if name in frame.columns})


def curves(cell, lanes, state_K):
    """One line per lane and check, or per fit of a lane on a fixed sample."""
    constant = {name: dict(cell.columns)[name] for name in CURVE_COLUMNS}
    curves_K = learners.of(cell.problem).report_curves(state_K, cell.problem)
    frames = [
        pd.DataFrame({**constant, **lane._asdict(), **curve}) for lane, curve in zip(lanes, curves_K, strict=False)
    ]
    return pd.concat(frames, ignore_index=True)
