"""qstr_jax: how many samples sparse retrieval costs each architecture, and the theorems beside it."""

from qstr_jax import threads

__version__ = '0.1.0'

threads.ensure()
