"""Training inside cards: online AdamW on any module, with a learning rate that falls along a cosine."""

import dataclasses
import functools
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from qstr_jax import learners, models, tasks
from qstr_jax.learners import online_lane, outcomes
from qstr_jax.learners.problem import Problem
from qstr_jax.theory.sparse_task import SparseTask

# A threshold that no lane reaches, so that all of them train to the end.
NEVER = 1e-30


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings that all cards with trained networks have.

    Attributes:
        steps: training steps.
        batch_size: fresh prompts of a step.
        learning_rate: of the first window.
        test_samples: test prompts.
    """

    steps: int = 2000
    batch_size: int = 64
    learning_rate: float = 3e-3
    test_samples: int = 5000


class Training(NamedTuple):
    """How networks are trained.

    Attributes:
        steps: training steps.
        batch_size: fresh prompts of a step.
        learning_rate: of the first window.
        windows: number of stretches of steps with the same learning rate.
        test_samples: test prompts.
        threshold: training of a lane ends when its test loss is below this.
        decay: whether the learning rate falls from window to window.
        weight_decay: of AdamW.
    """

    steps: int
    batch_size: int
    learning_rate: float
    windows: int = 20
    test_samples: int = 5000
    threshold: float = NEVER
    decay: bool = True
    weight_decay: float = 0.0


def of(settings: Settings, **changes: Any) -> Training:
    """How the networks of a card are trained.

    Args:
        settings: of the card.
        **changes: further fields of `Training`. By default there are 20 windows, or one per step if that is fewer.
    """
    fields = {'windows': min(20, settings.steps), **changes}
    return Training(
        steps=settings.steps,
        batch_size=settings.batch_size,
        learning_rate=settings.learning_rate,
        test_samples=settings.test_samples,
        **fields,
    )


class Fit(NamedTuple):
    """Trained lanes.

    Attributes:
        problem: the static side of the lanes' cell.
        params_K: parameters with a leading axis of lanes.
        data_K: the learner's data with a leading axis of lanes.
        state_K: the learner's last state.
    """

    problem: Problem
    params_K: Any
    data_K: online_lane.Data
    state_K: online_lane.State


# (lane, its draw) → parameters to start from.
Start = Callable[[int, tasks.Draw], dict]


def _learner(training: Training) -> learners.Online:
    steps = max(1, training.steps // training.windows)
    return learners.Online(
        batch_size=training.batch_size,
        check_every=steps,
        threshold=training.threshold,
        max_samples=training.steps * training.batch_size,
        test_samples=training.test_samples,
        screen=training.threshold == NEVER,
    )


def windows(
    task: SparseTask, module: Any, training: Training, num_lanes: int, params: Start | None = None
) -> Iterator[tuple[int, Fit]]:
    """Trains lanes 0..k−1, each with a task draw of its own.

    The learning rate of window c of C is learning_rate · (1 + cos(π c/C))/2, or constant without `training.decay`.

    Args:
        task: what is trained on.
        module: the model.
        training: how it is trained.
        num_lanes: k; all random streams of lane i have seed i.
        params: (lane, its draw) → parameters to start from; None starts from the module's own.

    Yields:
        The number of steps done and the lanes, at the start and after each window. The lanes must be used before the
        next ones are asked for, since the learner reuses their memory.
    """
    problem = Problem(task=task, test_task=task, module=module, learner=_learner(training))
    seeds_K = jnp.arange(num_lanes)
    rate_K = jnp.full(num_lanes, training.learning_rate)
    rates_K = {'learning_rate': rate_K, 'weight_decay': jnp.full(num_lanes, training.weight_decay)}
    lanes_K = learners.lane(problem.learner, seed=seeds_K, task_seed=seeds_K, **rates_K)
    data_K, state_K = learners.init(lanes_K, problem)
    tasks.check_draw(data_K.task_draw.encodings.complete, task)
    if params is not None:
        chosen = [params(k, lane(data_K.task_draw, k)) for k in range(num_lanes)]
        params_K = jax.tree.map(lambda *leaves: jnp.stack(leaves), *chosen)
        opt_state_K = jax.vmap(problem.learner.transform(lanes_K).init)(params_K)
        state_K = state_K._replace(params=params_K, opt_state=opt_state_K)
    yield 0, Fit(problem=problem, params_K=state_K.params, data_K=data_K, state_K=state_K)
    checks = problem.learner.max_checks
    for check in range(checks):
        factor = (1 + math.cos(math.pi * check / checks)) / 2 if training.decay else 1.0
        now_K = lanes_K._replace(learning_rate=factor * rate_K)
        state_K = learners.advance(state_K, data_K, now_K, 1, problem)
        fit = Fit(problem=problem, params_K=state_K.params, data_K=data_K, state_K=state_K)
        yield (check + 1) * problem.learner.check_every, fit


def train(task: SparseTask, module: Any, training: Training, num_lanes: int, params: Start | None = None) -> Fit:
    """The last lanes of `windows`; stops early once every lane has reached the threshold.

    Args: see `windows`.
    """
    for _, fit in windows(task, module, training, num_lanes, params):
        if not np.any(np.asarray(fit.state_K.outcome) == outcomes.RUNNING):
            break
    return fit


@functools.partial(jax.jit, static_argnames='problem')
def square_errors(params_K: Any, data_K: online_lane.Data, problem: Problem) -> jax.Array:
    """(y_i − ŷ_i)² on the test prompts.

    Args:
        params_K: parameters with a leading axis of lanes.
        data_K: the lanes' data.
        problem: their cell's static side.

    Returns:
        (k, B, N).
    """

    def errors(params: dict, data: online_lane.Data) -> jax.Array:
        def error(prompt: tasks.Prompt) -> jax.Array:
            prediction_N = models.predict(problem.module, params, tasks.encode(prompt, problem.task, data.task_draw))
            return (prompt.y_N - prediction_N) ** 2

        return jax.lax.map(error, data.test_prompts, batch_size=min(problem.test_chunk, problem.learner.test_samples))

    with jax.default_matmul_precision('highest'):
        return jax.vmap(errors)(params_K, data_K)


def loss_at(fit: Fit, mask_N: jax.Array | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The mean test loss of each lane at some positions.

    Args:
        fit: the lanes.
        mask_N: which positions, (N,); None is all.

    Returns:
        The losses (k,), and their standard errors over prompts (k,).
    """
    errors_KxBxN = np.asarray(square_errors(fit.params_K, fit.data_K, fit.problem), np.float64)
    at_N = np.ones(errors_KxBxN.shape[-1], bool) if mask_N is None else np.asarray(mask_N)
    return mean_and_error(errors_KxBxN[:, :, at_N].mean(axis=2))


def mean_and_error(values_KxB: np.ndarray | jax.Array) -> tuple[np.ndarray, np.ndarray]:
    """Means and standard errors over the last axis.

    Args:
        values_KxB: (..., B).

    Returns:
        (...,) each.
    """
    values_KxB = np.asarray(values_KxB, np.float64)
    return values_KxB.mean(-1), values_KxB.std(-1) / math.sqrt(values_KxB.shape[-1])


def lane(tree_K: Any, k: int) -> Any:
    """One lane of a tree.

    Args:
        tree_K: its leaves have a leading axis of lanes.
        k: which lane.
    """
    return jax.tree.map(lambda leaf: leaf[k], tree_K)
