"""Strict settings for every test, made before JAX touches a device."""

import gc
import os

import jax
import pytest

from qstr_jax.sweeps import lane_batch

# Eight CPU devices, so that code for several of them runs on any machine; shapes must agree in rank.
jax.config.update('jax_num_cpu_devices', 8)
jax.config.update('jax_numpy_rank_promotion', 'raise')

# The suite compiles hundreds of small programs and runs each for a moment: unoptimised, it takes half the time.
# Programs that tests start in processes of their own are compiled as a user's are, so the flag is gone once it is read.
if 'XLA_FLAGS' not in os.environ:
    os.environ['XLA_FLAGS'] = '--xla_backend_optimization_level=0'
    jax.devices()
    del os.environ['XLA_FLAGS']
    lane_batch.INIT_LEVEL = 0


@pytest.fixture(autouse=True, scope='module')
def _free_programs():
    """Compiled programs of a file go with it: over the whole suite they would use up a process's memory maps."""
    yield
    jax.clear_caches()
    gc.collect()
