"""Lanes side by side: a lane batch has a leading axis of lanes on everything."""

import collections
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from qstr_jax import columns
from qstr_jax.learners.outcomes import RUNNING


@functools.cache
def lane_type(names: tuple[str, ...]) -> Any:
    """The NamedTuple of a lane: its seeds and its traced settings, in the order of the table of columns.

    Args:
        names: of the traced settings.
    """
    known = columns.with_role(names, 'lane')
    fields = ('seed', 'task_seed', *known, *(name for name in names if name not in known))
    return collections.namedtuple('Lane', fields)


def over_lanes(function: Callable) -> Callable:
    """`jax.vmap(function)`, but a batch of one lane runs without a lane axis.

    XLA's CPU products are slower with a batch axis of size 1: a wide GRU's step takes 1.4 times as long.

    Args:
        function: of the trees of one lane.
    """

    def mapped(*arguments_K: Any) -> Any:
        if jax.tree.leaves(arguments_K)[0].shape[0] > 1:
            return jax.vmap(function)(*arguments_K)
        lane = jax.tree.map(lambda leaf: leaf[0], arguments_K)
        return jax.tree.map(lambda leaf: leaf[None], function(*lane))

    return mapped


def select(is_chosen_K: jax.Array, new_K: Any, old_K: Any) -> Any:
    """Lanes of one tree where they are chosen, of another elsewhere.

    Args:
        is_chosen_K: booleans (k,).
        new_K, old_K: trees with a leading lane axis.
    """

    def choose(new: jax.Array, old: jax.Array) -> jax.Array:
        return jnp.where(is_chosen_K.reshape(-1, *(1,) * (new.ndim - 1)), new, old)

    return jax.tree.map(choose, new_K, old_K)


def run_checks(check: Callable, state_K: Any, num_checks: jax.Array) -> Any:
    """Makes checks until there were `num_checks`, or until no lane runs any more.

    `num_checks` is traced, and the result does not depend on how a run is cut into calls. Products are in full
    float32: a GPU or TPU would otherwise multiply in TF32 or bf16, and rows of different devices would differ by more
    than rounding. Emulated, either hardly moves samples to Figure 1's thresholds (experiments/benchmarks).

    Args:
        check: state of a lane batch → state one check later.
        state_K: has `outcome` (k,).
        num_checks: integer ().
    """

    def unfinished(carry: Any) -> jax.Array:
        state_K, done = carry
        return (done < num_checks) & jnp.any(state_K.outcome == RUNNING)

    with jax.default_matmul_precision('highest'):
        return jax.lax.while_loop(unfinished, lambda carry: (check(carry[0]), carry[1] + 1), (state_K, jnp.int32(0)))[0]
