"""Initial weights: Flax's defaults ('flax'), or those of the published code, PyTorch's defaults ('pytorch')."""

import math
from collections.abc import Sequence
from typing import Any

import jax
from flax import linen as nn
from jax.nn.initializers import Initializer

# The argument `position` of a model: one index, or None for all positions.
Position = int | jax.Array | None


def uniform(limit: float) -> Initializer:
    """Initializer that draws from U(−limit, limit)."""

    def init(
        key: jax.Array, shape: Sequence[int], dtype: Any = jax.numpy.float32, out_sharding: Any = None
    ) -> jax.Array:
        return jax.random.uniform(key, shape, dtype, -limit, limit)

    return init


def kernel(scheme: str, fan_in: int, in_axis: int = -2, batch_axis: Sequence[int] = ()) -> Initializer:
    """Initializer of a dense layer's weights: LeCun normal ('flax') or U(±1/√fan_in) ('pytorch')."""
    if scheme == 'flax':
        return nn.initializers.lecun_normal(in_axis=in_axis, batch_axis=batch_axis)
    return uniform(1 / math.sqrt(fan_in))


def bias(scheme: str, fan_in: int) -> Initializer:
    """Initializer of a dense layer's biases: zero ('flax') or U(±1/√fan_in) ('pytorch')."""
    return nn.initializers.zeros if scheme == 'flax' else uniform(1 / math.sqrt(fan_in))


def dense(features: int, scheme: str, fan_in: int, name: str, use_bias: bool = True) -> nn.Dense:
    """`nn.Dense` with the initial weights of a scheme."""
    return nn.Dense(
        features,
        use_bias=use_bias,
        kernel_init=kernel(scheme, fan_in),
        bias_init=bias(scheme, fan_in),
        name=name,
    )


def squeezed(out_NxC: jax.Array) -> jax.Array:
    """C numbers at each position, (N, C); (N,) where C is 1."""
    return out_NxC[:, 0] if out_NxC.shape[-1] == 1 else out_NxC


def attention_in(scheme: str, embedding_dim: int) -> Initializer:
    """Initializer of attention's input projection, of shape (D_e, 3, H, D_e).

    LeCun normal ('flax'), or Xavier uniform on each head's stacked (3 D_e, D_e) matrix, U(±√(6/(4 D_e))) ('pytorch').
    """
    if scheme == 'flax':
        return nn.initializers.lecun_normal(in_axis=0, out_axis=3, batch_axis=(1, 2))
    return uniform(math.sqrt(6 / (4 * embedding_dim)))


def recurrent(scheme: str, width: int, gates: int) -> Initializer:
    """Initializer of hidden-to-hidden weights (2, d_h, gates · d_h): orthogonal per gate, or U(±1/√d_h)."""
    if scheme == 'pytorch':
        return uniform(1 / math.sqrt(width))

    def init(
        key: jax.Array, shape: Sequence[int], dtype: Any = jax.numpy.float32, out_sharding: Any = None
    ) -> jax.Array:
        directions = shape[0]
        keys = jax.random.split(key, (directions, gates))
        orthogonal = nn.initializers.orthogonal()
        blocks = jax.vmap(jax.vmap(lambda k: orthogonal(k, (width, width), dtype)))(keys)
        return blocks.transpose(0, 2, 1, 3).reshape(shape)

    return init
