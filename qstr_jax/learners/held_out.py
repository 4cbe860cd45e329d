"""What every learner draws for a lane (task, held-out prompts, first parameters), and errors on held-out prompts."""

from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn

from qstr_jax import tasks
from qstr_jax.learners import risks
from qstr_jax.learners.problem import Problem
from qstr_jax.tasks import streams


def stream_keys(lane: Any, problem: Problem) -> dict[str, jax.Array]:
    """The keys of all streams of a lane, by stream: held-out prompts come from the test task."""

    def source(stream: str) -> tuple[Any, tasks.Task]:
        seed = lane.task_seed if stream == 'task' else lane.seed
        return seed, problem.test_task if stream in ('test', 'validation') else problem.task

    return streams.stream_keys({stream: source(stream) for stream in streams.STREAMS})


def draw_task(keys: dict[str, jax.Array], problem: Problem) -> tasks.Draw:
    """The `Draw` of a lane, with encodings for the longer of training and test prompts."""
    return tasks.draw(keys['task'], max(problem.task, problem.test_task, key=lambda task: task.seq_len))


def draw_prompts(
    keys: dict[str, jax.Array], problem: Problem, sizes: dict[str, int], task_draw: tasks.Draw
) -> tasks.Prompt:
    """Held-out prompts of one lane, drawn from the test task, one stream after the other."""
    if tasks.is_split(problem.test_task):
        drawn = [
            tasks.examples(keys[stream], jnp.arange(size), problem.test_task, task_draw.link, stream)
            for stream, size in sizes.items()
        ]
        return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *drawn)
    indices_B = jnp.concatenate([jnp.arange(size) for size in sizes.values()])
    stream_keys_B = [jnp.broadcast_to(keys[stream], (size,)) for stream, size in sizes.items()]
    keys_B = jax.vmap(jax.random.fold_in)(jnp.concatenate(stream_keys_B), indices_B)
    return tasks.samples(keys_B, problem.test_task, task_draw.link)


def measured_on(
    params: Any, task_draw: tasks.Draw, prompts: tasks.Prompt, problem: Problem
) -> tuple[jax.Array, dict[str, jax.Array]]:
    """Each held-out prompt's error, of the kind that the threshold is on, and further measures, (B,), in chunks."""
    module, task = problem.module, problem.test_task

    def measure(prompt: tasks.Prompt) -> tuple[jax.Array, dict[str, jax.Array]]:
        loss = risks.prompt_error(module, params, prompt, task, task_draw)
        if not other_measures(problem):
            return loss, {}
        accuracy = risks.prompt_accuracy(module, params, prompt, task, task_draw)
        judged = loss if problem.learner.threshold_on == 'loss' else 1 - accuracy
        return judged, {'test_loss': loss, 'accuracy': accuracy}

    num_prompts = prompts.y_N.shape[0]
    return jax.lax.map(measure, prompts, batch_size=min(problem.test_chunk, num_prompts))


def other_measures(problem: Problem) -> tuple[str, ...]:
    """Names of what `measured_on` measures besides the error that the threshold is on."""
    return ('test_loss', 'accuracy') if problem.test_task.loss == 'cross_entropy' else ()


def check_threshold(threshold_on: str, task: tasks.Task) -> None:
    """Raises ValueError for a threshold on the error rate where labels are numbers."""
    if threshold_on == 'error_rate' and task.loss != 'cross_entropy':
        raise ValueError(f"threshold_on='error_rate': the labels of task {task.name!r} are numbers; use 'loss'")


def abstract_params(module: nn.Module, task: tasks.Task) -> Any:
    """Shapes of a model's parameters, {'params': …}; nothing is computed."""
    z_NxE = jax.ShapeDtypeStruct((task.seq_len, task.embedding_dim), jnp.float32)
    variables = jax.eval_shape(module.init, streams.abstract_key(), z_NxE)
    return {'params': variables.get('params', {})}
