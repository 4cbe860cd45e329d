"""How a model is fitted. A learner is a module with functions on lane batches:

Lane                                              the numbers of one lane
init(lanes_K, problem)                            constants and first state
advance(state_K, data_K, lanes_K, num_checks, problem)
report, report_curves, progress(state_K, problem)   what is told of a state, on the host
"""

from qstr_jax.learners import fixed, online

# 'closed_form' is not asked for: baselines bring it along.
NAMES = ('online_adamw', *fixed.METHODS[:-1])


def of(problem):
    """The learner's module of a `problem.Problem`."""
    return fixed if isinstance(problem.learner, fixed.Fixed) else online
