"""The steps of one fit: minibatches or all n examples, an optimiser, a projection. For one lane."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from qstr_jax import tasks
from qstr_jax.learners import minibatch_order, projections, risks, span_of_inputs

OPTIMIZERS = ('adam', 'sgd', 'lbfgs')
SCHEDULES = ('constant', 'cosine')
MOMENTUM = 0.9

# Examples that are in memory together where all n are needed.
CHUNK = 512


class Fit(NamedTuple):
    """What the steps of a fit change, and the basis of its training prompts' span, zero where none is needed."""

    params: Any
    opt_state: Any
    step: jax.Array
    n: jax.Array
    basis_RxK: jax.Array


def project(params, radius, learner):
    """The parameters' projection onto the constraint set; without a constraint they stay as they are."""
    if not is_projected(learner):
        return params
    return projections.project(params, learner.constraint, radius)


def is_projected(learner):
    """Whether the learner has a constraint set."""
    return learner.method in ('constrained', 'min_norm')


def gradient_mapping(params, grads, radius, lane, learner):
    """(Θ − P(Θ − η g))/η with η the learning rate: g inside the constraint set, 0 where a step would lead nowhere."""
    if not is_projected(learner):
        return grads
    moved = jax.tree.map(lambda leaf, grad: leaf - lane.learning_rate * grad, params, grads)
    back = project(moved, radius, learner)
    return jax.tree.map(lambda leaf, other: (leaf - other) / lane.learning_rate, params, back)


def optimizer(learner, lane, step):
    """The optimiser at one step; its state does not depend on the learning rate, so it can change with the step."""
    rate = lane.learning_rate
    if learner.schedule == 'cosine':
        rate = rate * (1 + jnp.cos(jnp.pi * step / learner.max_steps)) / 2
    if learner.method == 'adamw':
        return optax.adamw(rate, weight_decay=lane.weight_decay)
    if learner.optimizer == 'lbfgs':
        return optax.lbfgs()
    return optax.adam(rate) if learner.optimizer == 'adam' else optax.sgd(rate, momentum=MOMENTUM)


def start(data, lane, n, problem):
    """First `Fit` on n prompts."""
    learner = problem.learner
    basis_RxK = jnp.zeros((1, 1))  # not (0, 0): Orbax saves no empty arrays
    if learner.span != 'free':
        basis_RxK = span_of_inputs.basis(span_of_inputs.masked(data.train.x_NxD, n))
    params = span_of_inputs.enter(data.params, basis_RxK, learner.span)
    return Fit(params, optimizer(learner, lane, 0).init(params), jnp.int32(0), n, basis_RxK)


def restart(fit, params, lane, learner):
    """The fit from other parameters, with a fresh optimiser."""
    return fit._replace(params=params, opt_state=optimizer(learner, lane, 0).init(params), step=jnp.int32(0))


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


def penalty(params, lane, learner):
    """(λ/2)‖vec Θ‖² of the regularised objective; 0 for the learners that have none."""
    if learner.method not in ('stationary', 'closed_form'):
        return 0.0
    return 0.5 * lane.weight_decay * optax.tree.norm(params, squared=True)


def _step(fit, radius, data, lane, problem):
    """One step of the optimiser; returns the objective's value before it."""
    learner = problem.learner
    if learner.batch_size:
        indices_B = minibatch_order.minibatch(data.order_key, fit.step, learner.batch_size, fit.n)

        def objective(params):
            return batch_risk(params, fit, indices_B, data, problem) + penalty(params, lane, learner)
    else:
        risk = full_risk(fit, data, problem)

        def objective(params):
            return risk(params) + penalty(params, lane, learner)

    transform = optimizer(learner, lane, fit.step)
    value, grads = jax.value_and_grad(objective)(fit.params)
    if learner.optimizer == 'adam':
        # Adam rescales every coordinate, so that Adam and a projection stand still where the constrained minimum is
        # not: on a linear model at a risk of 0.147 instead of 0.134. Of the gradient mapping they share the zeros.
        grads = gradient_mapping(fit.params, grads, radius, lane, learner)
    extra = {'value': value, 'grad': grads, 'value_fn': objective} if learner.optimizer == 'lbfgs' else {}
    updates, opt_state = transform.update(grads, fit.opt_state, fit.params, **extra)
    params = project(optax.apply_updates(fit.params, updates), radius, learner)
    return fit._replace(params=params, opt_state=opt_state, step=fit.step + 1), value


def _solve(fit, data, lane, problem):
    """The whole fit of a module that has its solution in closed form."""
    learner, task = problem.learner, problem.task
    z_BxNxE = jax.vmap(lambda p: tasks.encode(p, task, data.task_draw))(data.train)
    counts_B = jnp.arange(learner.max_samples) < fit.n
    is_there_BxN = jnp.broadcast_to(counts_B[:, None], (learner.max_samples, task.seq_len))
    size = fit.n * task.seq_len
    if learner.risk == 'pointwise':
        is_there_BxN &= jax.nn.one_hot(data.position_B, task.seq_len, dtype=bool)
        size = fit.n
    # ∇[(1/size) Σ (y − ŷ)² + (λ/2)‖W‖²] = 0 is the normal equation with λ size/2 on the diagonal.
    params = problem.module.closed_form(
        z_BxNxE, data.train.y_N, is_there_BxN, lane.weight_decay * size / 2, data.task_draw
    )
    value = full_risk(fit, data, problem)(params)
    return fit._replace(params=params, step=jnp.int32(learner.max_steps)), value


def steps(fit, radius, data, lane, problem):
    """`check_every` steps; returns the fit and the objective's mean over them.

    Args:
        fit: `Fit`.
        radius: of the constraint, or infinite.
        data: `fixed.Data`.
        lane: `fixed.Lane`.
        problem: `problem.Problem`.
    """
    if problem.learner.method == 'closed_form':
        return _solve(fit, data, lane, problem)

    def body(fit, _):
        return _step(fit, radius, data, lane, problem)

    fit, values_S = jax.lax.scan(body, fit, length=problem.learner.check_every)
    return fit, jnp.mean(values_S)
