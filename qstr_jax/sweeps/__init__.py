"""Sweeps: cells × lanes, run in lane batches.

from qstr_jax import sweeps
rows = sweeps.run(sweeps.Sweep(models=('transformer',), seq_lens=(4, 8)), 'results/mine')
"""

from qstr_jax.sweeps.cells import Cell, cells_of
from qstr_jax.sweeps.rows import load_params
from qstr_jax.sweeps.runner import SweepError, run, run_all
from qstr_jax.sweeps.session import Interrupted, Options
from qstr_jax.sweeps.sweep import Sweep

__all__ = ['Cell', 'Interrupted', 'Options', 'Sweep', 'SweepError', 'cells_of', 'load_params', 'run', 'run_all']
