"""Matrix products of a training step, and how long this machine takes for them alone.

The least time of a step is that of its products, forward and backward, at their own shapes: a step's share of the
machine's matrix-product rate is that least time by the time it takes.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from experiments.benchmarks import timing


class Product(NamedTuple):
    """`count` products (batch, m, k) × (batch, k, n) of a step."""

    count: int
    batch: int
    m: int
    k: int
    n: int

    @property
    def flops(self):
        """Multiplications and additions."""
        return 2 * self.count * self.batch * self.m * self.k * self.n


def _dense(rows, fan_in, fan_out, is_first=False):
    """Forward, gradient by the weights and, but for a first layer, by the input."""
    forward = Product(1, 1, rows, fan_in, fan_out)
    by_weights = Product(1, 1, fan_in, rows, fan_out)
    by_input = Product(1, 1, rows, fan_out, fan_in)
    return [forward, by_weights] if is_first else [forward, by_weights, by_input]


def _transformer(protocol):
    width, heads, seq_len = protocol.embedding_dim, protocol.sparsity, protocol.seq_len
    rows, batch = protocol.batch_size * seq_len, protocol.batch_size * heads
    return [
        *_dense(rows, width, 3 * heads * width, is_first=True),
        Product(3, batch, seq_len, width, seq_len),  # scores; gradient by the weights of attention
        Product(1, batch, seq_len, seq_len, width),  # values, and their gradients below
        Product(3, batch, seq_len, seq_len, width),
        *_dense(rows, heads * width, width),
        *_dense(rows, width, protocol.mlp_width),
        *_dense(rows, protocol.mlp_width, 1),
    ]


def _rnn(protocol):
    width = protocol.rnn_width or 500 * protocol.sparsity
    rows, gates = protocol.batch_size * protocol.seq_len, 3 * width
    return [
        *2 * _dense(rows, protocol.embedding_dim, gates, is_first=True),
        Product(2 * protocol.seq_len, 1, protocol.batch_size, width, gates),
        Product(2 * protocol.seq_len, 1, protocol.batch_size, gates, width),
        Product(2, 1, width, rows, gates),
        *_dense(rows, 2 * width, 1),
    ]


def _ffn(protocol):
    first, second = protocol.ffn_widths or (protocol.seq_len * protocol.token_dim * protocol.sparsity, 1000)
    rows, seq_len = protocol.batch_size, protocol.seq_len
    return [
        *_dense(rows, seq_len * protocol.embedding_dim, first, is_first=True),
        *_dense(rows, first, second),
        *_dense(rows, second, seq_len),
    ]


def of(protocol):
    """Products of one training step of a `protocol.Protocol`."""
    return {'transformer': _transformer, 'rnn': _rnn, 'ffn': _ffn}[protocol.model](protocol)


# So many left factors in turn, but no more than these bytes: enough to hide the call, and no product is twice the same.
STACK = 16
STACK_BYTES = 2**27
# Of one timed call.
SECONDS = 0.05


@functools.partial(jax.jit, static_argnames='precision')
def _multiply(left_SxMxK, right_KxN, count, precision):
    """`count` sweeps over the stack; the sum keeps every product alive."""

    def one(total_MxN, left_MxK):
        return total_MxN + jnp.matmul(left_MxK, right_KxN, precision=precision), None

    zero_MxN = jnp.zeros((*left_SxMxK.shape[1:-1], right_KxN.shape[-1]))
    return jax.lax.fori_loop(0, count, lambda _, total: jax.lax.scan(one, total, left_SxMxK)[0], zero_MxN)


def _factors(product):
    """A stack of left factors and one right factor; an axis of size 1 for the batch would slow XLA down."""
    rng = np.random.default_rng(0)
    batch = () if product.batch == 1 else (product.batch,)
    size = max(1, min(STACK, STACK_BYTES // (4 * product.batch * product.m * product.k)))
    left = rng.standard_normal((size, *batch, product.m, product.k), np.float32)
    return left, rng.standard_normal((*batch, product.k, product.n), np.float32)


def _in_jax(left, right, precision):
    left, right = jnp.asarray(left), jnp.asarray(right)
    return lambda count: jax.block_until_ready(_multiply(left, right, count, precision))


def _in_torch(left, right, device):
    import torch

    left, right = torch.tensor(left, device=device), torch.tensor(right, device=device)

    def run(count):
        for _ in range(count):
            for one in left:
                torch.matmul(one, right)
        if device == 'cuda':
            torch.cuda.synchronize()

    return run


@functools.cache
def seconds(product, device, precision='highest', rounds=3):
    """Least seconds of one product of this shape, over both libraries and all rounds."""
    left, right = _factors(product._replace(count=1))
    runs = {'jax': _in_jax(left, right, precision), 'torch': _in_torch(left, right, device)}
    times = timing.alternate(runs, rounds, SECONDS)
    return min(time.low for time in times.values()) / len(left)


def least_seconds(protocol, device='cpu', precision='highest'):
    """Seconds of all products of a step, one after the other."""
    return sum(p.count * seconds(p._replace(count=1), device, precision) for p in of(protocol))


def flops(protocol):
    """Floating-point operations of all products of a step."""
    return sum(product.flops for product in of(protocol))
