"""One lane of online training: fresh prompts at every step, tests on held-out ones."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from qstr_jax import tasks
from qstr_jax.learners import held_out, risks, screening
from qstr_jax.learners.outcomes import CENSORED, DIVERGED, REACHED, RUNNING
from qstr_jax.learners.problem import Problem
from qstr_jax.tasks import streams


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


class Tested(NamedTuple):
    """What a check found out about one lane.

    Attributes:
        losses_S: training losses of the steps since the last check.
        errors_T: errors on the screening subset.
        estimate, standard_error: of the test loss, by the subset.
        is_due: whether the estimate asks for a full evaluation.
        is_evaluated: whether there was one.
        test_loss: of the full evaluation; means nothing where there was none.
    """

    losses_S: jax.Array
    errors_T: jax.Array
    estimate: jax.Array
    standard_error: jax.Array
    is_due: jax.Array
    is_evaluated: jax.Array
    test_loss: jax.Array


def init_lane(lane: Any, problem: Problem) -> tuple[Data, State]:
    """Constants and the first state of one lane.

    Args:
        lane: its seeds and traced settings.
        problem: the cell's.
    """
    task, learner = problem.task, problem.learner
    task_draw = held_out.draw_task(lane, problem)
    data = Data(
        task_draw=task_draw,
        test_prompts=held_out.draw_prompts(lane, problem, {'test': learner.test_samples}, task_draw),
        train_key=streams.stream_key(lane.seed, 'train', task),
        position_key=streams.stream_key(lane.seed, 'position', task),
    )
    params = held_out.init_params(lane, problem)
    nothing_C = jnp.full((learner.max_checks,), jnp.nan)
    state = State(
        params=params,
        opt_state=learner.transform(lane).init(params),
        outcome=jnp.int32(RUNNING),
        checks=jnp.int32(0),
        screen=screening.start(learner.test_samples),
        curves=Curves(nothing_C, nothing_C, nothing_C, jnp.zeros(nothing_C.shape, bool)),
    )
    return data, state


def batch_loss(params: Any, data: Data, problem: Problem, indices_B: jax.Array) -> jax.Array:
    """Training risk on some examples, by the learner's risk.

    Args:
        params: of one lane.
        data: the lane's.
        problem: the cell's.
        indices_B: numbers of the examples.
    """
    task = problem.task
    prompts = tasks.examples(data.train_key, indices_B, task, data.task_draw.link)
    if problem.learner.risk == 'averaged':
        return risks.averaged(problem.module, params, prompts, task, data.task_draw)
    positions_B = tasks.positions(data.position_key, indices_B, task.seq_len)
    return risks.pointwise(problem.module, params, prompts, positions_B, task=task, task_draw=data.task_draw)


def train_step(
    params: Any, opt_state: Any, step: jax.Array, *, data: Data, lane: Any, problem: Problem
) -> tuple[Any, Any, jax.Array]:
    """One step on fresh examples step·B, …, (step+1)·B − 1.

    Args:
        params, opt_state: of one lane.
        step: number of the step, from 0.
        data, lane: the lane's.
        problem: the cell's.

    Returns:
        (params, opt_state, loss before the step).
    """
    learner = problem.learner
    indices_B = step * learner.batch_size + jnp.arange(learner.batch_size)
    loss, grads = jax.value_and_grad(batch_loss)(params, data, problem, indices_B)
    updates, opt_state = learner.transform(lane).update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, loss


def evaluate(params: Any, data: Data, problem: Problem) -> jax.Array:
    """Test loss (2.1) of one lane on its held-out prompts.

    Args:
        params, data: the lane's.
        problem: the cell's.
    """
    return jnp.mean(held_out.errors_on(params, data.task_draw, data.test_prompts, problem))


def train_window(state: State, data: Data, lane: Any, problem: Problem) -> Any:
    """`check_every` steps of one lane.

    Args:
        state, data, lane: the lane's.
        problem: the cell's.

    Returns:
        ((params, opt_state) after the steps, their losses (S,)).
    """
    check_every = problem.learner.check_every

    def body(carry: Any, i: jax.Array) -> Any:
        step = state.checks * check_every + i
        params, opt_state, loss = train_step(*carry, step, data=data, lane=lane, problem=problem)
        return (params, opt_state), loss

    return jax.lax.scan(body, (state.params, state.opt_state), jnp.arange(check_every))


def screen(state: State, params: Any, data: Data, problem: Problem) -> Any:
    """Errors of one lane on the screening subset, the loss they suggest and its standard error.

    Args:
        state: before the last window, for its anchor.
        params: after it.
        data: the lane's.
        problem: the cell's.
    """
    size = screening.subset_size(problem.learner.test_samples)
    subset = jax.tree.map(lambda leaf: leaf[:size], data.test_prompts)
    errors_T = held_out.errors_on(params, data.task_draw, subset, problem)
    return errors_T, *screening.estimate(state.screen, errors_T)


def record(state: State, tested: Tested, learner: Any) -> State:
    """State of one lane after a check.

    Args:
        state: with the parameters of after the check.
        tested: what the check found out.
        learner: the cell's `online.Online`.
    """
    train_loss = jnp.mean(tested.losses_S)
    is_reached = tested.is_evaluated & (tested.test_loss < learner.threshold)
    test_loss = jnp.where(tested.is_evaluated, tested.test_loss, tested.estimate)
    is_finite = jnp.isfinite(train_loss) & jnp.isfinite(test_loss)
    is_spent = state.checks + 1 >= learner.max_checks
    outcome = jnp.where(is_spent, CENSORED, RUNNING)
    outcome = jnp.where(is_reached, REACHED, outcome)
    outcome = jnp.where(is_finite, outcome, DIVERGED)
    standard_error = jnp.where(tested.is_evaluated, 0.0, tested.standard_error)
    point = Curves(train_loss, test_loss, standard_error, tested.is_due)
    return state._replace(
        outcome=outcome.astype(jnp.int32),
        checks=state.checks + 1,
        screen=screening.update(state.screen, tested.errors_T, test_loss, tested.is_due),
        curves=jax.tree.map(lambda curve, value: curve.at[state.checks].set(value), state.curves, point),
    )
