"""The steps of one fit: minibatches or all n examples, an optimiser, a projection. For one lane."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from qstr_jax.learners import minibatch_order, risks, span_of_inputs

# Examples that are in memory together where all n are needed.
CHUNK = 512


class Fit(NamedTuple):
    """What the steps of a fit change, and the basis of its training prompts' span, zero where none is needed."""

    params: Any
    opt_state: Any
    step: jax.Array
    n: jax.Array
    basis_RxK: jax.Array


def gradient_mapping(fit: Fit, grads: Any, radius: Any, lane: Any, learner: Any) -> Any:
    """(Θ − P(Θ − η g))/η with η the learning rate: g inside the constraint set, 0 where a step would lead nowhere.

    Args:
        fit: with Θ.
        grads: g.
        radius: of the constraint.
        lane: with η.
        learner: with P; without a constraint this is g.
    """
    if not learner.is_projected:
        return grads
    moved = jax.tree.map(lambda leaf, grad: leaf - lane.learning_rate * grad, fit.params, grads)
    back = learner.project(moved, radius)
    return jax.tree.map(lambda leaf, other: (leaf - other) / lane.learning_rate, fit.params, back)


def start(data, lane, n, problem):
    """First `Fit` on n prompts."""
    learner = problem.learner
    basis_RxK = jnp.zeros((1, 1))  # not (0, 0): Orbax saves no empty arrays
    if learner.span != 'free':
        basis_RxK = span_of_inputs.basis(span_of_inputs.masked(data.train.x_NxD, n))
    params = span_of_inputs.enter(data.params, basis_RxK, learner.span)
    return Fit(params, learner.optimizer_at(lane, 0).init(params), jnp.int32(0), n, basis_RxK)


def restart(fit, params, lane, learner):
    """The fit from other parameters, with a fresh optimiser."""
    return fit._replace(params=params, opt_state=learner.optimizer_at(lane, 0).init(params), step=jnp.int32(0))


def _errors(params, prompts, position_B, task_draw, problem):
    """Errors (B,) of examples, by the learner's risk."""
    module, task = problem.module, problem.task
    if problem.learner.risk == 'averaged':
        return jax.vmap(lambda prompt: risks.prompt_error(module, params, prompt, task, task_draw))(prompts)
    return jax.vmap(lambda prompt, position: risks.position_error(module, params, prompt, position, task, task_draw))(
        prompts, position_B
    )


def batch_risk(params, fit, indices_B, data, problem):
    """Training risk on some examples."""
    expanded = span_of_inputs.expand(params, fit.basis_RxK, problem.learner.span)
    prompts = jax.tree.map(lambda leaf: leaf[indices_B], data.train)
    return jnp.mean(_errors(expanded, prompts, data.position_B[indices_B], data.task_draw, problem))


def full_risk(fit, data, problem):
    """params ↦ R̂ on all n examples, a chunk at a time; differentiable once, by a rule of its own.

    The number of chunks follows n, which a loop that JAX differentiates could not do.
    """
    size = min(CHUNK, problem.learner.max_samples)

    def chunk_risk(params, chunk):
        # The last chunk may reach over n, or even over the end: then it is shifted, and what is not its own masked.
        begin = jnp.minimum(chunk * size, problem.learner.max_samples - size)
        take = lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, begin, size)  # noqa: E731
        indices_B = begin + jnp.arange(size)
        is_in_B = (indices_B >= chunk * size) & (indices_B < fit.n)
        expanded = span_of_inputs.expand(params, fit.basis_RxK, problem.learner.span)
        errors_B = _errors(expanded, jax.tree.map(take, data.train), take(data.position_B), data.task_draw, problem)
        return jnp.sum(jnp.where(is_in_B, errors_B, 0.0)) / fit.n

    def value_and_grad(params):
        def add(chunk, total):
            return jax.tree.map(jnp.add, total, jax.value_and_grad(chunk_risk)(params, chunk))

        nothing = jnp.float32(0), jax.tree.map(jnp.zeros_like, params)
        return jax.lax.fori_loop(0, (fit.n + size - 1) // size, add, nothing)

    @jax.custom_vjp
    def risk(params):
        return value_and_grad(params)[0]

    risk.defvjp(value_and_grad, lambda grads, cotangent: (jax.tree.map(lambda leaf: cotangent * leaf, grads),))
    return risk


def _step(fit, radius, data, lane, problem):
    """One step of the optimiser; returns the objective's value before it."""
    learner = problem.learner
    if learner.batch_size:
        indices_B = minibatch_order.minibatch(data.order_key, fit.step, learner.batch_size, fit.n)

        def objective(params):
            return batch_risk(params, fit, indices_B, data, problem) + learner.penalty(params, lane)
    else:
        risk = full_risk(fit, data, problem)

        def objective(params):
            return risk(params) + learner.penalty(params, lane)

    transform = learner.optimizer_at(lane, fit.step)
    value, grads = jax.value_and_grad(objective)(fit.params)
    optimizer = getattr(learner, 'optimizer', None)
    if optimizer == 'adam':
        # Adam rescales every coordinate, so that Adam followed by a projection stands still at points that are not the
        # constrained minimum: on a linear model at a risk of 0.147 instead of 0.134. The gradient mapping is zero
        # exactly where the constrained minimum is.
        grads = gradient_mapping(fit, grads, radius, lane, learner)
    extra = {'value': value, 'grad': grads, 'value_fn': objective} if optimizer == 'lbfgs' else {}
    updates, opt_state = transform.update(grads, fit.opt_state, fit.params, **extra)
    params = learner.project(optax.apply_updates(fit.params, updates), radius)
    return fit._replace(params=params, opt_state=opt_state, step=fit.step + 1), value


def steps(fit, radius, data, lane, problem):
    """`check_every` steps; returns the fit and the objective's mean over them.

    Args:
        fit: `Fit`.
        radius: of the constraint, or infinite.
        data: `fixed.Data`.
        lane: `fixed.Lane`.
        problem: `problem.Problem`.
    """

    def body(fit, _):
        return _step(fit, radius, data, lane, problem)

    fit, values_S = jax.lax.scan(body, fit, length=problem.learner.check_every)
    return fit, jnp.mean(values_S)
