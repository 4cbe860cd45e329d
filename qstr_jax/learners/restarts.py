"""One fit from several starts, one after the other: the parameters of least training risk are the answer."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from qstr_jax.learners import fitting
from qstr_jax.learners.lanes import over_lanes, select
from qstr_jax.learners.problem import Problem


class Restarts(NamedTuple):
    """The starts of the present fit that are done.

    Attributes:
        number: of the present start, from 0; the number of starts when all are done.
        winner: number of the best start.
        risk: training risk of the best start, infinite while there is none.
        highest: largest finite training risk of a start.
        train_loss: mean objective of the best start's last steps.
        steps: made from all starts together.
        params: the best parameters, as they are trained.
    """

    number: jax.Array
    winner: jax.Array
    risk: jax.Array
    highest: jax.Array
    train_loss: jax.Array
    steps: jax.Array
    params: Any


def first(params: Any) -> Restarts:
    """Before the first start is done."""
    zero, infinite = jnp.int32(0), jnp.float32(jnp.inf)
    return Restarts(
        number=zero,
        winner=zero,
        risk=infinite,
        highest=-infinite,
        train_loss=jnp.float32(jnp.nan),
        steps=zero,
        params=params,
    )


def add(restarts: Restarts, params: Any, *, risk: jax.Array, train_loss: jax.Array, steps: jax.Array) -> Restarts:
    """The record after one more start is done."""
    is_best = risk < restarts.risk  # False for NaN.
    return Restarts(
        number=restarts.number + 1,
        winner=jnp.where(is_best, restarts.number, restarts.winner),
        risk=jnp.where(is_best, risk, restarts.risk),
        highest=jnp.where(jnp.isfinite(risk), jnp.maximum(restarts.highest, risk), restarts.highest),
        train_loss=jnp.where(is_best, train_loss, restarts.train_loss),
        steps=restarts.steps + steps,
        params=jax.tree.map(lambda new, old: jnp.where(is_best, new, old), params, restarts.params),
    )


def next_start(state: Any, data: Any, lane: Any, problem: Problem) -> Any:
    """The state of one lane whose present start is done: at the next start, or after the last at the best result."""
    learner, fit = problem.learner, state.fit
    risk = fitting.full_risk(fit, data, problem)(fit.params)
    done = add(state.restarts, fit.params, risk=risk, train_loss=state.train_loss, steps=fit.step)
    is_last = done.number >= len(learner.starts)
    following = fitting.start(data, lane, fit.n, problem, number=jnp.minimum(done.number, len(learner.starts) - 1))
    best = fit._replace(params=done.params)
    return state._replace(
        fit=jax.tree.map(lambda one, other: jnp.where(is_last, one, other), best, following), restarts=done
    )


def advance(is_done_K: jax.Array, state_K: Any, data_K: Any, lanes_K: Any, problem: Problem) -> tuple[Any, Any, Any]:
    """Moves on the lanes whose present start is done or has diverged.

    Returns whether a lane's fit is over, whether it is finite (a start that diverges loses, and a fit diverges if all
    of its starts do), and the state.
    """

    def go_on(state_K: Any) -> Any:
        return select(
            is_done_K, over_lanes(functools.partial(next_start, problem=problem))(state_K, data_K, lanes_K), state_K
        )

    state_K = jax.lax.cond(jnp.any(is_done_K), go_on, lambda state_K: state_K, state_K)
    is_over_K = is_done_K & (state_K.restarts.number >= len(problem.learner.starts))
    return is_over_K, ~is_over_K | jnp.isfinite(state_K.restarts.risk), state_K
