"""Long convolution of Hyena (Poli et al., arXiv:2302.10866): gates around a filter as long as the prompt."""

import jax
import jax.numpy as jnp
from flax import linen as nn

from qstr_jax.models import carry
from qstr_jax.models.mixers import diagonal
from qstr_jax.models.mixers.registered import register


@register('long_conv')
class LongConvolution(nn.Module):
    """y = W (x₂ ∘ (h ∗ u + d ∘ u)), u = x₁ ∘ v, where v, x₁, x₂ are linear maps of the tokens (Hyena of order 2).

    The filter is a network of the distance s between tokens, h(s) = W₃ sin(a ∘ W₂ sin(a ∘ W₁ e(s))) e^{−α s/N}, with
    e(s) = (s/N, cos, sin of 2π f s/N) and rates α per channel that start spread out as in Hyena.

    Attributes:
        filter_dim: hidden units of the filter's network.
        frequencies: f = 0 … this − 1.
        form: 'parallel', by the FFT, or 'recurrent', with all earlier u as the state; the results agree.
    """

    filter_dim: int = 16
    frequencies: int = 4
    form: diagonal.Form = 'parallel'

    @nn.compact
    def __call__(self, x_NxW: jax.Array) -> jax.Array:
        num_tokens, width = x_NxW.shape
        v_NxW, before_NxW, after_NxW = (nn.Dense(width, name=name)(x_NxW) for name in ('value', 'before', 'after'))
        u_NxW = before_NxW * v_NxW
        filter_NxW = self._filter(num_tokens, width)
        if self.form == 'recurrent':
            y_NxW = self._token_by_token(filter_NxW, u_NxW)
        else:
            spectrum = jnp.fft.rfft(u_NxW, 2 * num_tokens, axis=0) * jnp.fft.rfft(filter_NxW, 2 * num_tokens, axis=0)
            y_NxW = jnp.fft.irfft(spectrum, 2 * num_tokens, axis=0)[:num_tokens]
        skip_W = self.param('skip', nn.initializers.normal(1.0), (width,))
        return nn.Dense(width, name='out')(after_NxW * (y_NxW + skip_W[None] * u_NxW))

    def _filter(self, num_tokens: int, width: int) -> jax.Array:
        share_Nx1 = jnp.arange(num_tokens)[:, None] / num_tokens
        wave_NxF = 2 * jnp.pi * share_Nx1 * jnp.arange(self.frequencies)[None]
        layer = jnp.concatenate([share_Nx1, jnp.cos(wave_NxF), jnp.sin(wave_NxF)], axis=-1)
        frequency_F = self.param('frequency', nn.initializers.ones, (self.filter_dim,))
        for i in range(2):
            layer = jnp.sin(frequency_F[None] * nn.Dense(self.filter_dim, name=f'filter_{i}')(layer))
        rate_W = self.param('rate', _rates, (width,))
        return nn.Dense(width, use_bias=False, name='filter_out')(layer) * jnp.exp(-share_Nx1 * jnp.abs(rate_W)[None])

    def _token_by_token(self, filter_NxW: jax.Array, u_NxW: jax.Array) -> jax.Array:
        def step(past_NxW: jax.Array, u_W: jax.Array) -> tuple[jax.Array, jax.Array]:
            known_NxW = jnp.concatenate([u_W[None], past_NxW])
            return known_NxW[:-1], jnp.sum(filter_NxW * known_NxW, axis=0)

        return carry.scan(self, step, jnp.zeros_like(u_NxW[:-1]), u_NxW)

    def state_size(self, width: int, seq_len: int) -> int:
        """u of all earlier tokens."""
        return (seq_len - 1) * width


def _rates(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """Rates that bring a filter to 1 % after 30 % to 150 % of the prompt."""
    return jnp.linspace(jnp.log(1e-2) / 1.5, jnp.log(1e-2) / 0.3, shape[0])
