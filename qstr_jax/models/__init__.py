"""What answers: one encoded prompt z (N, D_e) in, N predictions out; batches and lanes come by `vmap`.

A model is any Linen module whose `__call__(z_NxE)` returns (N,) or (N, C); one that also takes `position` answers for
one position without the others. `register` adds a builder of such modules under a name; its arguments are the settings.
"""

from qstr_jax.models import builders, mixers
from qstr_jax.models.adapters import from_equinox, from_nnx, from_torch
from qstr_jax.models.baselines import LeastSquares, Ridge, Zero
from qstr_jax.models.feedforward import Feedforward
from qstr_jax.models.recurrent import Recurrent
from qstr_jax.models.registered import build, check_output, is_closed_form, names, predict, register
from qstr_jax.models.transformer import Transformer

__all__ = [
    'Feedforward', 'LeastSquares', 'Recurrent', 'Ridge', 'Transformer', 'Zero', 'build', 'builders', 'check_output',
    'from_equinox', 'from_nnx', 'from_torch', 'is_closed_form', 'mixers', 'names', 'predict', 'register',
]  # fmt: skip
