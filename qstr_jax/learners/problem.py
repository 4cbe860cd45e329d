"""The static side of a cell: everything that shapes its compiled program."""

import dataclasses
from typing import Any

from flax import linen as nn

from qstr_jax import tasks


@dataclasses.dataclass(frozen=True)
class Problem:
    """What all lanes of a cell share; hashable, an argument of jitted functions that is not traced.

    Attributes:
        task: distribution of the training prompts.
        test_task: distribution of the test prompts; shares N, q, d, link and encodings with `task`.
        module: the model.
        learner: a `learners.Learner`, bound to module and task.
    """

    task: tasks.Task
    test_task: tasks.Task
    module: nn.Module
    learner: Any
