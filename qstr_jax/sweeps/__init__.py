"""Sweeps: cells × lanes, run in lane batches.

from qstr_jax import sweeps
rows = sweeps.run(sweeps.Settings(models=('transformer',), seq_lens=(4, 8)), 'results/mine')
"""

from qstr_jax.sweeps.cells import cells_of, lanes
from qstr_jax.sweeps.params import load as load_params
from qstr_jax.sweeps.runner import Interrupted, Options, SweepError, run
from qstr_jax.sweeps.sweep import Settings

__all__ = ['Interrupted', 'Options', 'Settings', 'SweepError', 'cells_of', 'lanes', 'load_params', 'run']
