"""What several test files share."""

import functools

import jax
import numpy as np

# For programs that run once: they compile up to ten times faster and run slower.
QUICK = {'xla_backend_optimization_level': 0, 'xla_llvm_disable_expensive_passes': True}
quick_jit = functools.partial(jax.jit, compiler_options=QUICK)


def random_like(tree, seed=0, scale=1.0):
    """Normal numbers in place of all leaves, so that biases count too."""
    rng = np.random.default_rng(seed)
    return jax.tree.map(lambda leaf: scale * rng.normal(size=leaf.shape).astype(np.float32), tree)


def random_params(module, *args, scale=1.0):
    """Random parameters, biases included, of a module that is called with `args`."""
    return random_like(jax.eval_shape(module.init, jax.random.key(0), *args), scale=scale)
