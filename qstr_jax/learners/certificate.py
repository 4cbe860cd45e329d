"""What a fit can show for itself: risk, gradient, norm, distances. Recomputed from parameters and data alone."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax

from qstr_jax.learners import fitting, span_of_inputs


class Certificate(NamedTuple):
    """Numbers about parameters Θ on n examples.

    Attributes:
        train_risk: R̂(Θ).
        grad_norm: ‖∇[R̂ + (λ/2)‖vec Θ‖²]‖ where there is a penalty, ‖∇R̂‖ where there is none, and under a
            constraint the gradient mapping ‖Θ − P(Θ − η ∇R̂)‖/η with η the learning rate, 0 at a stationary point.
        distance: ‖Θ − P(Θ)‖ to the constraint set, 0 without one.
        norm: ‖vec Θ‖₂.
        span_residual: ‖W (I − P_S)‖_F/‖W‖_F of an FFN's first layer; NaN where no span was asked for.
        span_bound: ‖∇_W‖_F/(λ ‖W‖_F) ≥ span_residual: the gradient of the risk lies in the span, so off it the
            objective's gradient is λ W (I − P_S).
    """

    train_risk: jax.Array
    grad_norm: jax.Array
    distance: jax.Array
    norm: jax.Array
    span_residual: jax.Array
    span_bound: jax.Array


def measure(params, fit, radius, data, lane, problem):
    """`Certificate` of parameters.

    Args:
        params: as the fit has them: coordinates with span='coordinates'.
        fit: `fitting.Fit`, for n and the basis.
        radius: of the constraint.
        data, lane, problem: as in `fitting.steps`.
    """
    learner = problem.learner
    risk, grads = jax.value_and_grad(fitting.full_risk(fit, data, problem))(params)
    grads = jax.tree.map(jnp.add, grads, jax.grad(_penalty)(params, lane, learner))
    grad_norm = optax.tree.norm(fitting.gradient_mapping(params, grads, radius, lane, learner))
    distance = optax.tree.norm(optax.tree.sub(params, fitting.project(params, radius, learner)))
    return Certificate(risk, grad_norm, distance, optax.tree.norm(params), *_span(params, grads, fit, lane, learner))


def _penalty(params, lane, learner):
    return jnp.float32(fitting.penalty(params, lane, learner))


def _span(params, grads, fit, lane, learner):
    """`span_residual` and `span_bound`."""
    if learner.span == 'free':
        return jnp.float32(jnp.nan), jnp.float32(jnp.nan)
    expanded = span_of_inputs.expand(params, fit.basis_RxK, learner.span)
    size = jnp.linalg.norm(span_of_inputs.kernel(expanded))
    bound = jnp.linalg.norm(span_of_inputs.kernel(grads)) / (lane.weight_decay * size)
    bound = jnp.where(lane.weight_decay > 0, bound, jnp.nan)
    return span_of_inputs.residual(expanded, fit.basis_RxK) / size, bound
