"""Random streams: every random number is a function of (seed, stream, task) and of nothing else.

A key never depends on the model, the optimiser, the batching, the device or the order of work, so all architectures see
the same prompts and comparisons between them are paired. Every published result depends on the numbers below: changing
one changes all rows, and a test pins the keys that they give.
"""

import functools
import zlib
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from qstr_jax.settings import checks

# The position in this tuple is folded into the key. Append only.
STREAMS = (
    'task',  # link parameters and encodings
    'init',  # parameters of the model
    'train',  # training prompts
    'test',  # test prompts
    'validation',  # prompts that settings are chosen on
    'order',  # order of minibatches on a fixed sample
    'position',  # the j(i) of the point-wise risk (2.3)
)

# Pinned, since `rbg` keys give different numbers inside and outside vmap.
IMPLEMENTATION = 'threefry2x32'


def fingerprint(task: Any) -> int:
    """A 32-bit number of `task.stream_name`, which leaves out the encodings, and for qSTR the link.

    They are left out on purpose: two links see the same tokens and indices.
    """
    return zlib.crc32(task.stream_name.encode())


def stream_key(seed: Any, stream: str, task: Any) -> jax.Array:
    """The key of one stream."""
    checks.choice('stream', stream, STREAMS)
    key = jax.random.key(seed, impl=IMPLEMENTATION)
    key = jax.random.fold_in(key, STREAMS.index(stream))
    return jax.random.fold_in(key, fingerprint(task))


def stream_keys(sources: Mapping[str, tuple[Any, Any]]) -> dict[str, jax.Array]:
    """`stream_key` of several streams at once, which compiles several times faster than one after the other."""
    for stream in sources:
        checks.choice('stream', stream, STREAMS)
    seeds_S = jnp.stack([jnp.asarray(seed) for seed, _ in sources.values()])
    streams_S = jnp.array([STREAMS.index(stream) for stream in sources], jnp.uint32)
    tasks_S = jnp.array([fingerprint(task) for _, task in sources.values()], jnp.uint32)
    keys_S = jax.vmap(functools.partial(jax.random.key, impl=IMPLEMENTATION))(seeds_S)
    keys_S = jax.vmap(jax.random.fold_in)(jax.vmap(jax.random.fold_in)(keys_S, streams_S), tasks_S)
    return {stream: keys_S[number] for number, stream in enumerate(sources)}


def abstract_key() -> Any:
    """The shape of a key, to trace with: no device is started for it."""
    return jax.eval_shape(functools.partial(jax.random.key, impl=IMPLEMENTATION), 0)
