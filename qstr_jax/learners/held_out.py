"""What every learner draws for a lane (task, held-out prompts, first parameters), and errors on held-out prompts."""

from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn

from qstr_jax import tasks
from qstr_jax.learners import risks
from qstr_jax.learners.problem import Problem
from qstr_jax.tasks import streams

# Held-out prompts that are evaluated together, per lane.
TEST_CHUNK = 500


def draw_task(lane: Any, problem: Problem) -> tasks.Draw:
    """The link's parameters and the encodings of a lane.

    Args:
        lane: has `task_seed`.
        problem: the cell's.
    """
    return tasks.draw(tasks.task_key(lane.task_seed, problem.task), problem.task)


def draw_prompts(lane: Any, problem: Problem, sizes: dict[str, int], task_draw: tasks.Draw) -> tasks.Prompt:
    """Held-out prompts of one lane, drawn from the test task, one stream after the other.

    Args:
        lane: has `seed`.
        problem: the cell's.
        sizes: number of prompts of each stream, such as {'test': 5000, 'validation': 1000}.
        task_draw: the lane's.
    """
    keys = [
        jax.vmap(jax.random.fold_in, (None, 0))(
            streams.stream_key(lane.seed, stream, problem.test_task), jnp.arange(size)
        )
        for stream, size in sizes.items()
    ]
    keys_B = keys[0] if len(keys) == 1 else jnp.concatenate(keys)
    return tasks.samples(keys_B, problem.test_task, task_draw.link)


def init_params(lane: Any, problem: Problem, number: int = 0) -> Any:
    """The model's first parameters, {'params': …}.

    Args:
        lane: has `seed`.
        problem: the cell's.
        number: 0 for the parameters of all learners, others for further draws.
    """
    z_NxE = jnp.zeros((problem.task.seq_len, problem.task.embedding_dim))
    key = streams.stream_key(lane.seed, 'init', problem.task)
    variables = problem.module.init(jax.random.fold_in(key, number) if number else key, z_NxE)
    # Linen also returns what was sown; only parameters are trained.
    return {'params': variables.get('params', {})}


def errors_on(params: Any, task_draw: tasks.Draw, prompts: tasks.Prompt, problem: Problem) -> jax.Array:
    """Error (2.1) of each held-out prompt, (B,), computed in chunks.

    Args:
        params: of one lane.
        task_draw: the lane's.
        prompts: with a leading axis B.
        problem: the cell's.
    """

    def error(prompt: tasks.Prompt) -> jax.Array:
        return risks.prompt_error(problem.module, params, prompt, problem.test_task, task_draw)

    num_prompts = prompts.y_N.shape[0]
    return jax.lax.map(error, prompts, batch_size=min(TEST_CHUNK, num_prompts))


def abstract_params(module: nn.Module, task: tasks.Task) -> Any:
    """Shapes of a model's parameters, {'params': …}; nothing is computed.

    Args:
        module: the model.
        task: has the shape of a prompt.
    """
    z_NxE = jax.ShapeDtypeStruct((task.seq_len, task.embedding_dim), jnp.float32)
    variables = jax.eval_shape(module.init, streams.abstract_key(), z_NxE)
    return {'params': variables.get('params', {})}
