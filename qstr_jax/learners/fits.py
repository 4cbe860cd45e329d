"""The fits of one lane on a fixed sample: the start, the assessment of each fit, and the next n of a search."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from qstr_jax import tasks
from qstr_jax.learners import bracket, certificate, fitting, held_out, restarts, span_of_inputs, starts
from qstr_jax.learners.lanes import FITTED, RUNNING
from qstr_jax.learners.problem import Problem


class Data(NamedTuple):
    """What a lane draws once and never changes.

    Attributes:
        task_draw: the link's parameters and the encodings.
        train: `max_samples` training prompts, of which a fit uses the first n.
        position_B: the position j(i) of each training prompt, for the point-wise risk.
        held_out: the test prompts, followed by the validation prompts.
        order_key: key of the order of minibatches.
        starts: the first parameters of each start, with a leading axis of starts.
        reference: parameters that fits are compared with; () if there are none.
    """

    task_draw: tasks.Draw
    train: tasks.Prompt
    position_B: jax.Array
    held_out: tasks.Prompt
    order_key: Any
    starts: Any
    reference: Any


class Record(NamedTuple):
    """The columns of one finished fit. A `State` keeps them with a leading axis of fits."""

    n: jax.Array
    steps: jax.Array
    converged: jax.Array
    fitted_radius: jax.Array
    min_train_risk: jax.Array
    infeasible_radius: jax.Array
    winner: jax.Array
    highest_start_risk: jax.Array
    reference_train_risk: jax.Array
    reference_test_loss: jax.Array
    certificate: certificate.Certificate
    test_loss: jax.Array
    test_loss_se: jax.Array
    validation_loss: jax.Array
    validation_loss_se: jax.Array
    others: dict[str, jax.Array]


def no_records(num_fits: int, others: tuple[str, ...]) -> Record:
    """Room for the records of a lane, before its first fit has ended."""
    nan, zero = jnp.full((num_fits,), jnp.nan), jnp.zeros((num_fits,), jnp.int32)
    fields: dict[str, Any] = dict.fromkeys(Record._fields, nan)
    fields['n'] = fields['steps'] = fields['winner'] = zero
    fields['converged'] = jnp.zeros((num_fits,), bool)
    fields['certificate'] = certificate.Certificate(**dict.fromkeys(certificate.Certificate._fields, nan))
    fields['others'] = dict.fromkeys(others, nan)
    return Record(**fields)


class State(NamedTuple):
    """What training changes.

    Attributes:
        fit: the present fit.
        stage: its present stage.
        restarts: the starts that are done; () with a single start.
        bracket: where the search for n* stands; it has the present n.
        outcome: an outcome, see `lanes`.
        checks: number of checks made.
        params: parameters of the fit that the row reports, as the module has them.
        reported: number of that fit.
        num_fits: number of finished fits.
        train_loss: mean objective of the last steps.
        records: finished fits.
    """

    fit: fitting.Fit
    stage: fitting.Stage
    restarts: Any
    bracket: bracket.Bracket
    outcome: jax.Array
    checks: jax.Array
    params: Any
    reported: jax.Array
    num_fits: jax.Array
    train_loss: jax.Array
    records: Record


def init_lane(lane: Any, problem: Problem) -> tuple[Data, State]:
    """Constants and the first state of one lane."""
    task, learner = problem.task, problem.learner
    keys = held_out.stream_keys(lane, problem)
    task_draw = held_out.draw_task(keys, problem)
    indices_B = jnp.arange(learner.max_samples)
    train = tasks.examples(keys['train'], indices_B, task, task_draw.link)
    counts_BxN = jax.vmap(lambda prompt: prompt.counts_N)(train)
    context = starts.StartContext(key=keys['init'], problem=problem, task_draw=task_draw)
    sizes = {'test': learner.test_samples, 'validation': learner.validation_samples}
    data = Data(
        task_draw=task_draw,
        train=train,
        position_B=tasks.positions(keys['position'], indices_B, task.seq_len, counts_BxN),
        held_out=held_out.draw_prompts(keys, problem, sizes, task_draw),
        order_key=keys['order'],
        starts=learner.placed(starts.stacked(learner.starts, context), lane),
        reference=starts.params(learner.reference, context) if learner.reference else (),
    )
    n = jnp.int32(learner.min_samples) if learner.is_search else lane.sample_size
    fit = fitting.start(data, lane, n, problem)
    state = State(
        fit=fit,
        stage=learner.first_stage(fit.params, lane),
        restarts=restarts.first(fit.params) if len(learner.starts) > 1 else (),
        bracket=bracket.start(n),
        outcome=jnp.int32(RUNNING),
        checks=jnp.int32(0),
        params=jax.tree.map(lambda leaf: leaf[0], data.starts),
        reported=jnp.int32(0),
        num_fits=jnp.int32(0),
        train_loss=jnp.float32(jnp.nan),
        records=no_records(learner.max_fits, OTHERS if held_out.other_measures(problem) else ()),
    )
    return data, state


# Further measures where labels are classes: cross-entropies on test and validation prompts, and the test accuracy. The
# record's own losses are of the kind that the threshold is on.
OTHERS = ('test_loss', 'test_loss_se', 'validation_loss', 'validation_loss_se', 'accuracy')


def _others(measured: dict[str, jax.Array], num_tests: int) -> dict[str, jax.Array]:
    """The further measures of one fit, from those of its held-out prompts."""
    if not measured:
        return {}
    test_T, validation_T = jnp.split(measured['test_loss'], [num_tests])
    values = *_mean_and_error(test_T), *_mean_and_error(validation_T), jnp.mean(measured['accuracy'][:num_tests])
    return dict(zip(OTHERS, values, strict=True))


def _mean_and_error(errors_B: jax.Array) -> tuple[jax.Array, jax.Array]:
    return jnp.mean(errors_B), jnp.std(errors_B) / jnp.sqrt(jnp.float32(errors_B.size))


def measure_now(state: State, data: Data, lane: Any, problem: Problem) -> certificate.Certificate:
    """The certificate of one lane's present parameters."""
    return certificate.measure(state.fit, state.stage.radius, data=data, lane=lane, problem=problem)


def step_stage(state: State, found: Any, data: Data, lane: Any, problem: Problem) -> tuple[Any, State]:
    """Whether one lane's fit is over, and the lane's state, which moves to the next stage if only a stage is over."""
    is_over, fit, stage = problem.learner.step_stage(
        state.stage, state.fit, found, train_loss=state.train_loss, data=data, lane=lane, problem=problem
    )
    return is_over, state._replace(fit=fit, stage=stage)


def assess(state: State, data: Data, lane: Any, problem: Problem) -> Record:
    """The record of one lane's present fit: its certificate, its test and validation loss."""
    learner = problem.learner
    params = learner.result(state.stage, state.fit.params)
    fit = state.fit._replace(params=params)
    found = certificate.measure(fit, state.stage.radius, data=data, lane=lane, problem=problem)
    expanded = span_of_inputs.expand(params, state.fit.basis_RxV, learner.span)
    errors_T, measured = held_out.measured_on(expanded, data.task_draw, data.held_out, problem)
    test_T, validation_T = jnp.split(errors_T, [learner.test_samples])
    test_loss, test_loss_se = _mean_and_error(test_T)
    validation_loss, validation_loss_se = _mean_and_error(validation_T)
    fitted_radius, infeasible_radius = learner.report_radii(state.stage)
    reference_train_risk, reference_test_loss = _measure_reference(fit, data, problem)
    several = state.restarts if len(learner.starts) > 1 else None
    steps = state.stage.steps + state.fit.step if several is None else several.steps
    train_loss = state.train_loss if several is None else several.train_loss
    return Record(
        n=state.bracket.n,
        steps=steps,
        converged=learner.is_converged(state.stage, found, train_loss),
        fitted_radius=fitted_radius,
        min_train_risk=state.stage.min_risk,
        infeasible_radius=infeasible_radius,
        winner=jnp.int32(0) if several is None else several.winner,
        highest_start_risk=jnp.float32(jnp.nan) if several is None else several.highest,
        reference_train_risk=reference_train_risk,
        reference_test_loss=reference_test_loss,
        certificate=found,
        test_loss=test_loss,
        test_loss_se=test_loss_se,
        validation_loss=validation_loss,
        validation_loss_se=validation_loss_se,
        others=_others(measured, learner.test_samples),
    )


def _measure_reference(fit: fitting.Fit, data: Data, problem: Problem) -> tuple[jax.Array, jax.Array]:
    """Training risk and test loss of the reference on the fit's n prompts; NaN without one."""
    if not problem.learner.reference:
        return jnp.float32(jnp.nan), jnp.float32(jnp.nan)
    risk = fitting.full_risk(fit, data, problem, span='free')(data.reference)
    test_prompts = jax.tree.map(lambda leaf: leaf[: problem.learner.test_samples], data.held_out)
    errors_T, _ = held_out.measured_on(data.reference, data.task_draw, test_prompts, problem)
    return risk, jnp.mean(errors_T)


def close(state: State, record: Record, data: Data, lane: Any, problem: Problem) -> State:
    """The state of one lane after a fit: the fit is recorded, and the lane is over or at the start of the next fit."""
    learner = problem.learner
    is_enough = learner.is_enough(record)
    found, outcome = state.bracket, jnp.int32(FITTED)
    if learner.is_search:
        sizes = learner.min_samples, learner.max_samples, learner.resolution
        found, outcome = bracket.update(state.bracket, is_enough, *sizes, stop_after=getattr(lane, 'stop_after', 0))
    # The row reports the smallest n that was enough, or if none was, the largest n.
    is_reported = is_enough | (state.bracket.high == 0) if learner.is_search else True
    ended = learner.result(state.stage, state.fit.params)
    params = span_of_inputs.expand(ended, state.fit.basis_RxV, learner.span)
    # Without a search n stays, and so does its basis.
    basis_RxV = None if learner.is_search else state.fit.basis_RxV
    fit = fitting.start(data, lane, found.n, problem, basis_RxV=basis_RxV)
    return state._replace(
        fit=fit,
        stage=learner.first_stage(fit.params, lane),
        restarts=restarts.first(fit.params) if len(learner.starts) > 1 else (),
        bracket=found,
        outcome=outcome,
        params=jax.tree.map(lambda new, old: jnp.where(is_reported, new, old), params, state.params),
        reported=jnp.where(is_reported, state.num_fits, state.reported),
        num_fits=state.num_fits + 1,
        records=jax.tree.map(lambda all_, one: all_.at[state.num_fits].set(one), state.records, record),
    )
