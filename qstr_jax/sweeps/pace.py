"""How long lanes will take: as long as finished lanes took or, before there are any, an estimate from a timed step.

A timed step is the forward and backward pass of a batch, on parameters and prompts that mean nothing. Drawing prompts,
the optimiser and the tests take about as long again: committed rows took 0.6 to 3 times their timed steps, mostly 1 to
2, where the machine had other work too. So this only estimates what a whole budget takes.
"""

import functools
import math
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from qstr_jax import failures, models, threads
from qstr_jax.learners import held_out, lanes
from qstr_jax.learners.problem import Problem
from qstr_jax.progress import duration
from qstr_jax.sweeps import cost, lane_batches, monitor
from qstr_jax.sweeps.cells import Cell

# The time of a lane is this many times that of its steps alone.
BESIDE_STEPS = 2.0
# Floating-point operations of the largest step that is timed, for one lane and for all that run together; larger steps
# are taken to run at the pace of this one.
MOST_FLOPS = 5e10
MOST_FLOPS_TOGETHER = 5e11
# A step is repeated for this long, and at least three times.
TIMING_SECONDS = 0.2
# A guess at the floating-point operations per second of a device, to warn before long waits for the first check.
SPEEDS = {'cpu': 1e11}
SPEED = 1e13
# Users are warned of longer waits.
LONG_SECONDS = 60.0


class Pace(NamedTuple):
    """Seconds that a lane adds to a run on all devices of this machine."""

    seconds: float  # NaN if it is not known
    is_measured: bool  # whether lanes of the cell took this long; otherwise it is an estimate for the whole budget


def paces(cells: Sequence[Cell], workdir: Any = None) -> dict[str, Pace]:
    """The pace of each cell, by its id."""
    try:
        jax.devices()
    except (RuntimeError, AssertionError):  # none, or another process has it: a dry run needs none
        return {cell.id: Pace(math.nan, False) for cell in cells}
    found = {} if workdir is None else _measured(workdir)
    rest = [cell for cell in cells if cell.id not in found]
    for model in dict.fromkeys(cell.model for cell in rest):
        found |= _estimated([cell for cell in rest if cell.model == model])
    return found


def warning(cell: Cell, platform: str) -> str:
    """A warning of a cell whose first check, its first sign of life, is far away; otherwise ''."""
    learner = cell.problem.learner
    flops = cost.training_flops(cell.problem, learner.most_examples() // max(1, learner.max_checks))
    seconds = flops / SPEEDS.get(platform, SPEED)
    if seconds < LONG_SECONDS:
        return ''
    return (
        f'{cell.id}: {flops / 1e12:,.0f} TFLOP to the first check of a lane, perhaps {duration(seconds)} in which '
        'nothing is shown; a smaller check_every, batch_size or seq_len shows more'
    )


def _measured(workdir: Any) -> dict[str, Pace]:
    """The paces of the cells that have finished lanes."""
    status = monitor.status(workdir)
    finished = status['lanes'] - status['left']
    seconds = status['seconds'] / finished.where(finished > 0) / _num_devices()
    return {cell: Pace(each, True) for cell, each in zip(status['cell'], seconds, strict=True) if each > 0}


def _estimated(cells: Sequence[Cell]) -> dict[str, Pace]:
    """The paces of one model's cells: its smallest and largest step are timed, the speeds of others lie between."""
    flops = {cell.id: _step_flops(cell.problem) for cell in cells}
    by_size = sorted((cell for cell in cells if 0 < flops[cell.id] <= MOST_FLOPS), key=lambda cell: flops[cell.id])
    ends = {flops[cell.id]: cell for cell in (*by_size[:1], *by_size[-1:])}
    log_speeds = [math.log(size / _seconds_on_machine(cell)) for size, cell in ends.items()]

    def seconds(cell: Cell) -> float:
        budget = cost.budget_flops(cell.problem)
        if not budget or not ends:
            return math.nan if budget else 0.0
        speed = math.exp(np.interp(math.log(flops[cell.id]), [math.log(size) for size in ends], log_speeds))
        return BESIDE_STEPS * budget / speed

    return {cell.id: Pace(seconds(cell), False) for cell in cells}


def _seconds_on_machine(cell: Cell) -> float:
    with failures.named(f'models={cell.model!r}'):
        seconds = step_seconds(cell.problem, len(cell.lanes))
    # On a CPU a step has had all cores.
    return seconds if jax.default_backend() == 'cpu' else seconds / _num_devices()


def _num_devices() -> int:
    """The devices of a run: on a CPU each core is one, see `cli.runtime`."""
    return threads.cores() if jax.default_backend() == 'cpu' else jax.local_device_count()


def _batch_size(problem: Problem) -> int:
    """Prompts of a timed step; learners that take their whole sample at once are timed on some of it."""
    return problem.learner.batch_size or 64


def _step_flops(problem: Problem) -> int:
    return cost.training_flops(problem, _batch_size(problem))


@functools.lru_cache(maxsize=64)
def step_seconds(problem: Problem, num_lanes: int) -> float:
    """Seconds of a lane for the forward and backward pass of a batch, with as many lanes as run together."""
    size = lane_batches.default_size(problem.module, num_lanes, jax.default_backend())
    size = max(1, min(size, int(MOST_FLOPS_TOGETHER / _step_flops(problem))))
    shapes = held_out.abstract_params(problem.module, problem.task)
    params_K = jax.tree.map(lambda leaf: jnp.full((size, *leaf.shape), 0.01, leaf.dtype), shapes)
    with jax.default_matmul_precision('highest'):
        step = jax.jit(lanes.over_lanes(functools.partial(_step, problem=problem))).lower(params_K).compile()
    params_K = jax.block_until_ready(step(params_K))
    end, seconds = time.perf_counter() + TIMING_SECONDS, list[float]()
    while time.perf_counter() < end or len(seconds) < 3:
        start = time.perf_counter()
        params_K = jax.block_until_ready(step(params_K))
        seconds.append(time.perf_counter() - start)
    return min(seconds) / size  # The slower ones shared the machine.


def _step(params: Any, problem: Problem) -> Any:
    """Parameters after a step of gradient descent on prompts of ones."""
    task, module, num_prompts = problem.task, problem.module, _batch_size(problem)
    if hasattr(module, 'unroll'):  # A loop over tokens compiles in a second instead of ten.
        module = module.clone(unroll=1)
    z_BxNxE = jnp.ones((num_prompts, task.seq_len, task.embedding_dim))
    is_pointwise = problem.learner.risk == 'pointwise'
    positions_B = jnp.arange(num_prompts) % task.seq_len if is_pointwise else None

    def loss(params: Any) -> jax.Array:
        predict = functools.partial(models.predict, module, params)
        return jnp.mean(jax.vmap(predict, in_axes=(0, 0 if is_pointwise else None))(z_BxNxE, positions_B) ** 2)

    return jax.tree.map(lambda leaf, slope: leaf - 1e-3 * slope, params, jax.grad(loss)(params))
