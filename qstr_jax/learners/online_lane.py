"""One lane of online training: fresh prompts at every step, tests on held-out ones."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from qstr_jax import tasks
from qstr_jax.learners import held_out, risks, screening, starts
from qstr_jax.learners.lanes import STEP_SCOPE
from qstr_jax.learners.outcomes import CENSORED, DIVERGED, OUTRACED, REACHED, RUNNING, is_below
from qstr_jax.learners.problem import Problem


class Data(NamedTuple):
    """What a lane draws once and never changes.

    Attributes:
        task_draw: the link's parameters and the encodings.
        test_prompts: held-out prompts.
        train_key: key of the training prompts.
        position_key: key of the positions j(i) of the point-wise risk.
    """

    task_draw: tasks.Draw
    test_prompts: tasks.Prompt
    train_key: Any
    position_key: Any


class Curves(NamedTuple):
    """One entry per check; NaN (False) for checks that have not been made.

    Attributes:
        train_C: training loss.
        test_C: test loss, or its estimate on a subset if screening skipped the full evaluation.
        test_se_C: standard error of that estimate, 0 for a full evaluation.
        is_due_C: whether screening asked for a full evaluation.
        others_C: further measures by name, see `held_out.measured_on`; of the subset where there was no evaluation.
    """

    train_C: jax.Array
    test_C: jax.Array
    test_se_C: jax.Array
    is_due_C: jax.Array
    others_C: Any = {}  # noqa: RUF012 (never changed)


class State(NamedTuple):
    """What training changes.

    Attributes:
        params: parameters of the model.
        opt_state: state of the optimiser.
        outcome: a number of `outcomes`.
        checks: number of checks made.
        screen: anchor of the screening.
        curves: what the checks measured.
    """

    params: Any
    opt_state: Any
    outcome: jax.Array
    checks: jax.Array
    screen: screening.Screen
    curves: Curves


class Tested(NamedTuple):
    """What a check measured of one lane.

    Attributes:
        losses_S: training losses of the steps since the last check.
        errors_T: errors on the screening subset.
        estimate: of the test loss, from the subset.
        standard_error: of the estimate.
        is_due: whether the estimate asks for a full evaluation.
        is_evaluated: whether there was a full evaluation.
        test_loss: of the full evaluation; meaningless if there was none.
        others: further measures, of the full evaluation or else of the subset.
    """

    losses_S: jax.Array
    errors_T: jax.Array
    estimate: jax.Array
    standard_error: jax.Array
    is_due: jax.Array
    is_evaluated: jax.Array
    test_loss: jax.Array
    others: dict[str, jax.Array]


def init_lane(lane: Any, problem: Problem) -> tuple[Data, State]:
    """Constants and the first state of one lane."""
    learner = problem.learner
    keys = held_out.stream_keys(lane, problem)
    task_draw = held_out.draw_task(keys, problem)
    data = Data(
        task_draw=task_draw,
        test_prompts=held_out.draw_prompts(keys, problem, {'test': learner.test_samples}, task_draw),
        train_key=keys['train'],
        position_key=keys['position'],
    )
    params = starts.params(learner.first_params, starts.StartContext(keys['init'], problem, task_draw))
    nothing_C = jnp.full((learner.max_checks,), jnp.nan)
    state = State(
        params=params,
        opt_state=learner.transform(lane).init(params),
        outcome=jnp.int32(RUNNING),
        checks=jnp.int32(0),
        screen=screening.start(learner.test_samples),
        curves=Curves(
            train_C=nothing_C,
            test_C=nothing_C,
            test_se_C=nothing_C,
            is_due_C=jnp.zeros(nothing_C.shape, bool),
            others_C=dict.fromkeys(held_out.other_measures(problem), nothing_C),
        ),
    )
    return data, state


def batch_loss(params: Any, data: Data, problem: Problem, indices_B: jax.Array) -> jax.Array:
    """The learner's risk on some examples."""
    task = problem.task
    prompts = tasks.examples(data.train_key, indices_B, task, data.task_draw.link)
    if problem.learner.risk == 'averaged':
        return risks.averaged(problem.module, params, prompts, task, data.task_draw)
    counts_BxN = jax.vmap(lambda prompt: prompt.counts_N)(prompts)
    positions_B = tasks.positions(data.position_key, indices_B, task.seq_len, counts_BxN)
    return risks.pointwise(problem.module, params, prompts, positions_B, task=task, task_draw=data.task_draw)


def train_step(
    params: Any, opt_state: Any, step: jax.Array, *, data: Data, lane: Any, problem: Problem
) -> tuple[Any, Any, jax.Array]:
    """One step on the fresh examples step·B, …, (step+1)·B − 1."""
    learner = problem.learner
    indices_B = step * learner.batch_size + jnp.arange(learner.batch_size)
    loss, grads = jax.value_and_grad(batch_loss)(params, data, problem, indices_B)
    updates, opt_state = learner.transform(learner.lane_at(lane, step)).update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, loss


def evaluate(params: Any, data: Data, problem: Problem) -> tuple[jax.Array, dict[str, jax.Array]]:
    """Test loss (2.1) of one lane on its held-out prompts, or what else the threshold is on, and further measures."""
    return jax.tree.map(jnp.mean, held_out.measured_on(params, data.task_draw, data.test_prompts, problem))


def train_window(state: State, data: Data, lane: Any, problem: Problem) -> Any:
    """The steps of one lane from one check to the next."""
    check_every = problem.learner.check_every

    def body(carry: Any, i: jax.Array) -> Any:
        step = state.checks * check_every + i
        params, opt_state = carry
        with jax.named_scope(STEP_SCOPE):
            params, opt_state, loss = train_step(params, opt_state, step, data=data, lane=lane, problem=problem)
        return (params, opt_state), loss

    return jax.lax.scan(body, (state.params, state.opt_state), jnp.arange(check_every))


def screen(state: State, params: Any, data: Data, problem: Problem) -> Any:
    """Errors of one lane on the screening subset, further measures, the suggested test loss and its standard error."""
    size = screening.subset_size(problem.learner.test_samples)
    subset = jax.tree.map(lambda leaf: leaf[:size], data.test_prompts)
    errors_T, others = held_out.measured_on(params, data.task_draw, subset, problem)
    return errors_T, jax.tree.map(jnp.mean, others), *screening.estimate(state.screen, errors_T)


def is_outraced(num_checks: jax.Array, lane: Any, learner: Any) -> jax.Array:
    """Whether a lane that has not reached the threshold has used the samples that it is given."""
    stop_after = getattr(lane, 'stop_after', 0)
    # Counted in checks, since the samples could overflow.
    return (stop_after > 0) & (num_checks > (stop_after - 1) // learner.samples_per_check)


def record(state: State, tested: Tested, lane: Any, learner: Any) -> State:
    """The state of one lane after a check."""
    train_loss = jnp.mean(tested.losses_S)
    is_reached = tested.is_evaluated & is_below(tested.test_loss, learner.threshold)
    test_loss = jnp.where(tested.is_evaluated, tested.test_loss, tested.estimate)
    is_finite = jnp.isfinite(train_loss) & jnp.isfinite(test_loss)
    is_spent = state.checks + 1 >= learner.max_checks
    outcome = jnp.where(is_outraced(state.checks + 1, lane, learner), OUTRACED, RUNNING)
    outcome = jnp.where(is_spent, CENSORED, outcome)
    outcome = jnp.where(is_reached, REACHED, outcome)
    outcome = jnp.where(is_finite, outcome, DIVERGED)
    standard_error = jnp.where(tested.is_evaluated, 0.0, tested.standard_error)
    point = Curves(
        train_C=train_loss,
        test_C=test_loss,
        test_se_C=standard_error,
        is_due_C=tested.is_due,
        others_C=tested.others,
    )
    return state._replace(
        outcome=outcome.astype(jnp.int32),
        checks=state.checks + 1,
        screen=screening.update(state.screen, tested.errors_T, test_loss, tested.is_due),
        curves=jax.tree.map(lambda curve, value: curve.at[state.checks].set(value), state.curves, point),
    )
