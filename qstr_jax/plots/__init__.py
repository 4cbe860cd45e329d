"""From numbers to pictures: every figure, drawn from tables. No JAX.

One module per kind of figure. `style` has what all share, `panels` how curves spread over panels, `x_axis` the axis
that these share, `labels` the words, `ends` where words stand beside marks.
"""

from qstr_jax.plots.attention import attention_weights, query_key_matrices
from qstr_jax.plots.cards import card_figure
from qstr_jax.plots.floors import loss_against_floor
from qstr_jax.plots.heatmaps import samples_heatmap
from qstr_jax.plots.learning_curves import learning_curves
from qstr_jax.plots.prompts import prompt
from qstr_jax.plots.ranking import ranked, samples_ranked
from qstr_jax.plots.samples import samples_against
from qstr_jax.plots.seconds import samples_and_seconds
from qstr_jax.plots.small_panels import measure_in_panels, samples_in_panels
from qstr_jax.plots.style import STYLE, looks, save
from qstr_jax.plots.thresholds import samples_against_threshold
from qstr_jax.plots.training_curves import training_curves, training_curves_by_setting
from qstr_jax.plots.tuning import tuning

__all__ = [
    'STYLE', 'attention_weights', 'card_figure', 'learning_curves', 'looks', 'loss_against_floor',
    'measure_in_panels', 'prompt', 'query_key_matrices', 'ranked', 'samples_against', 'samples_against_threshold',
    'samples_and_seconds', 'samples_heatmap', 'samples_in_panels', 'samples_ranked', 'save', 'training_curves',
    'training_curves_by_setting', 'tuning',
]  # fmt: skip
