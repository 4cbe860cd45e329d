"""qstr_jax: how many samples sparse retrieval costs each architecture, and the theorems beside it."""

__version__ = '0.1.0'
