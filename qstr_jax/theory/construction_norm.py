"""Norm budgets in units of the proof's network: a plugin that adds `budget_unit='construction'`.

The Transformer's unit is ‖vec Θ‖ of Lemma 11's network, the deep RNN's that of Propositions 26-28 and every other
model's is 1, since no proof has a network for it.
"""

import jax
import numpy as np
from scipy import stats

from qstr_jax import models, tasks
from qstr_jax.learners import radius_units
from qstr_jax.theory import constructions, recurrences

# Share of Gaussian tokens that the network must serve, and the error |ŷ − y| that it is built for.
TOKEN_SHARE = 0.99
ERROR = 0.1


@radius_units.register('construction')
def construction(module, task):
    """‖vec Θ‖ of the construction for the first draw of the task, for tokens up to the 99 % quantile of ‖x_j‖.

    With `max_coherence` c < 1 the Transformer's depends on c and not on the draw.
    """
    if not isinstance(module, models.Transformer) and getattr(module, 'cell', None) != 'deep':
        return 1.0
    task_draw = jax.device_get(tasks.draw(tasks.task_key(0, task), task))
    if isinstance(module, models.Transformer):
        radius = float(np.sqrt(stats.chi2.ppf(TOKEN_SHARE, task.token_dim)))
        coherence = task.max_coherence if task.max_coherence < 1 else None
        built = constructions.transformer(task, task_draw, radius, ERROR, coherence=coherence)
    else:
        bound = float(stats.norm.ppf(1 - (1 - TOKEN_SHARE) / (2 * task.token_dim)))
        built = recurrences.retrieving(task, task_draw, bound, error=ERROR)
    return built.norms['param_norm']
