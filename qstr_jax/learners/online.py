"""Online AdamW: fresh prompts at every step, until the test loss is below a threshold (PAPER.md, section 6).

`train_step` and `evaluate` are written for one lane. `init`, `advance` and `report` work on a lane batch:
k lanes of one cell, a leading axis on everything. The conditionals that save work (stop, skip a test) live on
the lane batch, since under vmap both branches of a `cond` run.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from qstr_jax import tasks
from qstr_jax.learners import risks, screening
from qstr_jax.learners.online_settings import Online
from qstr_jax.learners.problem import (
    CENSORED,
    DIVERGED,
    OUTCOMES,
    REACHED,
    RUNNING,
    Problem,
    draw_task,
    errors_on,
    held_out,
    init_params,
    over_lanes,
    run_checks,
    select,
)
from qstr_jax.tasks import streams

__all__ = ['CENSORED', 'DIVERGED', 'OUTCOMES', 'REACHED', 'RUNNING', 'Lane', 'Online', 'Problem', 'advance', 'init']


class Lane(NamedTuple):
    """The numbers of one lane; traced, so that all lanes of a cell share one program."""

    seed: Any
    task_seed: Any
    learning_rate: Any
    weight_decay: Any


class Data(NamedTuple):
    """What a lane draws once and never changes."""

    task_draw: tasks.Draw
    test_prompts: tasks.Prompt
    train_key: Any
    position_key: Any


class Curves(NamedTuple):
    """One entry per check; NaN (False) where there was none yet.

    `test_C` is the test loss, or its estimate on a subset where screening skipped the evaluation; `test_se_C` is
    that estimate's standard error, 0 for a full evaluation; `is_due_C` tells whether screening asked for one.
    """

    train_C: jax.Array
    test_C: jax.Array
    test_se_C: jax.Array
    is_due_C: jax.Array


class State(NamedTuple):
    """What training changes."""

    params: Any
    opt_state: Any
    outcome: jax.Array
    checks: jax.Array
    screen: screening.Screen
    curves: Curves


def optimizer(lane):
    """AdamW with the lane's learning rate and weight decay; all else as in PyTorch and optax."""
    return optax.adamw(lane.learning_rate, weight_decay=lane.weight_decay)


def init_lane(lane, problem):
    """`Data` and the first `State` of one lane."""
    task = problem.task
    task_draw = draw_task(lane, problem)
    data = Data(
        task_draw,
        held_out(lane, problem, {'test': problem.learner.test_samples}, task_draw),
        streams.stream_key(lane.seed, 'train', task),
        streams.stream_key(lane.seed, 'position', task),
    )
    params = init_params(lane, problem)
    nothing_C = jnp.full((problem.learner.max_checks,), jnp.nan)
    curves = Curves(nothing_C, nothing_C, nothing_C, jnp.zeros(nothing_C.shape, bool))
    state = State(
        params,
        optimizer(lane).init(params),
        jnp.int32(RUNNING),
        jnp.int32(0),
        screening.start(problem.learner.test_samples),
        curves,
    )
    return data, state


def batch_loss(params, data, problem, indices_B):
    """Training risk on examples number `indices_B`, by the learner's risk."""
    task = problem.task
    prompts = tasks.examples(data.train_key, indices_B, task, data.task_draw.link)
    if problem.learner.risk == 'averaged':
        return risks.averaged(problem.module, params, prompts, task, data.task_draw)
    positions_B = tasks.positions(data.position_key, indices_B, task.seq_len)
    return risks.pointwise(problem.module, params, prompts, positions_B, task, data.task_draw)


def train_step(params, opt_state, step, data, lane, problem):
    """One AdamW step on fresh examples step·B, …, (step+1)·B − 1; returns its loss, taken before."""
    batch_size = problem.learner.batch_size
    indices_B = step * batch_size + jnp.arange(batch_size)
    loss, grads = jax.value_and_grad(batch_loss)(params, data, problem, indices_B)
    updates, opt_state = optimizer(lane).update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, loss


def evaluate(params, data, problem):
    """Test loss (2.1) of one lane on its held-out prompts."""
    return jnp.mean(errors_on(params, data, data.test_prompts, problem))


def _train_window(params, opt_state, checks, data, lane, problem):
    """`check_every` steps of one lane, and their losses."""
    check_every = problem.learner.check_every

    def body(carry, i):
        params, opt_state, loss = train_step(*carry, checks * check_every + i, data, lane, problem)
        return (params, opt_state), loss

    return jax.lax.scan(body, (params, opt_state), jnp.arange(check_every))


def _screen(state, params, data, problem):
    """Errors of one lane on the screening subset, the loss they suggest and its standard error."""
    size = screening.subset_size(problem.learner.test_samples)
    subset = jax.tree.map(lambda leaf: leaf[:size], data.test_prompts)
    errors_M = errors_on(params, data, subset, problem)
    return errors_M, *screening.estimate(state.screen, errors_M)


def _record(state, params, opt_state, losses_S, screened, is_due, is_evaluated, test_loss, learner):
    """State of one lane after a check; `test_loss` means something only if `is_evaluated`."""
    errors_M, estimate, standard_error = screened
    train_loss = jnp.mean(losses_S)
    is_reached = is_evaluated & (test_loss < learner.threshold)
    test_loss = jnp.where(is_evaluated, test_loss, estimate)
    is_finite = jnp.isfinite(train_loss) & jnp.isfinite(test_loss)
    is_spent = state.checks + 1 >= learner.max_checks
    outcome = jnp.where(is_spent, CENSORED, RUNNING)
    outcome = jnp.where(is_reached, REACHED, outcome)
    outcome = jnp.where(is_finite, outcome, DIVERGED)
    point = Curves(train_loss, test_loss, jnp.where(is_evaluated, 0.0, standard_error), is_due)
    return State(
        params,
        opt_state,
        outcome.astype(jnp.int32),
        state.checks + 1,
        screening.update(state.screen, errors_M, test_loss, is_due),
        jax.tree.map(lambda curve, value: curve.at[state.checks].set(value), state.curves, point),
    )


def _check(state_K, data_K, lanes_K, problem):
    """Trains all lanes up to the next check and tests those that are due; finished lanes stay as they are."""
    learner = problem.learner
    is_active_K = state_K.outcome == RUNNING

    def window(state, data, lane):
        return _train_window(state.params, state.opt_state, state.checks, data, lane, problem)

    (params_K, opt_state_K), losses_KxS = over_lanes(window)(state_K, data_K, lanes_K)
    screened_K = over_lanes(functools.partial(_screen, problem=problem))(state_K, params_K, data_K)
    is_due_K = screening.is_due(*screened_K[1:], learner.threshold)
    # The last loss of a censored lane is always a full one.
    is_due_K |= state_K.checks + 1 >= learner.max_checks
    # Without screening everything is evaluated; what it would have skipped is recorded all the same.
    is_evaluated_K = is_active_K & is_due_K if learner.screen else is_active_K
    test_loss_K = jax.lax.cond(
        jnp.any(is_evaluated_K),
        lambda: over_lanes(functools.partial(evaluate, problem=problem))(params_K, data_K),
        lambda: jnp.full(is_due_K.shape, jnp.nan),
    )
    record = functools.partial(_record, learner=learner)
    new_K = jax.vmap(record)(
        state_K, params_K, opt_state_K, losses_KxS, screened_K, is_due_K, is_evaluated_K, test_loss_K
    )
    return select(is_active_K, new_K, state_K)


@functools.partial(jax.jit, static_argnames='problem')
def init(lanes_K, problem):
    """`Data` and `State` of a lane batch; `lanes_K` is a `Lane` of arrays (k,)."""
    with jax.default_matmul_precision('highest'):
        return jax.vmap(lambda lane: init_lane(lane, problem))(lanes_K)


@functools.partial(jax.jit, static_argnames='problem', donate_argnames='state_K')
def advance(state_K, data_K, lanes_K, num_checks, problem):
    """Runs a lane batch for up to `num_checks` checks, or until no lane runs any more."""
    return run_checks(lambda state_K: _check(state_K, data_K, lanes_K, problem), state_K, num_checks)


def report(state_K, problem):
    """Columns of the rows of a lane batch: a dict of arrays (k,), on the host."""
    outcome_K, checks_K, curves_K = jax.device_get((state_K.outcome, state_K.checks, state_K.curves))
    last_K = (checks_K - 1).clip(0)[:, None]
    samples_K = checks_K * problem.learner.samples_per_check
    return {
        'outcome': [OUTCOMES[outcome] for outcome in outcome_K],
        'num_samples': samples_K,
        'samples_to_threshold': [
            int(n) if outcome == REACHED else None for n, outcome in zip(samples_K, outcome_K, strict=True)
        ],
        'train_loss': np.take_along_axis(curves_K.train_C, last_K, axis=1)[:, 0],
        'steps': checks_K * problem.learner.check_every,
        'converged': outcome_K == REACHED,
        'test_loss': np.take_along_axis(curves_K.test_C, last_K, axis=1)[:, 0],
        'num_evaluations': np.sum(curves_K.test_se_C == 0, axis=1),
    }


def report_curves(state_K, problem):
    """Learning curves of a lane batch: per lane a dict of columns, one entry per check."""
    checks_K, curves_K = jax.device_get((state_K.checks, state_K.curves))
    samples_C = problem.learner.samples_per_check * np.arange(1, problem.learner.max_checks + 1)
    return [
        {
            'samples': samples_C[:checks],
            'train_loss': curves_K.train_C[k, :checks],
            'test_loss': curves_K.test_C[k, :checks],
            'test_loss_se': curves_K.test_se_C[k, :checks],
            'is_due': curves_K.is_due_C[k, :checks],
        }
        for k, checks in enumerate(checks_K)
    ]


def progress(state_K, problem):
    """Where the furthest lane is: its samples and the training loss of its last window; on the host."""
    checks_K = np.asarray(state_K.checks)
    lane = int(np.argmax(checks_K))
    return {
        'samples': int(checks_K[lane]) * problem.learner.samples_per_check,
        'train_loss': float(state_K.curves.train_C[lane, checks_K[lane] - 1]),
    }
