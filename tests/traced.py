"""The cells that many processes train, traced: the fork server alone imports this, and its children find them traced.

Tracing starts no device, so each child still has its own devices and flags, and compiles for itself.
"""

import functools
import gc

import jax
import numpy as np

from qstr_jax import learners, sweeps
from qstr_jax.sweeps import lanes_per_batch, outputs, programs
from tests import harness


def trace(settings):
    """Traces `init` and `advance` of all cells of a sweep, for its lane batches on a CPU."""
    sweep = sweeps.Sweep(**{**harness.TINY, **settings})
    cells = sweeps.cells_of(sweep)
    outputs.check(cells, {})
    for cell in cells:
        default = lanes_per_batch.default_size(cell.problem.module, len(cell.lanes), 'cpu')
        lanes_K = programs.abstract_lanes(cell.problem, sweep.lanes_per_batch or default)
        learners.init.trace(lanes_K, cell.problem)
        data_K, state_K = jax.eval_shape(functools.partial(learners.init, problem=cell.problem), lanes_K)
        learners.advance.trace(state_K, data_K, lanes_K, jax.ShapeDtypeStruct((), np.int32), cell.problem)


for settings in {}, harness.OURS, harness.THREE_FFNS, harness.MANY, harness.EIGHT:
    trace(settings)
gc.collect()
gc.freeze()
