"""Fits on n prompts inside cards: lanes of one learner of `learners`, run to their end."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from qstr_jax import learners, tasks
from qstr_jax.learners.problem import Problem


class Fits(NamedTuple):
    """Fitted lanes.

    Attributes:
        problem: the static side of their cell.
        data_K: what they drew; `train` has the prompts, of which lane k uses the first sizes[k].
        state_K: the learner's last state, whose `fit.params` are the parameters.
        columns: of the learner's report, arrays (k,).
    """

    problem: Problem
    data_K: Any
    state_K: Any
    columns: dict[str, np.ndarray]


def run(
    task: Any, module: Any, learner: Any, *, sizes: Sequence[int], seeds: Sequence[int], test_task: Any = None,
    **values: float,
) -> Fits:  # fmt: skip
    """Fits a lane for each (n, seed), each with its own task draw and prompts.

    Args:
        task: of the training prompts.
        module: the model.
        learner: one on a fixed sample.
        sizes: n of each lane.
        seeds: of each lane; lanes of one seed have nested training sets.
        test_task: of the test prompts; None is `task`.
        **values: the learner's traced settings, such as its learning rate.

    Raises:
        tasks.DrawError: the encodings cannot be drawn.
    """
    bound = learner.bind(module, task, tuple(sizes))
    problem = Problem(task=task, test_task=test_task or task, module=module, learner=bound)
    seeds_K = jnp.asarray(seeds)
    traced_K = {name: jnp.full(len(sizes), value) for name, value in values.items()}
    lanes_K = learners.lane(bound, seed=seeds_K, task_seed=seeds_K, sample_size=jnp.asarray(sizes), **traced_K)
    data_K, state_K = learners.init(lanes_K, problem)
    tasks.check_draw(data_K.task_draw.encodings.complete, task)
    state_K = learners.advance(state_K, data_K, lanes_K, bound.max_checks, problem)
    columns = {name: np.asarray(value) for name, value in bound.report(state_K, problem).items()}
    return Fits(problem=problem, data_K=data_K, state_K=state_K, columns=columns)


def prompts(fits: Fits, lane: int, num_samples: int) -> tasks.Prompt:
    """The training prompts of a lane.

    Args:
        fits: of `run`.
        lane: its number.
        num_samples: n.
    """
    return jax.tree.map(lambda leaf: leaf[lane, :num_samples], fits.data_K.train)
