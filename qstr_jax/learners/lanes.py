"""Lanes: how one ends, and programs of one lane applied to a lane batch, whose arrays have a leading axis of lanes."""

import collections
import functools
from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp

from qstr_jax import columns

# How a lane can end. States hold the numbers, rows the names.
RUNNING, REACHED, CENSORED, DIVERGED, FITTED, CENSORED_BELOW, OUTRACED = range(7)
OUTCOMES = ('running', *columns.OUTCOMES)

# The precision of matrix products; None is 'highest', full float32.
Precision = Literal['highest', 'high', 'default'] | None
# The most lanes that an accelerator tests, assesses or draws together. The compilers say that 64 lanes of Figure 1a's
# GRU at N = 12 take 9.0 GiB on a TPU v5e and 4.9 GiB on an H100 this way, and 12.5 and 8.1 GiB all at once; for the TPU
# they compile in half the time. The program that draws the prompts of 42 lanes of the learning curves' Transformer
# compiles for the TPU in 10 seconds of a core instead of 33.
MOST_TOGETHER = 8
# `over_lanes_in_parts` cuts larger batches into chunks of at most this size. It runs once in hundreds of steps, so only
# compiling counts: 40 lanes of Theorem 6's FFN compile for a TPU in 27 seconds of a core in fours, in 33 in eights.
ASSESSED_TOGETHER = 4


@functools.cache
def lane_type(names: tuple[str, ...]) -> Any:
    """The NamedTuple of a lane: its seeds and its traced settings, in the order of the table of columns."""
    known = columns.with_role(names, 'lane')
    fields = ('seed', 'task_seed', *known, *(name for name in names if name not in known))
    return collections.namedtuple('Lane', fields)


def over_lanes(function: Callable) -> Callable:
    """`jax.vmap(function)`, except that a batch of a single lane runs without the axis of lanes.

    XLA's matrix products on a CPU are slower with a batch axis of size 1: a wide GRU's step takes 1.4 times as long.
    """

    def mapped(*arguments_K: Any) -> Any:
        if jax.tree.leaves(arguments_K)[0].shape[0] > 1:
            return jax.vmap(function)(*arguments_K)
        lane = jax.tree.map(lambda leaf: leaf[0], arguments_K)
        return jax.tree.map(lambda leaf: leaf[None], function(*lane))

    return mapped


def in_parts(function: Callable, *arguments_K: Any, most: int = MOST_TOGETHER) -> Any:
    """A function of lane batches, applied to equal parts of a batch one after the other."""
    num_lanes = jax.tree.leaves(arguments_K)[0].shape[0]
    size = next(size for size in range(min(most, num_lanes), 0, -1) if num_lanes % size == 0)
    if size == num_lanes:
        return function(*arguments_K)
    parts = jax.tree.map(lambda leaf: leaf.reshape(-1, size, *leaf.shape[1:]), arguments_K)
    found = jax.lax.map(lambda part: function(*part), parts)
    return jax.tree.map(lambda leaf: leaf.reshape(num_lanes, *leaf.shape[2:]), found)


def over_lanes_in_parts(function: Callable) -> Callable:
    """`over_lanes(function)`, in equal parts where an accelerator has more than `MOST_TOGETHER` lanes."""
    mapped = over_lanes(function)

    def in_parts_where_many(*arguments_K: Any) -> Any:
        if jax.tree.leaves(arguments_K)[0].shape[0] <= MOST_TOGETHER:
            return mapped(*arguments_K)
        parts = functools.partial(in_parts, mapped, most=ASSESSED_TOGETHER)
        return jax.lax.platform_dependent(*arguments_K, cpu=mapped, default=parts)

    return in_parts_where_many


def over_chosen(function: Callable, is_chosen_K: jax.Array, *arguments_K: Any) -> Any:
    """Applies a function to the chosen lanes; the others get NaN, and their work is saved where that pays.

    On a CPU the lanes run one after the other, each under a condition of its own: XLA's batched products are slower
    there, and one by one five lanes of a Transformer take half the time even if all are chosen. On an accelerator they
    run together as soon as one is chosen, in equal parts of at most `MOST_TOGETHER`. A lane's result does not depend on
    which others are chosen.
    """

    # Traced once for all that follows.
    function = jax.jit(function, inline=True)

    def lane(k: Any) -> Any:
        return jax.tree.map(lambda leaf: leaf[k], arguments_K)

    shapes = jax.eval_shape(lambda: function(*lane(0)))

    def nothing(*axes: int) -> Any:
        return jax.tree.map(lambda leaf: jnp.full((*axes, *leaf.shape), jnp.nan, leaf.dtype), shapes)

    def together() -> Any:
        num_lanes = is_chosen_K.size
        return jax.lax.cond(
            jnp.any(is_chosen_K), lambda: in_parts(over_lanes(function), *arguments_K), lambda: nothing(num_lanes)
        )

    def one_by_one() -> Any:
        def one(k: jax.Array) -> Any:
            # A lane that is not chosen is not copied out of the batch, since its test prompts are large.
            return jax.lax.cond(is_chosen_K[k], lambda: function(*lane(k)), nothing)

        return jax.lax.map(one, jnp.arange(is_chosen_K.size))

    return together() if is_chosen_K.size == 1 else jax.lax.platform_dependent(cpu=one_by_one, default=together)


def select(is_chosen_K: jax.Array, new_K: Any, old_K: Any) -> Any:
    """The chosen lanes of one tree, and the other lanes of another."""

    def choose(new: jax.Array, old: jax.Array) -> jax.Array:
        return jnp.where(is_chosen_K.reshape(-1, *(1,) * (new.ndim - 1)), new, old)

    return jax.tree.map(choose, new_K, old_K)


def validate_precision(learner: Any) -> None:
    """Writes the default precision as None, so that naming it is the same setting and adds no column."""
    if learner.precision == 'highest':
        object.__setattr__(learner, 'precision', None)


def run_checks(check: Callable, state_K: Any, num_checks: jax.Array, precision: Precision = None) -> Any:
    """Runs a lane batch for `num_checks` checks, or until all of its lanes are over.

    `num_checks` is traced, and the result does not depend on how a run is divided into calls. Matrix products are in
    full float32 unless a learner's `precision` says otherwise: a GPU or TPU would multiply in TF32 or bf16 by default,
    and rows of different devices would differ by more than rounding. In emulation both hardly change the samples to
    Figure 1's thresholds (experiments/benchmarks). A CPU always multiplies in float32.
    """

    def unfinished(carry: Any) -> jax.Array:
        state_K, done = carry
        return (done < num_checks) & jnp.any(state_K.outcome == RUNNING)

    with jax.default_matmul_precision(precision or 'highest'):
        return jax.lax.while_loop(unfinished, lambda carry: (check(carry[0]), carry[1] + 1), (state_K, jnp.int32(0)))[0]
