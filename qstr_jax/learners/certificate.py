"""The certificate of a fit: its risk, gradient, norm and distances, recomputed from parameters and data alone."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from qstr_jax.learners import fitting, span_of_inputs
from qstr_jax.learners.problem import Problem


class Certificate(NamedTuple):
    """Numbers about parameters Θ on n examples.

    Attributes:
        train_risk: R̂(Θ).
        grad_norm: ‖∇[R̂ + (λ/2)‖vec Θ‖²]‖ with a penalty, ‖∇R̂‖ without one. Under a constraint it is the gradient
            mapping ‖Θ − P(Θ − η ∇R̂)‖/η with η the learning rate, which is 0 at a stationary point.
        distance: ‖Θ − P(Θ)‖ to the constraint set, 0 without one.
        norm: ‖vec Θ‖₂.
        span_residual: ‖W (I − P_S)‖_F/‖W‖_F of an FFN's first layer; NaN with span='free'.
        span_bound: ‖∇_W‖_F/(λ ‖W‖_F) ≥ span_residual. The risk's gradient lies in the span, so outside the span the
            objective's gradient is λ W (I − P_S).
    """

    train_risk: jax.Array
    grad_norm: jax.Array
    distance: jax.Array
    norm: jax.Array
    span_residual: jax.Array
    span_bound: jax.Array


def measure(fit: fitting.Fit, radius: Any, *, data: Any, lane: Any, problem: Problem) -> Certificate:
    """The certificate of a fit."""
    learner, params = problem.learner, fit.params
    risk, grads = jax.value_and_grad(fitting.full_risk(fit, data, problem))(params)
    penalty_grads = jax.grad(lambda params: jnp.float32(learner.penalty(params, lane)))(params)
    grads = jax.tree.map(jnp.add, grads, penalty_grads)
    span_residual, span_bound = _span(params, grads, fit, lane, learner)
    return Certificate(
        train_risk=risk,
        grad_norm=optax.tree.norm(fitting.gradient_mapping(fit, grads, radius, lane, learner)),
        distance=optax.tree.norm(optax.tree.sub(params, learner.project(params, radius))),
        norm=optax.tree.norm(params),
        span_residual=span_residual,
        span_bound=span_bound,
    )


def _span(params: Any, grads: Any, fit: fitting.Fit, lane: Any, learner: Any) -> tuple[jax.Array, jax.Array]:
    """`span_residual` and `span_bound`."""
    nan = jnp.float32(jnp.nan)
    if learner.span == 'free':
        return nan, nan
    expanded = span_of_inputs.expand(params, fit.basis_RxV, learner.span)
    size = jnp.linalg.norm(span_of_inputs.kernel(expanded))
    residual = span_of_inputs.residual(expanded, fit.basis_RxV) / size
    if not hasattr(lane, 'weight_decay'):
        return residual, nan
    bound = jnp.linalg.norm(span_of_inputs.kernel(grads)) / (lane.weight_decay * size)
    return residual, jnp.where(lane.weight_decay > 0, bound, jnp.nan)
