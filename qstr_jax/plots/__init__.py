"""Every figure, from tables: one module per kind of figure, `style` for what they share."""

from qstr_jax.plots.losses import curves
from qstr_jax.plots.samples import samples_against_length
from qstr_jax.plots.style import STYLE, looks, save

__all__ = ['STYLE', 'curves', 'looks', 'samples_against_length', 'save']
