"""From rows to numbers: samples to threshold, censoring, exponents with intervals, Table 1 and floors. No JAX.

One row is one lane: one model trained with one seed until its test loss fell strictly below `threshold` ('reached'),
until its budget of `max_samples` ran out ('censored'), or until its loss stopped being finite ('diverged'). A search
whose first `min_samples` were already enough is 'censored_below'. A lane that was stopped early, at `stop_after`, since
a rival needs fewer samples is 'outraced'.

names: what models, tasks and settings are called.       curves: what tells the curves of a table apart.
summary: the lanes of a point as one row.                exponents: which power of N the samples are.
log_means, line_fit: means of lanes, a line through them. laws: N^a or (log N)^p.
learning: whether a used-up budget is failure or bound.  resolution: crossings between two checks.
no_retrieval: thresholds that need no retrieval.         evidence: the four kinds of Table 1.
samples_table: means and exponents for readers.          growth: both laws of every curve.
verdicts, table1, answers: theorems beside measurements. floors: Theorem 6 beside trained networks.
selection: hyperparameters by validation.                tuning: what a tuned sweep chose.
seconds: what the cells cost.                            formats: tables as Markdown and LaTeX.
combinations: what gets figures of its own.              kinds: online training, searches, fits.
crossings: several thresholds from one run.              erms: which lanes are ERMs.
measured: lanes as arrays.                               card, check: a statement beside its points.
"""

from qstr_jax.analysis.curves import (
    ALWAYS_NAMED,
    Curve,
    curve_columns,
    point_columns,
    require,
    setting_columns,
    split_curves,
)
from qstr_jax.analysis.exponents import Exponent, exponent
from qstr_jax.analysis.names import (
    DISPLAY_NAMES,
    MODELS,
    display,
    heading,
    headings,
    model_order,
    ordered,
    setting_text,
)
from qstr_jax.analysis.samples_table import samples_table, short_number
from qstr_jax.analysis.seconds import seconds_per_cell
from qstr_jax.analysis.summary import OUTCOMES, summarize

__all__ = [
    'ALWAYS_NAMED', 'DISPLAY_NAMES', 'MODELS', 'OUTCOMES', 'Curve', 'Exponent', 'curve_columns', 'display',
    'exponent', 'heading', 'headings', 'model_order', 'ordered', 'point_columns', 'require', 'samples_table',
    'seconds_per_cell', 'setting_columns', 'setting_text', 'short_number', 'split_curves', 'summarize',
]  # fmt: skip
