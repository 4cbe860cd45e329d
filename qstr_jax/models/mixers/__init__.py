"""What mixes tokens: one mixer a file, all in the same backbone, each an architecture of its name as well.

A mixer is causal unless it sees all tokens by itself; `bidirectional` runs it in both directions. 1STR asks for tokens
that stand later, so causal ones belong to causal tasks.
"""

from qstr_jax.models.mixers import (
    attention,
    deep_cell,
    deltanet,
    gated_deltanet,
    gla,
    gru,
    kda,
    linear_attention,
    long_conv,
    mamba2,
    mamba3,
    min_gru,
    mlp_mixer,
    mlstm,
    retnet,
    rg_lru,
    rwkv7,
    s5,
)
from qstr_jax.models.mixers.mixer import names, parsed, spec
from qstr_jax.models.mixers.registered import register

__all__ = [
    'attention',
    'deep_cell',
    'deltanet',
    'gated_deltanet',
    'gla',
    'gru',
    'kda',
    'linear_attention',
    'long_conv',
    'mamba2',
    'mamba3',
    'min_gru',
    'mlp_mixer',
    'mlstm',
    'names',
    'parsed',
    'register',
    'retnet',
    'rg_lru',
    'rwkv7',
    's5',
    'spec',
]
