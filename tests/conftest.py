"""Strict settings for every test, made before JAX touches a device."""

import jax

# Eight CPU devices, so that code for several of them runs on any machine; shapes must agree in rank.
jax.config.update('jax_num_cpu_devices', 8)
jax.config.update('jax_numpy_rank_promotion', 'raise')
