"""The cells that many processes train, traced: the fork server alone imports this, and its children find them traced.

Tracing starts no device, so each child still has its own devices and flags, and compiles for itself.
"""

import functools
import gc

import jax
import numpy as np

from qstr_jax import learners, sweeps
from qstr_jax.sweeps import outputs, programs
from tests import harness


def trace(settings, size):
    """Traces `init` and `advance` of all cells of a sweep, for batches of `size` lanes."""
    cells = sweeps.cells_of(sweeps.Sweep(**{**harness.TINY, **settings}))
    outputs.check(cells, {})
    for cell in cells:
        lanes_K = programs.abstract_lanes(cell.problem, size)
        learners.init.trace(lanes_K, cell.problem)
        data_K, state_K = jax.eval_shape(functools.partial(learners.init, problem=cell.problem), lanes_K)
        learners.advance.trace(state_K, data_K, lanes_K, jax.ShapeDtypeStruct((), np.int32), cell.problem)


for settings, size in ({}, 2), (harness.THREE_FFNS, 2), (harness.MANY, 2), (harness.EIGHT, 1):
    trace(settings, size)
gc.collect()
gc.freeze()
