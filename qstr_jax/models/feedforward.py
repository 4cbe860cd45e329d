"""Feedforward networks on the flattened prompt (Section 4 of the paper, arXiv:2503.11272)."""

import jax
import jax.numpy as jnp
from flax import linen as nn

from qstr_jax.models import initializers
from qstr_jax.models.initializers import Position


class Feedforward(nn.Module):
    """ReLU network with N outputs, in one of two forms.

    'flat', as published: p ↦ f(vec z), where all z_i are flattened into one vector.
    'theorem6': p ↦ f(T, W x). The first layer σ(W x + V enc(T) + b) reads the tokens through W alone, which is the
    parameter `tokens/kernel` of shape (N d, m_1).

    Attributes:
        widths: widths of the hidden layers; (N d q, 1000) as published.
        token_dim: d; the first d coordinates of z_i are x_i.
        form: 'flat' or 'theorem6'.
        initializer: 'flax' or 'pytorch', see `initializers`.
        num_outputs: C, numbers at each position.
    """

    widths: tuple[int, ...]
    token_dim: int
    form: str = 'flat'
    initializer: str = 'pytorch'
    num_outputs: int = 1

    @nn.compact
    def __call__(self, z_NxE: jax.Array, position: Position = None) -> jax.Array:
        """Predictions (N,) or (N, C), or without N at a position; arguments as in `models.predict`."""
        hidden = jax.nn.relu(self._first_layer(z_NxE))
        for i, width in enumerate(self.widths[1:], start=1):
            fan_in = self.widths[i - 1]
            layer = initializers.dense(width, self.initializer, fan_in, name=f'hidden_{i}')
            hidden = jax.nn.relu(layer(hidden))
        size = z_NxE.shape[0] * self.num_outputs
        out = initializers.dense(size, self.initializer, self.widths[-1], name='out')
        prediction_N = out(hidden)
        if self.num_outputs > 1:
            prediction_N = prediction_N.reshape(z_NxE.shape[0], self.num_outputs)
        return prediction_N if position is None else prediction_N[position]

    def _first_layer(self, z_NxE: jax.Array) -> jax.Array:
        """Pre-activations of the first hidden layer, (m_1,)."""
        width, scheme = self.widths[0], self.initializer
        if self.form == 'flat':
            return initializers.dense(width, scheme, z_NxE.size, name='hidden_0')(z_NxE.ravel())
        x, encoding = jnp.split(z_NxE, [self.token_dim], axis=-1)
        tokens = initializers.dense(width, scheme, z_NxE.size, name='tokens', use_bias=False)
        indices = initializers.dense(width, scheme, z_NxE.size, name='indices')
        return tokens(x.ravel()) + indices(encoding.ravel())
