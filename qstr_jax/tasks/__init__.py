"""Tasks: prompts, labels, positional encodings, and the random streams that they are drawn from."""

from qstr_jax.tasks.base import Base, Sequence
from qstr_jax.tasks.causal_qstr import CausalQSTR
from qstr_jax.tasks.data import Flights, PointingDigits, WordHeads
from qstr_jax.tasks.hops import Hops
from qstr_jax.tasks.informative_token import InformativeToken
from qstr_jax.tasks.latent_index import LatentIndex
from qstr_jax.tasks.modular_sum import ModularSum
from qstr_jax.tasks.mqar import MQAR
from qstr_jax.tasks.noisy_keys import NoisyKeys
from qstr_jax.tasks.permutations import Permutations
from qstr_jax.tasks.qstr import INDICES, QSTR, TOKENS, SimpleQSTR
from qstr_jax.tasks.task import (
    Draw,
    DrawError,
    Prompt,
    Task,
    build,
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
from qstr_jax.tasks.varying_qstr import VaryingQSTR
from qstr_jax.tasks.weighted_qstr import WeightedQSTR

__all__ = [
    'INDICES', 'MQAR', 'QSTR', 'TOKENS', 'Base', 'CausalQSTR', 'Draw', 'DrawError', 'Flights', 'Hops',
    'InformativeToken', 'LatentIndex', 'ModularSum', 'NoisyKeys', 'Permutations', 'PointingDigits', 'Prompt',
    'Sequence', 'SimpleQSTR', 'Task', 'VaryingQSTR', 'WeightedQSTR', 'WordHeads', 'build', 'draw', 'encode',
    'examples', 'is_split', 'names', 'positions', 'register', 'sample', 'samples', 'sibling', 'task_key',
]  # fmt: skip
