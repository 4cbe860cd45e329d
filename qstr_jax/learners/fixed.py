"""Learners on a fixed sample of n prompts (PAPER.md, section 2), with n traced: one program serves every n.

    adamw         AdamW on shuffled minibatches, as in Figure 2
    constrained   ERM: argmin R̂ over {‖vec Θ‖₂ ≤ R}, or over norm balls of single matrices
    min_norm      min-norm ε-ERM (2.4): argmin ‖vec Θ‖₂ s.t. R̂(Θ) − min R̂ ≤ ε, by bisection on R
    stationary    A_SP: a point where ∇[R̂(Θ) + (λ/2)‖vec Θ‖²] = 0, found to a gradient norm that is reported
    closed_form   baselines that have their solution in closed form

A fit ends after `max_steps`, or before at its goal. Then its certificate and its test loss are taken. With
`is_search` a lane makes fit after fit, on nested training sets, until it knows n* (`bracket`). Functions are written
for one lane but for `init`, `advance` and what comes after, which work on lane batches as `online` does.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from qstr_jax import tasks
from qstr_jax.learners import bracket, certificate, fitting, span_of_inputs, stages
from qstr_jax.learners.fixed_settings import METHODS, Fixed
from qstr_jax.learners.problem import (
    DIVERGED,
    FITTED,
    OUTCOMES,
    REACHED,
    RUNNING,
    draw_task,
    errors_on,
    held_out,
    init_params,
    over_lanes,
    run_checks,
    select,
)
from qstr_jax.tasks import streams

__all__ = ['METHODS', 'Fixed', 'Lane', 'advance', 'init', 'progress', 'report', 'report_curves']


class Lane(NamedTuple):
    """The numbers of one lane. `budget` is in units of `budget_unit`, 0 for learners without; `sample_size` is n, 0
    for a search."""

    seed: Any
    task_seed: Any
    learning_rate: Any
    weight_decay: Any
    budget: Any
    sample_size: Any


class Data(NamedTuple):
    """What a lane draws once and never changes.

    `train` holds `max_samples` prompts, of which a fit sees n; `held_out` the test prompts and then the validation's.
    """

    task_draw: tasks.Draw
    train: tasks.Prompt
    position_B: jax.Array
    held_out: tasks.Prompt
    order_key: Any
    params: Any


class Record(NamedTuple):
    """One finished fit; in a state with a leading axis of fits."""

    n: jax.Array
    steps: jax.Array
    converged: jax.Array
    radius: jax.Array
    min_train_risk: jax.Array
    infeasible_radius: jax.Array
    certificate: certificate.Certificate
    test_loss: jax.Array
    test_loss_se: jax.Array
    validation_loss: jax.Array
    validation_loss_se: jax.Array


class State(NamedTuple):
    """What training changes. `params` are those of the fit that the row is about, as the module has them."""

    fit: fitting.Fit
    stage: stages.Stage
    bracket: bracket.Bracket
    outcome: jax.Array
    checks: jax.Array
    params: Any
    reported: jax.Array
    num_fits: jax.Array
    train_loss: jax.Array
    records: Record


def init_lane(lane, problem):
    """`Data` and the first `State` of one lane."""
    task, learner = problem.task, problem.learner
    task_draw = draw_task(lane, problem)
    indices_B = jnp.arange(learner.max_samples)
    data = Data(
        task_draw,
        tasks.examples(streams.stream_key(lane.seed, 'train', task), indices_B, task, task_draw.link),
        tasks.positions(streams.stream_key(lane.seed, 'position', task), indices_B, task.seq_len),
        held_out(lane, problem, {'test': learner.test_samples, 'validation': learner.validation_samples}, task_draw),
        streams.stream_key(lane.seed, 'order', task),
        init_params(lane, problem),
    )
    n = jnp.int32(learner.min_samples) if learner.is_search else lane.sample_size
    fit = fitting.start(data, lane, n, problem)
    state = State(
        fit,
        stages.start(fit.params, lane, learner),
        bracket.start(n),
        jnp.int32(RUNNING),
        jnp.int32(0),
        data.params,
        jnp.int32(0),
        jnp.int32(0),
        jnp.float32(jnp.nan),
        _no_records(learner.max_fits),
    )
    return data, state


def _no_records(num_fits):
    nan, zero = jnp.full((num_fits,), jnp.nan), jnp.zeros((num_fits,), jnp.int32)
    nothing = certificate.Certificate(*[nan] * len(certificate.Certificate._fields))
    return Record(zero, zero, jnp.zeros((num_fits,), bool), *[nan] * 3, nothing, *[nan] * 4)


def _mean_and_error(errors_B):
    return jnp.mean(errors_B), jnp.std(errors_B) / jnp.sqrt(jnp.float32(errors_B.size))


def _assess(state, data, lane, problem):
    """`Record` of one lane's present fit: its certificate, its test and validation loss."""
    learner = problem.learner
    params = stages.result(state.stage, state.fit.params, learner)
    found = certificate.measure(params, state.fit, state.stage.radius, data, lane, problem)
    expanded = span_of_inputs.expand(params, state.fit.basis_RxK, learner.span)
    errors_T = errors_on(expanded, data, data.held_out, problem)
    test_T, validation_T = jnp.split(errors_T, [learner.test_samples])
    return Record(
        state.bracket.n,
        state.stage.steps + state.fit.step,
        stages.is_converged(state.stage, found, state.train_loss, learner),
        jnp.where(learner.method in ('constrained', 'min_norm'), state.stage.radius, jnp.nan),
        state.stage.min_risk,
        jnp.where(learner.method == 'min_norm', state.stage.low, jnp.nan),
        found,
        *_mean_and_error(test_T),
        *_mean_and_error(validation_T),
    )


def _close_fit(state, record, data, lane, problem):
    """State of one lane after a fit: recorded, and either over or at the start of the next n."""
    learner = problem.learner
    is_below = record.test_loss < learner.threshold
    found = bracket.Bracket(state.bracket.n, state.bracket.low, state.bracket.high)
    outcome = jnp.int32(FITTED)
    if learner.is_search:
        found, outcome = bracket.update(
            state.bracket, is_below, learner.min_samples, learner.max_samples, learner.resolution
        )
    # The row is about the smallest n that met the threshold, or else about the largest that did not.
    is_reported = is_below | (state.bracket.high == 0) if learner.is_search else True
    params = span_of_inputs.expand(
        stages.result(state.stage, state.fit.params, learner), state.fit.basis_RxK, learner.span
    )
    fit = fitting.start(data, lane, found.n, problem)
    return state._replace(
        fit=fit,
        stage=stages.start(fit.params, lane, learner),
        bracket=found,
        outcome=outcome,
        params=jax.tree.map(lambda new, old: jnp.where(is_reported, new, old), params, state.params),
        reported=jnp.where(is_reported, state.num_fits, state.reported),
        num_fits=state.num_fits + 1,
        records=jax.tree.map(lambda all_, one: all_.at[state.num_fits].set(one), state.records, record),
    )


def _measure_now(state, data, lane, problem):
    fit = state.fit
    return certificate.measure(fit.params, fit, state.stage.radius, data, lane, problem)


def _check(state_K, data_K, lanes_K, problem):
    """`check_every` steps of all lanes; the fits that are over are assessed, recorded and followed by the next."""
    learner = problem.learner
    is_active_K = state_K.outcome == RUNNING

    def train(state, data, lane):
        fit, train_loss = fitting.steps(state.fit, state.stage.radius, data, lane, problem)
        return state._replace(fit=fit, train_loss=train_loss, checks=state.checks + 1)

    new_K = over_lanes(train)(state_K, data_K, lanes_K)
    found_K = None
    if learner.is_measured_at_checks:
        found_K = over_lanes(functools.partial(_measure_now, problem=problem))(new_K, data_K, lanes_K)
    is_over_K, new_K = jax.vmap(functools.partial(_step_stage, problem=problem))(new_K, found_K, data_K, lanes_K)
    is_finite_K = jnp.isfinite(new_K.train_loss)
    is_over_K &= is_active_K & is_finite_K

    def close(new_K):
        records_K = over_lanes(functools.partial(_assess, problem=problem))(new_K, data_K, lanes_K)
        closed_K = over_lanes(functools.partial(_close_fit, problem=problem))(new_K, records_K, data_K, lanes_K)
        is_finite_K = jnp.isfinite(records_K.test_loss)
        closed_K = closed_K._replace(outcome=jnp.where(is_finite_K, closed_K.outcome, DIVERGED))
        return select(is_over_K, closed_K, new_K)

    new_K = jax.lax.cond(jnp.any(is_over_K), close, lambda new_K: new_K, new_K)
    new_K = new_K._replace(outcome=jnp.where(is_finite_K, new_K.outcome, DIVERGED))
    return select(is_active_K, new_K, state_K)


def _step_stage(state, found, data, lane, problem):
    """Whether one lane's fit is over, and its state at the next radius if only a stage is."""
    is_over, fit, stage = stages.step(state.stage, state.fit, found, state.train_loss, data, lane, problem)
    return is_over, state._replace(fit=fit, stage=stage)


@functools.partial(jax.jit, static_argnames='problem')
def init(lanes_K, problem):
    """`Data` and `State` of a lane batch; `lanes_K` is a `Lane` of arrays (k,)."""
    with jax.default_matmul_precision('highest'):
        return over_lanes(lambda lane: init_lane(lane, problem))(lanes_K)


@functools.partial(jax.jit, static_argnames='problem', donate_argnames='state_K')
def advance(state_K, data_K, lanes_K, num_checks, problem):
    """Runs a lane batch for up to `num_checks` checks, or until no lane runs any more; see `online.advance`."""
    return run_checks(lambda state_K: _check(state_K, data_K, lanes_K, problem), state_K, num_checks)


def _flat(record):
    """The columns of a `Record`, by name."""
    fields = record._asdict()
    certified = fields.pop('certificate')
    return {**fields, **certified._asdict()}


def report(state_K, problem):
    """Columns of the rows of a lane batch: a dict of arrays (k,), on the host.

    `samples_to_threshold` is n*, and `validation_samples_to_threshold` the smallest n that was tried with a
    validation loss below the threshold: what hyperparameters are chosen by.
    """
    state_K = jax.device_get(state_K._replace(fit=None, stage=None, params=None))
    chosen = np.arange(len(state_K.reported)), state_K.reported
    columns = {name: values[chosen] for name, values in _flat(state_K.records).items() if name != 'n'}
    outcomes = [OUTCOMES[outcome] for outcome in state_K.outcome]
    validation = np.where(
        state_K.records.validation_loss < problem.learner.threshold, state_K.records.n, np.iinfo(np.int32).max
    ).min(axis=1)
    is_search = problem.learner.is_search
    return {
        'outcome': outcomes,
        'num_samples': np.where(state_K.num_fits > 0, state_K.records.n[chosen], state_K.bracket.n),
        'samples_to_threshold': [
            int(n) if outcome == OUTCOMES[REACHED] else None
            for n, outcome in zip(state_K.bracket.high, outcomes, strict=True)
        ],
        'validation_samples_to_threshold': [
            int(n) if is_search and n < np.iinfo(np.int32).max else None for n in validation
        ],
        'train_loss': columns['train_risk'],
        **columns,
        'num_fits': state_K.num_fits,
    }


def report_curves(state_K, problem):
    """The fits of a lane batch, by n: per lane a dict of columns."""
    num_fits_K, records_K = jax.device_get((state_K.num_fits, state_K.records))
    curves = []
    for k, num_fits in enumerate(num_fits_K):
        order = np.argsort(records_K.n[k, :num_fits])
        columns = {name: values[k, :num_fits][order] for name, values in _flat(records_K).items()}
        curves.append({'samples': columns.pop('n'), 'train_loss': columns['train_risk'], **columns})
    return curves


def progress(state_K, problem):
    """Where the lane with the most checks is: its n and training loss; on the host."""
    lane = int(np.argmax(np.asarray(state_K.checks)))
    return {'samples': int(state_K.bracket.n[lane]), 'train_loss': float(state_K.train_loss[lane])}
