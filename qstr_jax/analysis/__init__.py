"""From lanes to numbers: samples to threshold, censoring, and exponents with intervals.

One row of the input is one lane: one model trained with one seed until its test loss fell strictly
below `threshold` ('reached'), its budget of `max_samples` ran out ('censored'), the `min_samples` that a
search began with were enough already ('censored_below'), or its loss stopped being finite ('diverged'). Only
tables are known here: results are read again without JAX.

summary: lanes of a cell as one row.    exponents: the power of N of a curve.    tables: both as Markdown.
curves: what tells curves apart, and what they are called.
"""

from qstr_jax.analysis.curves import (
    DISPLAY_NAMES,
    MODELS,
    SYMBOLS,
    curve_columns,
    model_order,
    panel_columns,
    require,
    split_curves,
)
from qstr_jax.analysis.exponents import Exponent, exponent
from qstr_jax.analysis.summary import OUTCOMES, summarize
from qstr_jax.analysis.tables import short_number, table

__all__ = [
    'DISPLAY_NAMES',
    'MODELS',
    'OUTCOMES',
    'SYMBOLS',
    'Exponent',
    'curve_columns',
    'exponent',
    'model_order',
    'panel_columns',
    'require',
    'short_number',
    'split_curves',
    'summarize',
    'table',
]
