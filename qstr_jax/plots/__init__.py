"""Every figure, from tables: one module per kind of figure, `style` for what they share."""

from qstr_jax.plots.attention import attention_weights, query_key_matrices
from qstr_jax.plots.cost import cost
from qstr_jax.plots.heatmaps import samples_heatmap
from qstr_jax.plots.lane_curves import curves
from qstr_jax.plots.prompts import prompt
from qstr_jax.plots.samples import samples_against_length
from qstr_jax.plots.scaling import scaling
from qstr_jax.plots.setting_curves import loss_by_setting
from qstr_jax.plots.speed import speed
from qstr_jax.plots.style import STYLE, looks, save
from qstr_jax.plots.test_loss import against_floor, learning_curves

__all__ = [
    'STYLE',
    'against_floor',
    'attention_weights',
    'cost',
    'curves',
    'learning_curves',
    'looks',
    'loss_by_setting',
    'prompt',
    'query_key_matrices',
    'samples_against_length',
    'samples_heatmap',
    'save',
    'scaling',
    'speed',
]
