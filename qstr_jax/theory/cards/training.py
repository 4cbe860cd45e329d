"""Training inside cards: online AdamW on our own modules, with a step size that falls along a cosine."""

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from qstr_jax import learners, models, tasks
from qstr_jax.learners import held_out, online_lane, outcomes
from qstr_jax.learners.problem import Problem

# A threshold that no lane reaches: all of them train to the end.
NEVER = 1e-30


class Plan(NamedTuple):
    """How long and how fast: steps of `batch_size` fresh prompts, in `windows` of one step size each."""

    steps: int
    batch_size: int
    learning_rate: float
    windows: int = 20
    test_samples: int = 5000
    threshold: float = NEVER
    decay: bool = True
    weight_decay: float = 0.0


class Fit(NamedTuple):
    """Trained lanes: the problem, parameters and data with a leading axis, and the learner's last state."""

    problem: Problem
    params_K: Any
    data_K: online_lane.Data
    state_K: online_lane.State


def _learner(plan):
    steps = max(1, plan.steps // plan.windows)
    return learners.Online(
        batch_size=plan.batch_size,
        check_every=steps,
        threshold=plan.threshold,
        max_samples=plan.steps * plan.batch_size,
        test_samples=plan.test_samples,
        screen=plan.threshold == NEVER,
    )


def windows(task, module, plan, num_lanes, params=None):
    """Trains lanes 0..k−1, each with its own task, and yields (steps done, `Fit`) at the start and after each window.

    The step size of window c of C is learning_rate · (1 + cos(π c/C))/2, or constant without `plan.decay`.
    A `Fit` is valid until the next one is asked for, since states are donated.

    Args:
        task: `tasks.Task`.
        module: the model.
        plan: `Plan`.
        num_lanes: k; lane i has seed i for everything.
        params: function (lane, its `tasks.Draw`) → parameters to start from; None takes the module's own.
    """
    problem = Problem(task=task, test_task=task, module=module, learner=_learner(plan))
    seeds_K = jnp.arange(num_lanes)
    rate_K = jnp.full(num_lanes, plan.learning_rate)
    rates_K = {'learning_rate': rate_K, 'weight_decay': jnp.full(num_lanes, plan.weight_decay)}
    lanes_K = learners.lane(problem.learner, seed=seeds_K, task_seed=seeds_K, **rates_K)
    data_K, state_K = learners.init(lanes_K, problem)
    tasks.check_draw(data_K.task_draw.encodings.complete, task)
    if params is not None:
        draws = [jax.tree.map(lambda leaf, k=k: leaf[k], data_K.task_draw) for k in range(num_lanes)]
        chosen = [params(k, draw) for k, draw in enumerate(draws)]
        params_K = jax.tree.map(lambda *leaves: jnp.stack(leaves), *chosen)
        opt_state_K = jax.vmap(problem.learner.transform(lanes_K).init)(params_K)
        state_K = state_K._replace(params=params_K, opt_state=opt_state_K)
    yield 0, Fit(problem, state_K.params, data_K, state_K)
    checks = problem.learner.max_checks
    for check in range(checks):
        factor = (1 + math.cos(math.pi * check / checks)) / 2 if plan.decay else 1.0
        now_K = lanes_K._replace(learning_rate=factor * rate_K)
        state_K = learners.advance(state_K, data_K, now_K, 1, problem)
        yield (check + 1) * problem.learner.check_every, Fit(problem, state_K.params, data_K, state_K)


def train(task, module, plan, num_lanes, params=None):
    """The last `Fit` of `windows`; stops early when every lane has reached the threshold."""
    for _, fit in windows(task, module, plan, num_lanes, params):
        if not np.any(np.asarray(fit.state_K.outcome) == outcomes.RUNNING):
            break
    return fit


@functools.partial(jax.jit, static_argnames='problem')
def square_errors(params_K, data_K, problem):
    """(y_i − ŷ_i)² on the test prompts, (k, B, N)."""

    def lane(params, data):
        def error(prompt):
            prediction_N = models.predict(problem.module, params, tasks.encode(prompt, problem.task, data.task_draw))
            return (prompt.y_N - prediction_N) ** 2

        return jax.lax.map(error, data.test_prompts, batch_size=min(held_out.TEST_CHUNK, problem.learner.test_samples))

    with jax.default_matmul_precision('highest'):
        return jax.vmap(lane)(params_K, data_K)


def loss_at(fit, mask_N=None):
    """Mean test loss of each lane and its standard error over prompts, on the positions of a mask.

    Returns:
        (loss (k,), standard error (k,)).
    """
    errors_KxBxN = np.asarray(square_errors(fit.params_K, fit.data_K, fit.problem), np.float64)
    mask_N = np.ones(errors_KxBxN.shape[-1], bool) if mask_N is None else np.asarray(mask_N)
    return mean_and_error(errors_KxBxN[:, :, mask_N].mean(axis=2))


def mean_and_error(values_KxB):
    """Means and standard errors over the last axis."""
    values_KxB = np.asarray(values_KxB, np.float64)
    return values_KxB.mean(-1), values_KxB.std(-1) / math.sqrt(values_KxB.shape[-1])


def lane(tree_K, k):
    """Lane k of a tree with a leading axis."""
    return jax.tree.map(lambda leaf: leaf[k], tree_K)
