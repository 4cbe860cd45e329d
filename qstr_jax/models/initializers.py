"""Initial weights: Flax's defaults, and those of the published code (PyTorch's defaults)."""

import math

import jax
from flax import linen as nn

SCHEMES = ('flax', 'pytorch')


def check(scheme):
    """Raises ValueError for an unknown scheme."""
    if scheme not in SCHEMES:
        raise ValueError(f'initializer={scheme!r}: unknown, one of {", ".join(SCHEMES)}')


def uniform(limit):
    """U(−limit, limit)."""

    def init(key, shape, dtype=jax.numpy.float32):
        return jax.random.uniform(key, shape, dtype, -limit, limit)

    return init


def kernel(scheme, fan_in, in_axis=-2, batch_axis=()):
    """Weights of a dense layer: LeCun normal (flax) or U(±1/√fan_in) (pytorch)."""
    if scheme == 'flax':
        return nn.initializers.lecun_normal(in_axis=in_axis, batch_axis=batch_axis)
    return uniform(1 / math.sqrt(fan_in))


def bias(scheme, fan_in):
    """Biases of a dense layer: zero (flax) or U(±1/√fan_in) (pytorch)."""
    return nn.initializers.zeros if scheme == 'flax' else uniform(1 / math.sqrt(fan_in))


def dense(features, scheme, fan_in, name, use_bias=True):
    """`nn.Dense` with the scheme's weights; only PyTorch's biases need fan_in, the input's width."""
    return nn.Dense(
        features,
        use_bias=use_bias,
        kernel_init=kernel(scheme, fan_in),
        bias_init=bias(scheme, fan_in),
        name=name,
    )


def attention_in(scheme, embedding_dim):
    """In-projection of attention, shape (D_e, 3, H, D_e): LeCun normal, or Xavier uniform on the stacked
    (3 D_e, D_e) matrix of each head, U(±√(6/(4 D_e)))."""
    if scheme == 'flax':
        return nn.initializers.lecun_normal(in_axis=0, out_axis=3, batch_axis=(1, 2))
    return uniform(math.sqrt(6 / (4 * embedding_dim)))


def recurrent(scheme, width, gates):
    """Hidden-to-hidden weights (2, d_h, gates · d_h): orthogonal per gate, or U(±1/√d_h)."""
    if scheme == 'pytorch':
        return uniform(1 / math.sqrt(width))

    def init(key, shape, dtype=jax.numpy.float32):
        directions = shape[0]
        keys = jax.random.split(key, (directions, gates))
        orthogonal = nn.initializers.orthogonal()
        blocks = jax.vmap(jax.vmap(lambda k: orthogonal(k, (width, width), dtype)))(keys)
        return blocks.transpose(0, 2, 1, 3).reshape(shape)

    return init


def recurrent_input(scheme, width):
    """Input-to-hidden weights (2, D_e, gates · d_h): LeCun normal, or U(±1/√d_h) as PyTorch has it."""
    return kernel(scheme, width, in_axis=1, batch_axis=(0,))


def recurrent_bias(scheme, width):
    """Biases of a recurrent cell: zero, or U(±1/√d_h)."""
    return bias(scheme, width)
