"""Tasks: prompts, labels, positional encodings, and the random streams that they are drawn from."""

from qstr_jax.tasks.qstr import INDICES, QSTR, TOKENS, SimpleQSTR
from qstr_jax.tasks.task import (
    Draw,
    DrawError,
    Prompt,
    Task,
    build,
    check_draw,
    draw,
    encode,
    examples,
    names,
    positions,
    register,
    sample,
    samples,
    sibling,
    task_key,
)

__all__ = [
    'INDICES',
    'QSTR',
    'TOKENS',
    'Draw',
    'DrawError',
    'Prompt',
    'SimpleQSTR',
    'Task',
    'build',
    'check_draw',
    'draw',
    'encode',
    'examples',
    'names',
    'positions',
    'register',
    'sample',
    'samples',
    'sibling',
    'task_key',
]
