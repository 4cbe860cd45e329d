"""The stages of one fit. All learners but `min_norm` have a single one.

`min_norm` bisects the radius R of {‖vec Θ‖₂ ≤ R}. Stage 0 is unconstrained: its risk is taken for min R̂, its norm for
the first radius that suffices. Every later stage tries the geometric mean of the largest radius that failed and the
smallest that met the goal, from the best parameters so far, scaled down. What is returned met the goal; its norm
and the largest radius that failed bracket the least norm, as far as the optimiser finds it.

The goal is R̂ ≤ ε where stage 0 gets below ε (no risk is negative), and R̂ ≤ min R̂ + ε elsewhere.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from qstr_jax.learners import fitting

# Share of the unconstrained norm at which the bisection starts from below.
LEAST_SHARE = 0.05


class Stage(NamedTuple):
    """Number of the stage, its radius, and what earlier ones left; `kept` is () for single-stage learners."""

    number: jax.Array
    radius: jax.Array
    low: jax.Array
    high: jax.Array
    min_risk: jax.Array
    steps: jax.Array
    kept: Any


def start(params, lane, learner):
    """First `Stage` of a fit."""
    radius = jnp.float32(jnp.inf)
    if learner.method == 'constrained':
        radius = lane.budget * learner.budget_unit
    nan = jnp.float32(jnp.nan)
    kept = params if learner.method == 'min_norm' else ()
    return Stage(jnp.int32(0), radius, nan, nan, nan, jnp.int32(0), kept)


def result(stage, params, learner):
    """Parameters that a fit ends with."""
    return stage.kept if learner.method == 'min_norm' else params


def goal(stage, learner):
    """Training risk that a radius must allow; see above."""
    return jnp.where(stage.min_risk <= learner.epsilon, learner.epsilon, stage.min_risk + learner.epsilon)


def is_converged(stage, found, train_loss, learner):
    """Whether a fit did what its learner promises, by its `certificate.Certificate`."""
    is_stationary = found.grad_norm <= learner.tolerance
    if learner.method == 'adamw' and learner.train_threshold > 0:
        return train_loss < learner.train_threshold
    if learner.method == 'min_norm':
        # Below ε the minimum needs no gradient: the risk is within ε of it whatever it is.
        return found.train_risk <= jnp.minimum(goal(stage, learner), learner.epsilon)
    return is_stationary


def step(stage, fit, found, train_loss, data, lane, problem):
    """Whether the fit is over, and fit and stage to go on with.

    Args:
        stage, fit: `Stage`, `fitting.Fit`.
        found: certificate of the present parameters, None where it is not taken at checks.
        train_loss: mean objective of the last steps.
        data, lane, problem: as in `fitting.steps`.
    """
    learner = problem.learner
    is_end = fit.step >= learner.max_steps
    if learner.method == 'min_norm':
        return _bisect(stage, fit, found, is_end, lane, learner)
    if learner.method == 'adamw':
        is_end |= train_loss < learner.train_threshold
    if found is not None:
        is_end |= found.grad_norm <= learner.tolerance
    return is_end, fit, stage


def _bisect(stage, fit, found, is_end, lane, learner):
    """`step` of the min-norm learner."""
    is_first = stage.number == 0
    # Stage 0 stops well below ε, later ones at their goal.
    limit = jnp.where(is_first, 0.1 * learner.epsilon, goal(stage, learner))
    is_met = found.train_risk <= limit
    is_end |= is_met
    is_better = is_end & (is_met | is_first)
    kept = jax.tree.map(lambda new, old: jnp.where(is_better, new, old), fit.params, stage.kept)
    high = jnp.where(is_better, found.norm, stage.high)
    low = jnp.where(is_better, stage.low, stage.radius)
    low = jnp.where(is_first, LEAST_SHARE * found.norm, low)
    radius = jnp.sqrt(low * high)
    following = Stage(
        stage.number + 1,
        radius,
        low,
        high,
        jnp.where(is_first, found.train_risk, stage.min_risk),
        stage.steps + fit.step,
        kept,
    )
    is_over = is_end & (stage.number >= learner.bisections)
    # At the end the radius stays the one that the result met.
    following = following._replace(radius=jnp.where(is_over, high, radius))
    scaled = optax.tree.scale(radius / jnp.maximum(high, 1e-30), kept)
    next_fit = fitting.restart(fit, scaled, lane, learner)
    next_fit = jax.tree.map(lambda new, old: jnp.where(is_over, old, new), next_fit, fit)
    next_fit = next_fit._replace(step=jnp.int32(0))  # counted in `steps` already

    def choose(new, old):
        return jax.tree.map(lambda a, b: jnp.where(is_end, a, b), new, old)

    return is_over, choose(next_fit, fit), choose(following, stage)
