"""The interface of a learner, and the two programs that are compiled for every cell: `init` and `advance`."""

import functools
from collections.abc import Callable
from typing import Any, ClassVar, Protocol, TypeVar

import jax
import numpy as np
from flax import linen as nn

from qstr_jax import tasks
from qstr_jax.learners import lanes
from qstr_jax.learners.problem import Problem
from qstr_jax.settings import registry

REGISTRY = registry.Registry('learner', 'learners')
Kind = TypeVar('Kind', bound=type[Any])


class Learner(Protocol):
    """How a model is fitted: a frozen dataclass whose fields are its settings.

    The values of a field made by `settings.traced` are lanes of one program; each value of any other field makes a
    program of its own. Methods that take a state work on lane batches: `_K` marks a leading axis of lanes. `lanes_K`
    are seeds and traced settings, arrays (k,), `data_K` the constants that `init` returns. Within a method `problem` is
    the cell's, and `problem.learner` the learner itself, after `bind`.

    A learner may leave out what has a default here: `register` adds it.

    Attributes:
        name: as registered.
        max_checks: upper bound on the checks of a lane.
        max_samples: budget of a lane, in prompts.
        threshold: the test loss that a lane should reach.
        threshold_on: what the threshold is on: the test loss, or the error rate of classes.
        start_settings: its settings that name starts, see `starts`.
        is_search: whether lanes search for n*; None for a learner without n, whose rows then have no such column.
        risk: 'averaged' over positions, or 'pointwise', at one position of each prompt.
        batch_size: examples of a step; 0 is all of them.
        test_samples: number of held-out test prompts.
        precision: of matrix products on an accelerator, see `lanes.run_checks`.
    """

    name: ClassVar[str]
    max_samples: int
    threshold: float
    threshold_on: str = 'loss'
    start_settings: ClassVar[tuple[str, ...]] = ()
    is_search: bool | None = None
    risk: str = 'averaged'
    batch_size: int = 0
    test_samples: int = 0
    precision: lanes.Precision = None

    @property
    def max_checks(self) -> int: ...
    def bind(self, module: nn.Module, task: tasks.Task, sample_sizes: tuple[int, ...]) -> 'Learner':
        """The learner of one cell, with its static settings and what follows from the model and the task.

        Args:
            module: the model.
            task: of the training prompts.
            sample_sizes: n of all lanes; (0,) if the learner has no n, or searches for it.
        """
        ...

    def lane_settings(self) -> tuple[str, ...]:
        """Names of the traced settings that have an effect."""
        ...

    def ignored(self) -> tuple[str, ...]:
        """Names of settings without effect, given the values of the others."""
        ...

    def init(self, lanes_K: Any, problem: Problem) -> tuple[Any, Any]:
        """Constants and the first state of a lane batch. A state has `params`, `outcome` and `checks`."""
        ...

    def check(self, state_K: Any, data_K: Any, lanes_K: Any, problem: Problem) -> Any:
        """The state one check later; lanes that are over stay as they are."""
        ...

    def report(self, state_K: Any, problem: Problem) -> dict[str, Any]:
        """Columns of the rows, arrays (k,), of the last state, on the host."""
        ...

    def report_curves(self, state_K: Any, problem: Problem) -> list[dict[str, Any]]:
        """The columns of each lane's curve, of the last state, on the host."""
        ...

    def progress(self, state_K: Any, problem: Problem) -> dict[str, Any]:
        """`samples` and `train_loss` of the lane that is furthest ahead, on the host."""
        ...

    def most_examples(self) -> int:
        """Upper bound on the examples that a lane trains on, with repetition."""
        ...


# What a learner may leave out.
_OPTIONAL = tuple(name for name in Learner.__annotations__ if hasattr(Learner, name))


def register(name: str) -> Callable[[Kind], Kind]:
    """Decorator that registers a frozen dataclass as a learner; its fields are its settings.

    Args:
        name: the name that `--config.learners` uses.

    Raises:
        ValueError: the name is taken, or the class is not a dataclass.
    """

    def add(kind: Kind) -> Kind:
        kind.name = name
        for optional in _OPTIONAL:
            if not hasattr(kind, optional):
                setattr(kind, optional, getattr(Learner, optional))
        REGISTRY.add(name, kind)
        return kind

    return add


def names() -> tuple[str, ...]:
    """Names of all learners."""
    return REGISTRY.names()


def lane(learner: Any, **values: Any) -> Any:
    """A lane: seeds and traced settings, as numbers; or as arrays (k,) for a lane batch.

    Values without effect are left out; traced settings that are not given are the learner's own.
    """
    kind = lanes.lane_type(tuple(learner.lane_settings()))
    shape = np.shape(values['seed'])
    own = {name: getattr(learner, name) for name in learner.lane_settings() if name not in values}
    given = {name: value for name, value in values.items() if name in kind._fields}
    return kind(**given, **{name: np.full(shape, value) if shape else value for name, value in own.items()})


@functools.partial(jax.jit, static_argnames='problem')
def init(lanes_K: Any, problem: Problem) -> tuple[Any, Any]:
    """Constants and the first state of a lane batch, in full float32."""
    with jax.default_matmul_precision('highest'):
        return problem.learner.init(lanes_K, problem)


@functools.partial(jax.jit, static_argnames='problem', donate_argnames='state_K')
def advance(state_K: Any, data_K: Any, lanes_K: Any, num_checks: Any, problem: Problem) -> Any:
    """Runs a lane batch for `num_checks` checks, a traced integer (), or until all of its lanes are over.

    The memory of `state_K` is reused for the result.
    """
    learner = problem.learner
    return lanes.run_checks(
        lambda state_K: learner.check(state_K, data_K, lanes_K, problem), state_K, num_checks, learner.precision
    )
