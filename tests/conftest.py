"""Strict settings for every test, made before JAX touches a device."""

import gc

import jax
import pytest

# Eight CPU devices, so that code for several of them runs on any machine; shapes must agree in rank.
jax.config.update('jax_num_cpu_devices', 8)
jax.config.update('jax_numpy_rank_promotion', 'raise')


@pytest.fixture(autouse=True, scope='module')
def _free_programs():
    """Compiled programs of a file go with it: over the whole suite they would use up a process's memory maps."""
    yield
    jax.clear_caches()
    gc.collect()
