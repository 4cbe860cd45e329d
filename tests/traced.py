"""The cells that many processes train, traced: the fork server alone imports this, and its children find them traced.

Tracing starts no device, so each child still has its own devices and flags, and compiles for itself.
"""

import gc

import jax
import numpy as np

from experiments.configs import base, quickstart
from qstr_jax import learners, sweeps
from qstr_jax.sweeps import lanes_per_batch, outputs, programs
from tests import harness


def trace(sweep):
    """Traces `init` and `advance` of all cells of a sweep, for its lane batches on a CPU."""
    cells = sweeps.cells_of(sweep)
    outputs.check(cells, {})
    for cell in cells:
        default = lanes_per_batch.default_size(cell.problem.module, len(cell.lanes), 'cpu')
        lanes_K = programs.abstract_lanes(cell.problem, sweep.lanes_per_batch or default)
        data_K, state_K = learners.init.trace(lanes_K, cell.problem).out_info
        learners.advance.trace(state_K, data_K, lanes_K, jax.ShapeDtypeStruct((), np.int32), cell.problem)


for settings in {}, harness.OURS, harness.THREE_FFNS, harness.MANY, harness.EIGHT:
    trace(sweeps.Sweep(**{**harness.TINY, **settings}))
job = quickstart.get_config()
job.update_from_flattened_dict(harness.JOB)
trace(base.to_sweep(job))
gc.collect()
gc.freeze()
