"""What mixes tokens: one mixer a file, all in the same backbone, each an architecture of its name as well.

A mixer is causal unless it sees all tokens by itself; `bidirectional` runs it in both directions. 1STR asks for tokens
that stand later, so causal ones belong to causal tasks.
"""

from qstr_jax.models.mixers import (
    attention,
    deltanet,
    gated_deltanet,
    gla,
    kda,
    linear_attention,
    mamba2,
    min_gru,
    mlstm,
    retnet,
    rg_lru,
    rwkv7,
)
from qstr_jax.models.mixers.mixer import names, parsed, scan, spec
from qstr_jax.models.mixers.registered import register

__all__ = [
    'attention',
    'deltanet',
    'gated_deltanet',
    'gla',
    'kda',
    'linear_attention',
    'mamba2',
    'min_gru',
    'mlstm',
    'names',
    'parsed',
    'register',
    'retnet',
    'rg_lru',
    'rwkv7',
    'scan',
    'spec',
]
