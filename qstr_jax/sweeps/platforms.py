"""What is chosen by the platform of a device, in one table: lanes, loops, and what the compiler is asked for.

`learners.lanes` says how many lanes an accelerator tests or draws together, and `decompositions` how it finds
eigenvalues. None of it changes what a program computes, up to rounding. The number of lanes on a CPU was measured with
`experiments.lanes_per_batch`; on an H100, 64 lanes were measured to make 15 times the steps of one. All other choices
for accelerators follow from what their compilers say (`experiments.accelerators`).
"""

import dataclasses
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from qstr_jax.learners.problem import Problem
from qstr_jax.models import gated_cell

# LLVM's optimisation level; XLA's default is 3.
LEVEL = 'xla_backend_optimization_level'
# How long the compiler may look for a faster program, from −1 to 1; the default is 0.
EFFORT = 'exec_time_optimization_effort'


class Choices(NamedTuple):
    """The choices for one platform."""

    most_lanes: int  # of one program
    unroll: int  # most tokens of a gated cell whose loop bodies are joined, see `for_platform`
    test_chunk: int  # held-out prompts of a lane that are evaluated together
    init: Mapping[str, Any]  # compiler options of `init`
    advance: Mapping[str, Any]  # and of `advance`


TABLE = {
    # `init` runs once per batch, and compiling it took longer than compiling `advance`; level 2 halves the time. What
    # it draws is the same up to rounding.
    'cpu': Choices(most_lanes=1, unroll=gated_cell.UNROLL, test_chunk=500, init={LEVEL: 2}, advance={}),
    # A GPU launches kernels anew for each token of a loop, and fewer if tokens are joined. Figure 1a's GRU
    # at N = 12 then compiles in 20 seconds of a core instead of 13; Figure 1b's at N = 33 in 15 seconds in three parts
    # of eleven, in 35 all joined.
    'gpu': Choices(most_lanes=64, unroll=12, test_chunk=500, init={}, advance={}),
    # Each product in full float32 is six of bfloat16, and most of the compiler's time goes into scheduling them: a
    # training step of Figure 1a's Transformer at N = 12 (5 lanes) compiles in 27 seconds of a core, with the least
    # effort in 7. A GRU's step takes 25 seconds when its 12 tokens are joined, 5 as a loop.
    # Looking at the test prompts of 8 lanes of Theorem 6's FFN takes 3 seconds in chunks of 100, 8 in chunks of 500.
    'tpu': Choices(most_lanes=64, unroll=1, test_chunk=100, init={EFFORT: -1.0}, advance={EFFORT: -1.0}),
}


def of(platform: str) -> Choices:
    """The choices for a platform; an unknown one is treated as a GPU."""
    return TABLE.get(platform, TABLE['gpu'])


def for_platform(problem: Problem, platform: str) -> Problem:
    """A cell's static side with the loops and the chunks of test prompts that suit a platform.

    Tokens are joined in parts of equal size where possible: 33 tokens, at most 12 at once, become 11 + 11 + 11, since a
    last part of another length would be compiled beside the loop.
    """
    choices, seq_len = of(platform), problem.task.seq_len
    # Fewer prompts are one chunk anyway; a cell that stays the same may already be traced.
    is_cut = problem.learner.test_samples > choices.test_chunk
    if is_cut and choices.test_chunk != problem.test_chunk:
        problem = dataclasses.replace(problem, test_chunk=choices.test_chunk)
    if getattr(problem.module, 'unroll', choices.unroll) == choices.unroll:
        return problem
    unroll = -(-seq_len // -(-seq_len // choices.unroll))
    return dataclasses.replace(problem, module=problem.module.clone(unroll=unroll))


def options(platform: str, program: str) -> dict[str, Any] | None:
    """Compiler options of a program; None where there are none, or where the user sets the level in XLA_FLAGS."""
    found = {'init': of(platform).init, 'advance': of(platform).advance}[program]
    flags = os.environ.get('XLA_FLAGS', '')
    return {name: value for name, value in found.items() if name not in flags} or None
