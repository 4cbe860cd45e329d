"""Training of one lane batch on one device, from its first state to its end."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from qstr_jax.learners.lanes import CENSORED, RUNNING
from qstr_jax.learners.problem import Problem
from qstr_jax.sweeps.programs import Programs, lane_arrays

# Target duration of a call of `advance`: short enough for the progress bar and for SIGTERM, long enough that the work
# between two calls does not matter.
SECONDS_PER_CALL = 2.0


def start(programs: Programs, lanes: Sequence[Any]) -> tuple[Any, Any, Any]:
    """The lane arrays, the constants and the first state of a batch.

    A batch with fewer lanes is filled up with copies of its last lane that are over from the start, so that every batch
    of a cell runs the same program.
    """
    size = programs.size
    lanes_K = lane_arrays([*lanes, *[lanes[-1]] * (size - len(lanes))], programs.device)
    data_K, state_K = programs.init(lanes_K)
    is_filler_K = np.arange(size) >= len(lanes)
    outcome_K = np.where(is_filler_K, CENSORED, np.asarray(state_K.outcome)).astype(np.int32)
    return lanes_K, data_K, state_K._replace(outcome=jax.device_put(outcome_K, programs.device))


def train(
    programs: Programs,
    problem: Problem,
    lanes: Sequence[Any],
    saved: Any = None,
    on_call: Callable[[Any], None] | None = None,
) -> tuple[Any, Any]:
    """Trains one lane batch to its end."""
    lanes_K, data_K, state_K = start(programs, lanes)
    problem.task.check_draw(data_K.task_draw.encodings.complete)
    if saved is not None:
        state_K = jax.device_put(saved, programs.device)
    num_checks = 1
    while np.any(np.asarray(state_K.outcome) == RUNNING):
        call_start = time.perf_counter()
        checks = jax.device_put(np.int32(num_checks), programs.device)
        state_K = programs.advance(state_K, data_K, lanes_K, checks)
        jax.block_until_ready(state_K.outcome)
        seconds = time.perf_counter() - call_start
        if on_call is not None:
            on_call(state_K)
        # Bounded changes, since the first calls are slower than the others.
        factor = np.clip(SECONDS_PER_CALL / max(seconds, 1e-6), 0.25, 4.0)
        num_checks = int(np.clip(num_checks * factor, 1, problem.learner.max_checks))
    return data_K, state_K
