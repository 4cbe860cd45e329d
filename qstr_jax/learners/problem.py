"""The static part of a cell: everything that its compiled programs depend on."""

import dataclasses
from typing import Any

from flax import linen as nn

from qstr_jax import tasks


@dataclasses.dataclass(frozen=True)
class Problem:
    """What all lanes of a cell share; hashable, so that jitted functions take it as a static argument.

    Attributes:
        task: the task of the training prompts.
        test_task: the task of the held-out prompts; has the same q, d, link and encodings.
        module: the model.
        learner: a `learners.Learner`, bound to module and task.
        test_chunk: held-out prompts of a lane that are evaluated together.
    """

    task: tasks.Task
    test_task: tasks.Task
    module: nn.Module
    learner: Any
    test_chunk: int = 500
