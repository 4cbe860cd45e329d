"""What all learners share: the static side of a cell, outcomes, test losses, and lanes side by side."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn

from qstr_jax import tasks
from qstr_jax.learners import risks
from qstr_jax.tasks import streams

RUNNING, REACHED, CENSORED, DIVERGED, FITTED, CENSORED_BELOW = range(6)
OUTCOMES = ('running', 'reached', 'censored', 'diverged', 'fitted', 'censored_below')

# Test prompts that are in memory together, per lane.
TEST_CHUNK = 500


@dataclasses.dataclass(frozen=True)
class Problem:
    """All that is static in one cell: hashable, so it can be a static argument of `jit`.

    Attributes:
        task: what is trained on.
        test_task: what is tested on; shares the link and the encodings of `task`.
        module: the model.
        learner: `online.Online` or `fixed.Fixed`.
    """

    task: tasks.Task
    test_task: tasks.Task
    module: nn.Module
    learner: Any


def over_lanes(function):
    """`jax.vmap(function)`, but for a batch of one lane, which runs without a lane axis.

    XLA's CPU products are slower with a batch axis of size 1: a wide GRU's step takes 1.4 times as long.
    """

    def mapped(*arguments_K):
        if jax.tree.leaves(arguments_K)[0].shape[0] > 1:
            return jax.vmap(function)(*arguments_K)
        lane = jax.tree.map(lambda leaf: leaf[0], arguments_K)
        return jax.tree.map(lambda leaf: leaf[None], function(*lane))

    return mapped


def select(is_chosen_K, new_K, old_K):
    """Lanes of `new_K` where chosen, of `old_K` elsewhere; trees with a leading lane axis."""

    def choose(new, old):
        return jnp.where(is_chosen_K.reshape(-1, *(1,) * (new.ndim - 1)), new, old)

    return jax.tree.map(choose, new_K, old_K)


def run_checks(check, state_K, num_checks):
    """`check(state_K)` up to `num_checks` times, or until no lane runs any more; products in full float32.

    `num_checks` is traced, and the result does not depend on how a run is cut into calls.
    """

    def unfinished(carry):
        state_K, done = carry
        return (done < num_checks) & jnp.any(state_K.outcome == RUNNING)

    # A GPU or TPU would otherwise multiply in TF32 or bf16, and rows of different devices would differ by more than
    # rounding. Emulated, either hardly moves samples to Figure 1's thresholds (experiments/benchmarks).
    with jax.default_matmul_precision('highest'):
        return jax.lax.while_loop(unfinished, lambda carry: (check(carry[0]), carry[1] + 1), (state_K, jnp.int32(0)))[0]


def draw_task(lane, problem):
    """`tasks.Draw` of a lane."""
    return tasks.draw(tasks.task_key(lane.task_seed, problem.task), problem.task)


def held_out(lane, problem, sizes, task_draw):
    """Prompts of the lane's held-out streams, one stream after the other, drawn from the test task.

    Args:
        lane, problem, task_draw: as everywhere.
        sizes: how many prompts of each stream, as {'test': 5000, 'validation': 1000}.
    """
    keys = [
        jax.vmap(jax.random.fold_in, (None, 0))(
            streams.stream_key(lane.seed, stream, problem.test_task), jnp.arange(size)
        )
        for stream, size in sizes.items()
    ]
    keys = keys[0] if len(keys) == 1 else jnp.concatenate(keys)
    return tasks.samples(keys, problem.test_task, task_draw.link)


def init_params(lane, problem):
    """The model's first parameters, {'params': …}."""
    z_NxE = jnp.zeros((problem.task.seq_len, problem.task.embedding_dim))
    variables = problem.module.init(streams.stream_key(lane.seed, 'init', problem.task), z_NxE)
    # Linen also returns what was sown; parameters are all that is trained.
    return {'params': variables.get('params', {})}


def errors_on(params, data, prompts, problem):
    """Error of each test prompt, a chunk at a time; `data.task_draw` is the lane's task."""

    def error(prompt):
        return risks.prompt_error(problem.module, params, prompt, problem.test_task, data.task_draw)

    num_prompts = prompts.y_N.shape[0]
    return jax.lax.map(error, prompts, batch_size=min(TEST_CHUNK, num_prompts))
