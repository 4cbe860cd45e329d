"""Random streams: every random number is a function of (seed, stream, task) and of nothing else.

A key never depends on the model, the optimiser, the batching, the device or the order of work, so all
architectures see the same prompts and comparisons between them are paired. The numbers below are part of
every published result: changing one of them changes all rows, and a test pins what they give.
"""

import zlib

import jax

# The position in this tuple is folded into the key. Append only.
STREAMS = (
    'task',  # link parameters and encodings
    'init',  # parameters of the model
    'train',  # training prompts
    'test',  # test prompts
    'validation',  # prompts that hyperparameters are chosen on
    'order',  # order of minibatches on a fixed sample
    'position',  # the j(i) of the point-wise risk (2.3)
)

# Pinned, since `rbg` keys give other numbers under vmap than outside it.
IMPLEMENTATION = 'threefry2x32'


def fingerprint(task):
    """32-bit number of what shapes a prompt: the task's name, N, q and d.

    The link and the encodings are left out on purpose: two links see the same tokens and indices.
    """
    return zlib.crc32(task.stream_name.encode())


def stream_key(seed, stream, task):
    """Key of one stream.

    Args:
        seed: integer, may be traced.
        stream: one of `STREAMS`.
        task: a `qstr_jax.tasks.Task`.

    Returns:
        A typed threefry key; example i of the stream is drawn from `jax.random.fold_in(key, i)`.
    """
    if stream not in STREAMS:
        raise ValueError(f'unknown stream {stream!r}: one of {", ".join(STREAMS)}')
    key = jax.random.key(seed, impl=IMPLEMENTATION)
    key = jax.random.fold_in(key, STREAMS.index(stream))
    return jax.random.fold_in(key, fingerprint(task))
