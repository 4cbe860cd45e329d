"""A plugin with probes of trained networks: what the cards of theorems compare with the theorems' lines.

Each measures on prompts of its own, which are not trained on: those of the stream 'validation' of seed 0.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp

from qstr_jax import models, tasks
from qstr_jax.models import probes
from qstr_jax.tasks import streams
from qstr_jax.theory import floors, measures, sensitivity

# Prompts whose attention or states are measured.
_LOOK = 200


def _prompts(task: Any, task_draw: tasks.Draw, count: int) -> tasks.Prompt:
    return tasks.examples(streams.stream_key(0, 'validation', task), jnp.arange(count), task, task_draw.link)


def _mean_and_error(values_B: jax.Array, name: str) -> dict[str, jax.Array]:
    """The columns of a mean over prompts, and of its standard error."""
    return {name: jnp.mean(values_B), f'{name}_se': jnp.std(values_B) / jnp.sqrt(values_B.size)}


def _has_network_of_states(module: Any) -> bool:
    """Whether a model reads its states and the token by an MLP, as the paper's RNN does."""
    return isinstance(module, models.Recurrent) and module.readout == 'mlp'


@probes.register
def late_loss(params: dict, task_draw: tasks.Draw, problem: Any, num_prompts: int = 5000) -> dict[str, jax.Array]:
    """The loss at positions i ≥ N/2, where Propositions 3 and 21 have their floors, and its standard error.

    Args:
        num_prompts: prompts on which it is measured.
    """
    task = problem.task
    late_N = floors.late_positions(task.seq_len)

    def error(prompt: tasks.Prompt) -> jax.Array:
        prediction_N = models.predict(problem.module, params, tasks.encode(prompt, task, task_draw))
        return jnp.mean((prompt.y_N - prediction_N) ** 2, where=late_N)

    chunk = min(problem.test_chunk, num_prompts)
    return _mean_and_error(jax.lax.map(error, _prompts(task, task_draw, num_prompts), batch_size=chunk), 'late_loss')


@probes.register
def head_alignment(params: dict, task_draw: tasks.Draw, problem: Any) -> dict[str, jax.Array]:
    """`measures.alignment` with Lemma 11's construction, and the attention mass off the right token."""
    if 'attention' not in params['params']:
        return {}
    aligned = measures.alignment(params, problem.task)
    prompts = _prompts(problem.task, task_draw, _LOOK)
    off_mass = measures.off_mass(problem.module, params, prompts, problem.task, task_draw)['mean']
    return {'alignment_share': aligned.share, 'alignment_cosine': aligned.cosine, 'off_mass': off_mass}


@probes.register
def transition_lipschitz(params: dict, task_draw: tasks.Draw, problem: Any) -> dict[str, jax.Array]:
    """‖W_L‖⋯‖W_1,h‖ of a deep RNN's stored transitions, which Theorem 7 bounds by α_N; of the larger direction."""
    if not isinstance(problem.module, models.Recurrent) or problem.module.cell != 'deep':
        return {}
    return {'transition_lipschitz': jnp.max(jnp.asarray(sensitivity.transition_lipschitz(params)))}


@probes.register
def state_sensitivity(params: dict, task_draw: tasks.Draw, problem: Any) -> dict[str, jax.Array]:
    """Proposition 8's L²‖U‖² of an RNN, from above (layer products) and from below (sampled gradients).

    r_h is the largest norm of a state that was seen, of both directions together.
    """
    if not _has_network_of_states(problem.module):
        return {}
    prompts = _prompts(problem.task, task_draw, _LOOK)
    z_BxNxE = jax.vmap(lambda prompt: tasks.encode(prompt, problem.task, task_draw))(prompts)
    states_BxNxF = jax.vmap(functools.partial(sensitivity.recurrent_states, problem.module, params))(z_BxNxE)
    states, z = (leaf.reshape(-1, leaf.shape[-1]) for leaf in (states_BxNxF, z_BxNxE))
    norm = jnp.max(jnp.linalg.norm(states, axis=-1))
    return {
        'sensitivity_above': sensitivity.state_sensitivity(params, problem.module.width, norm),
        'sensitivity_below': sensitivity.state_sensitivity_sampled(params, states, z, norm),
    }


@probes.register
def rounded_states(
    params: dict, task_draw: tasks.Draw, problem: Any, bits: tuple[int, ...] = (1, 2, 3, 4), num_prompts: int = 4000
) -> dict[str, jax.Array]:
    """The loss of an RNN when each coordinate of its states, in (−1, 1), is rounded to one of 2^bits levels.

    Args:
        bits: bits per coordinate; each value makes the columns rounded_BITS and rounded_BITS_se.
        num_prompts: prompts on which it is measured.
    """
    if not _has_network_of_states(problem.module):
        return {}

    def error(prompt: tasks.Prompt, levels: float) -> jax.Array:
        z_NxE = tasks.encode(prompt, problem.task, task_draw)
        states_NxF = sensitivity.recurrent_states(problem.module, params, z_NxE)
        cell_NxF = jnp.clip(jnp.floor((states_NxF + 1) / 2 * levels), 0, levels - 1)
        rounded_NxF = (2 * cell_NxF + 1) / levels - 1
        prediction_N = jax.vmap(lambda h, z: sensitivity.read_out(params, h, z))(rounded_NxF, z_NxE)
        return jnp.mean((prompt.y_N - prediction_N) ** 2)

    prompts = _prompts(problem.task, task_draw, num_prompts)
    found: dict[str, jax.Array] = {}
    for one in bits:
        errors_B = jax.lax.map(lambda p, n=2.0**one: error(p, n), prompts, batch_size=min(_LOOK, num_prompts))
        found |= _mean_and_error(errors_B, f'rounded_{one}')
    return found
