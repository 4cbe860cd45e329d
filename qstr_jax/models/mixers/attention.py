"""Softmax attention as a mixer: causal or of all tokens, in a window, with RoPE, with softmax-1."""

import math
from typing import ClassVar

import jax
import jax.numpy as jnp
from flax import linen as nn

from qstr_jax.models.attention import softmax_1
from qstr_jax.models.mixers.registered import register


@register('attention')
class Attention(nn.Module):
    """Multi-head softmax attention (Vaswani et al., arXiv:1706.03762), scores divided by √head_dim.

    Attributes:
        heads: H.
        head_dim: A, width of queries, keys and values; 0 is the width of the sequence, as in arXiv:2503.11272.
        window: how many tokens to either side a token sees; 0 is all.
        rope: rotates queries and keys by their positions (Su et al., arXiv:2104.09864), besides the encodings that
            prompts bring.
        softmax_1: adds 1 to the softmax's denominator, so that a token may attend to nothing.
        causal: whether a token sees no later ones; set by the backbone.
    """

    may_be_zero: ClassVar[tuple[str, ...]] = ('head_dim',)

    heads: int = 2
    head_dim: int = 16
    window: int = 0
    rope: bool = False
    softmax_1: bool = False
    causal: bool = False

    @nn.compact
    def __call__(self, x_NxW: jax.Array, length: jax.Array | None = None) -> jax.Array:
        num_tokens, width = x_NxW.shape
        head_dim = self.head_dim or width
        shape = (self.heads, head_dim)
        q, k, v = (nn.DenseGeneral(shape, name=name)(x_NxW) for name in ('query', 'key', 'value'))
        if self.rope:
            q, k = rotated(q), rotated(k)
        scores_HxNxN = jnp.einsum('iha,jha->hij', q, k) / math.sqrt(head_dim)
        scores_HxNxN = jnp.where(self._sees(num_tokens, length)[None], scores_HxNxN, -jnp.inf)
        weights_HxNxN = (softmax_1 if self.softmax_1 else jax.nn.softmax)(scores_HxNxN)
        o_NxHxA = jnp.einsum('hij,jha->iha', weights_HxNxN, v)
        return nn.DenseGeneral(width, axis=(-2, -1), name='out')(o_NxHxA)

    def _sees(self, num_tokens: int, length: jax.Array | None) -> jax.Array:
        """Whether token i sees token j, (N, N), by causality, window and length."""
        distance_NxN = jnp.arange(num_tokens)[:, None] - jnp.arange(num_tokens)[None, :]
        sees_NxN = distance_NxN >= 0 if self.causal else jnp.ones((num_tokens, num_tokens), bool)
        if self.window:
            sees_NxN &= jnp.abs(distance_NxN) <= self.window
        if length is None:
            return sees_NxN
        sees_NxN &= (jnp.arange(num_tokens) < length)[None]
        # With a window, padding may see no token, and a softmax over nothing is NaN; nobody reads outputs at padding.
        return sees_NxN | jnp.eye(num_tokens, dtype=bool) if self.window else sees_NxN

    def state_size(self, width: int, seq_len: int) -> int:
        """Keys and values of all tokens that a later one may see."""
        return 2 * self.heads * (self.head_dim or width) * min(self.window or seq_len, seq_len)


def rotated(x_NxHxA: jax.Array, first: jax.Array | int = 0) -> jax.Array:
    """RoPE: pair j of coordinates (j, j + A/2) of token i turns by i · 10000^{−2j/A}; i counts from `first`."""
    num_tokens, _, dim = x_NxHxA.shape
    if dim % 2:
        raise ValueError(f'head_dim={dim}: RoPE turns pairs of coordinates, so it must be even')
    angle = (first + jnp.arange(num_tokens))[:, None] * 10_000.0 ** (-jnp.arange(dim // 2) / (dim // 2))[None, :]
    cos, sin = jnp.cos(angle)[:, None, :], jnp.sin(angle)[:, None, :]
    first, second = jnp.split(x_NxHxA, 2, axis=-1)
    return jnp.concatenate([first * cos - second * sin, first * sin + second * cos], axis=-1)
