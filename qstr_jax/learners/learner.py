"""What a learner is, and the two compiled programs of every lane batch."""

import functools
from collections.abc import Callable
from typing import Any, ClassVar, Protocol, TypeVar

import jax
from flax import linen as nn

from qstr_jax import registry, tasks
from qstr_jax.learners import lanes
from qstr_jax.learners.problem import Problem

REGISTRY = registry.Registry('learner', 'learners')
Kind = TypeVar('Kind', bound=type)


class Learner(Protocol):
    """How a model is fitted: a frozen dataclass whose fields are its settings.

    A field made by `settings.traced` is a number that lanes differ in; all others are static and make programs of
    their own. Methods with a state work on lane batches: `_K` marks a leading axis of lanes.

    Attributes:
        name: as registered.
        max_checks: upper bound of the checks of a lane.
        max_samples: budget of a lane, in prompts.
        threshold: of the test loss.
    """

    name: ClassVar[str]
    max_samples: int
    threshold: float

    @property
    def max_checks(self) -> int: ...
    def bind(self, module: nn.Module, task: tasks.Task, sample_sizes: tuple[int, ...]) -> 'Learner':
        """The learner for one cell, with what follows from module, task and the sizes n of all its lanes."""

    def lane_settings(self) -> tuple[str, ...]:
        """Names of the traced settings that it looks at."""

    def ignored(self) -> tuple[str, ...]:
        """Names of its settings that the values of others make it ignore."""

    def init(self, lanes_K: Any, problem: Problem) -> tuple[Any, Any]:
        """Constants and the first state of a lane batch. A state has `params`, `outcome` and `checks`."""

    def check(self, state_K: Any, data_K: Any, lanes_K: Any, problem: Problem) -> Any:
        """The state one check later; lanes that are over stay as they are."""

    def report(self, state_K: Any, problem: Problem) -> dict[str, Any]:
        """Columns of the rows, arrays (k,), on the host."""

    def report_curves(self, state_K: Any, problem: Problem) -> list[dict[str, Any]]:
        """For each lane the columns of its curve, on the host."""

    def progress(self, state_K: Any, problem: Problem) -> dict[str, Any]:
        """`samples` and `train_loss` of the lane that is farthest, on the host."""

    def most_examples(self) -> int:
        """Examples that a lane trains on at most, with repetition."""


def register(name: str) -> Callable[[Kind], Kind]:
    """Decorator that registers a frozen dataclass as a learner; its fields are its settings.

    Args:
        name: what `--config.learners` calls it.

    Raises:
        ValueError: the name is taken, or the class is no dataclass.
    """

    def add(kind: Kind) -> Kind:
        kind.name = name
        REGISTRY.add(name, kind)
        return kind

    return add


def names() -> tuple[str, ...]:
    """Names of all learners."""
    return REGISTRY.names()


def lane(learner: Any, **values: Any) -> Any:
    """A lane of a learner, or a lane batch of arrays.

    Args:
        learner: whose lane.
        **values: `seed`, `task_seed` and the traced settings; those that the learner does not look at are left out.
    """
    kind = lanes.lane_type(tuple(learner.lane_settings()))
    return kind(**{name: value for name, value in values.items() if name in kind._fields})


@functools.partial(jax.jit, static_argnames='problem')
def init(lanes_K: Any, problem: Problem) -> tuple[Any, Any]:
    """Constants and the first state of a lane batch, in full float32.

    Args:
        lanes_K: of `make_lanes`, arrays (k,).
        problem: the cell's.
    """
    with jax.default_matmul_precision('highest'):
        return problem.learner.init(lanes_K, problem)


@functools.partial(jax.jit, static_argnames='problem', donate_argnames='state_K')
def advance(state_K: Any, data_K: Any, lanes_K: Any, num_checks: Any, problem: Problem) -> Any:
    """Runs a lane batch for up to `num_checks` checks, or until no lane runs any more.

    Args:
        state_K: donated.
        data_K, lanes_K: as `init` returns and takes them.
        num_checks: integer (), traced.
        problem: the cell's.
    """
    learner = problem.learner
    return lanes.run_checks(lambda state_K: learner.check(state_K, data_K, lanes_K, problem), state_K, num_checks)
