"""How a model is fitted: one file for each learner, behind the protocol `Learner`.

online         fresh prompts at every step, as in Figures 1 and 3
adamw          AdamW on n prompts, as in Figure 2
constrained    ERM in a norm ball                               (Theorems 4 and 7)
min_norm       least norm within ε of the least training risk   (Theorems 6 and 9)
worst_erm      an ERM in a norm ball that errs                  (Theorem 4)
stationary     stationary points of the regularised risk        (Theorem 6)
closed_form    baselines with a solution in closed form
"""

from qstr_jax.learners import projections, risks
from qstr_jax.learners.adamw import AdamW
from qstr_jax.learners.closed_form import ClosedForm
from qstr_jax.learners.constrained import Constrained
from qstr_jax.learners.fixed_sample import FixedSample
from qstr_jax.learners.lanes import OUTCOMES
from qstr_jax.learners.learner import Learner, advance, init, lane, names, register
from qstr_jax.learners.min_norm import MinNorm
from qstr_jax.learners.online import Online
from qstr_jax.learners.problem import Problem
from qstr_jax.learners.stationary import Stationary
from qstr_jax.learners.worst_erm import WorstERM

__all__ = [
    'OUTCOMES', 'AdamW', 'ClosedForm', 'Constrained', 'FixedSample', 'Learner', 'MinNorm', 'Online', 'Problem',
    'Stationary', 'WorstERM', 'advance', 'init', 'lane', 'names', 'projections', 'register', 'risks',
]  # fmt: skip
