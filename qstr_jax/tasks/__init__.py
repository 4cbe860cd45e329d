"""Tasks: prompts, labels, positional encodings, and the random streams that they are drawn from."""

from qstr_jax.tasks import data
from qstr_jax.tasks.base import Base, Sequence
from qstr_jax.tasks.mqar import MQAR
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
    is_split,
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
    'MQAR',
    'QSTR',
    'TOKENS',
    'Base',
    'Draw',
    'DrawError',
    'Prompt',
    'Sequence',
    'SimpleQSTR',
    'Task',
    'build',
    'check_draw',
    'data',
    'draw',
    'encode',
    'examples',
    'is_split',
    'names',
    'positions',
    'register',
    'sample',
    'samples',
    'sibling',
    'task_key',
]
