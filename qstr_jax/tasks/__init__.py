"""What is asked: prompts, labels, positional encodings, and the random streams that all of them come from."""

from qstr_jax.tasks.qstr import (
    INDICES,
    NAMES,
    TOKENS,
    Draw,
    DrawError,
    Prompt,
    Task,
    check_draw,
    draw,
    encode,
    examples,
    labels,
    positions,
    sample,
    samples,
    task_key,
)

__all__ = [
    'INDICES',
    'NAMES',
    'TOKENS',
    'Draw',
    'DrawError',
    'Prompt',
    'Task',
    'check_draw',
    'draw',
    'encode',
    'examples',
    'labels',
    'positions',
    'sample',
    'samples',
    'task_key',
]
