"""A plugin that gives the radius of a norm constraint in units of the proof's network: `radius_unit='construction'`.

For a Transformer the unit is ‖vec Θ‖ of Lemma 11's network, for a deep RNN that of the network of Propositions 26-28.
For all other models it is 1, since the proofs construct no network for them.
"""

import functools
from typing import Any

import jax
import numpy as np
from scipy import special

from qstr_jax import models, tasks
from qstr_jax.learners import constrained
from qstr_jax.theory import constructions, recurrences
from qstr_jax.theory.networks import Construction
from qstr_jax.theory.sparse_task import SparseTask

# Share of the Gaussian tokens that the network is built for, and the error |ŷ − y| that it may make on these.
TOKEN_SHARE = 0.99
ERROR = 0.1


@constrained.register_unit('construction')
def construction(module: Any, task: SparseTask) -> float:
    """‖vec Θ‖ of the construction for the first draw of a task, for tokens up to the 99 % quantile of ‖x_j‖.

    1.0 for a model without a construction. If the task has a `max_coherence` c < 1, the Transformer's norm
    depends on c and not on the draw. The link must have a two-layer form.
    """
    if not isinstance(module, models.Transformer) and getattr(module, 'cell', None) != 'deep':
        return 1.0
    if isinstance(module, models.Transformer):
        return transformer(task).norms['param_norm']
    bound = float(special.ndtri(1 - (1 - TOKEN_SHARE) / (2 * task.token_dim)))
    return recurrences.retrieving(task, _first_draw(task), bound, error=ERROR).norms['param_norm']


def transformer(task: SparseTask) -> Construction:
    """Lemma 11's network for the first draw of a task, for tokens up to the 99 % quantile of ‖x_j‖."""
    coherence = task.max_coherence if task.max_coherence < 1 else None
    return constructions.transformer(task, _first_draw(task), token_radius(task), ERROR, coherence=coherence)


def token_radius(task: SparseTask) -> float:
    """The 99 % quantile of ‖x_j‖ for tokens N(0, I)."""
    return float(np.sqrt(special.chdtri(task.token_dim, 1 - TOKEN_SHARE)))


@functools.cache
def _first_draw(task: SparseTask) -> tasks.Draw:
    """The first draw; it is cached, since each draw outside of jit compiles its loops again."""
    return jax.device_get(tasks.draw(tasks.task_key(0, task), task))
