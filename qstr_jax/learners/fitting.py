"""One fit of one lane: its stages, and their steps, with minibatches or all n examples, an optimiser and a projection.

Most fits have a single stage; those of `min_norm` have one for each radius.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from qstr_jax import tasks
from qstr_jax.learners import minibatch_order, risks, span_of_inputs
from qstr_jax.learners.problem import Problem

# Examples that are in memory together when all n are needed.
CHUNK = 512


class Fit(NamedTuple):
    """What the steps of a fit change, and what they need of its n prompts.

    Attributes:
        params: parameters as they are trained; see `span_of_inputs` for how they may differ from the module's.
        opt_state: state of the optimiser.
        step: number of steps made.
        n: sample size.
        basis_RxV: basis of the span of the n prompts; zero where no span is needed.
    """

    params: Any
    opt_state: Any
    step: jax.Array
    n: jax.Array
    basis_RxV: jax.Array


class Stage(NamedTuple):
    """One stage of a fit, and the results of earlier stages.

    Attributes:
        number: of the stage, from 0.
        radius: of the constraint, infinite without one.
        low: largest radius that failed.
        high: norm of the best parameters so far.
        min_risk: training risk of the unconstrained fit.
        steps: made in earlier stages.
        kept: best parameters so far; () for a fit with a single stage.
    """

    number: jax.Array
    radius: jax.Array
    low: jax.Array
    high: jax.Array
    min_risk: jax.Array
    steps: jax.Array
    kept: Any


def first_stage(radius: Any, kept: Any = ()) -> Stage:
    """The stage that a fit starts with."""
    nan = jnp.float32(jnp.nan)
    return Stage(number=jnp.int32(0), radius=radius, low=nan, high=nan, min_risk=nan, steps=jnp.int32(0), kept=kept)


def gradient_mapping(fit: Fit, grads: Any, radius: Any, lane: Any, learner: Any) -> Any:
    """(Θ − P(Θ − η g))/η with η the learning rate: g in the interior of the constraint set, 0 at a stationary point."""
    if not learner.is_projected:
        return grads
    moved = jax.tree.map(lambda leaf, grad: leaf - lane.learning_rate * grad, fit.params, grads)
    back = learner.project(moved, radius)
    return jax.tree.map(lambda leaf, other: (leaf - other) / lane.learning_rate, fit.params, back)


def start(data: Any, lane: Any, n: jax.Array, problem: Problem, *, number: Any = 0, basis_RxV: Any = None) -> Fit:
    """The first state of a fit."""
    learner = problem.learner
    if learner.span == 'free':
        basis_RxV = jnp.zeros((1, 1))  # not (0, 0): Orbax saves no empty arrays
    elif basis_RxV is None:
        basis_RxV = span_of_inputs.basis(span_of_inputs.masked(data.train.x_NxD, n))
    first = jax.tree.map(lambda leaf: leaf[number], data.starts)
    params = span_of_inputs.enter(first, basis_RxV, learner.span)
    opt_state = learner.optimizer_at(lane, 0).init(params)
    return Fit(params=params, opt_state=opt_state, step=jnp.int32(0), n=n, basis_RxV=basis_RxV)


def restart(fit: Fit, params: Any, lane: Any, learner: Any) -> Fit:
    """The fit started again from other parameters, with a fresh optimiser."""
    return fit._replace(params=params, opt_state=learner.optimizer_at(lane, 0).init(params), step=jnp.int32(0))


def _errors(
    params: Any, prompts: tasks.Prompt, position_B: jax.Array, task_draw: tasks.Draw, problem: Problem
) -> jax.Array:
    """Errors (B,) of examples, by the learner's risk."""
    module, task = problem.module, problem.task
    if problem.learner.risk == 'averaged':
        return jax.vmap(lambda prompt: risks.prompt_error(module, params, prompt, task, task_draw))(prompts)

    def error(prompt: tasks.Prompt, position: jax.Array) -> jax.Array:
        return risks.position_error(module, params, prompt, position, task=task, task_draw=task_draw)

    return jax.vmap(error)(prompts, position_B)


def batch_risk(params: Any, fit: Fit, indices_B: jax.Array, data: Any, problem: Problem) -> jax.Array:
    """Training risk on some examples."""
    expanded = span_of_inputs.expand(params, fit.basis_RxV, problem.learner.span)
    prompts = jax.tree.map(lambda leaf: leaf[indices_B], data.train)
    return jnp.mean(_errors(expanded, prompts, data.position_B[indices_B], data.task_draw, problem))


def full_risk(fit: Fit, data: Any, problem: Problem, span: str = '') -> Callable[[Any], jax.Array]:
    """The function params ↦ R̂ on all n examples, computed in chunks; it can be differentiated once.

    Parameters are as the fit has them, by the learner's span; with span='free' as the module has them.

    The number of chunks depends on n, which is traced. JAX cannot differentiate such a loop backwards, so the function
    has its own derivative.
    """
    size = min(CHUNK, problem.learner.max_samples)
    span = span or problem.learner.span

    def chunk_risk(params: Any, chunk: jax.Array) -> jax.Array:
        # The last chunk may reach beyond n, or even beyond the stored prompts: then it is shifted back, and examples
        # of other chunks are masked.
        begin = jnp.minimum(chunk * size, problem.learner.max_samples - size)
        indices_B = begin + jnp.arange(size)
        is_in_B = (indices_B >= chunk * size) & (indices_B < fit.n)
        expanded = span_of_inputs.expand(params, fit.basis_RxV, span)
        prompts, position_B = jax.tree.map(
            lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, begin, size), (data.train, data.position_B)
        )
        errors_B = _errors(expanded, prompts, position_B, data.task_draw, problem)
        return jnp.sum(jnp.where(is_in_B, errors_B, 0.0)) / fit.n

    def value_and_grad(params: Any) -> tuple[jax.Array, Any]:
        def add(chunk: jax.Array, total: Any) -> Any:
            return jax.tree.map(jnp.add, total, jax.value_and_grad(chunk_risk)(params, chunk))

        nothing = jnp.float32(0), jax.tree.map(jnp.zeros_like, params)
        return jax.lax.fori_loop(0, (fit.n + size - 1) // size, add, nothing)

    @jax.custom_vjp
    def risk(params: Any) -> jax.Array:
        return value_and_grad(params)[0]

    risk.defvjp(value_and_grad, lambda grads, cotangent: (jax.tree.map(lambda leaf: cotangent * leaf, grads),))
    return risk


def _step(fit: Fit, radius: Any, data: Any, lane: Any, problem: Problem) -> tuple[Fit, jax.Array]:
    """One step of the optimiser; returns the objective's value before it."""
    learner = problem.learner
    if learner.batch_size:
        indices_B = minibatch_order.minibatch(data.order_key, fit.step, learner.batch_size, fit.n)

        def objective(params: Any) -> jax.Array:
            return batch_risk(params, fit, indices_B, data, problem) + learner.added(params, fit, data, lane, problem)
    else:
        risk = full_risk(fit, data, problem)

        def objective(params: Any) -> jax.Array:
            return risk(params) + learner.added(params, fit, data, lane, problem)

    transform = learner.optimizer_at(lane, fit.step)
    value, grads = jax.value_and_grad(objective)(fit.params)
    if learner.optimizer == 'adam':
        # Adam rescales every coordinate, so Adam followed by a projection comes to rest at points that are not the
        # constrained minimum: on a linear model at a risk of 0.147 instead of 0.134. The gradient mapping is zero
        # exactly at the constrained minimum.
        grads = gradient_mapping(fit, grads, radius, lane, learner)
    extra = {'value': value, 'grad': grads, 'value_fn': objective} if learner.optimizer == 'lbfgs' else {}
    updates, opt_state = transform.update(grads, fit.opt_state, fit.params, **extra)
    params = learner.project(optax.apply_updates(fit.params, updates), radius)
    return fit._replace(params=params, opt_state=opt_state, step=fit.step + 1), value


def steps(fit: Fit, radius: Any, data: Any, lane: Any, problem: Problem) -> tuple[Fit, jax.Array]:
    """`check_every` steps: the fit after them, and the mean of the objective."""
    step = functools.partial(_step, radius=radius, data=data, lane=lane, problem=problem)
    fit, values_S = jax.lax.scan(lambda fit, _: step(fit), fit, length=problem.learner.check_every)
    return fit, jnp.mean(values_S)
