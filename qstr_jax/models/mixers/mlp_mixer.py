"""Token mixing of the MLP-Mixer (Tolstikhin et al., arXiv:2105.01601): a network over positions."""

import jax
import jax.numpy as jnp
from flax import linen as nn

from qstr_jax.models.mixers.registered import register


@register('mlp_mixer')
class MLPMixer(nn.Module):
    """y_c = W₂ GELU(W₁ x_c + b₁) + b₂ for each channel c, where x_c ∈ R^N are the channel's values at all positions.

    Weights belong to positions, so their number grows with N². If it is causal, W₁ and W₂ have no entries from later
    positions.

    Attributes:
        expansion: hidden units for each position.
        causal: whether a token sees no later ones; set by the backbone.
    """

    expansion: int = 2
    causal: bool = False

    @nn.compact
    def __call__(self, x_NxW: jax.Array, length: jax.Array | None = None) -> jax.Array:
        num_tokens = len(x_NxW)
        if length is not None:
            x_NxW = jnp.where(jnp.arange(num_tokens)[:, None] < length, x_NxW, 0.0)
        in_NxNxM = self._weights('in_kernel', num_tokens, nn.initializers.lecun_normal(in_axis=0, out_axis=(1, 2)))
        out_NxNxM = self._weights('out_kernel', num_tokens, nn.initializers.lecun_normal(in_axis=(0, 2), out_axis=1))
        in_bias_NxM = self.param('in_bias', nn.initializers.zeros, (num_tokens, self.expansion))
        out_bias_N = self.param('out_bias', nn.initializers.zeros, (num_tokens,))
        hidden_NxMxW = jax.nn.gelu(jnp.einsum('jim,jw->imw', in_NxNxM, x_NxW) + in_bias_NxM[..., None])
        return jnp.einsum('jim,jmw->iw', out_NxNxM, hidden_NxMxW) + out_bias_N[:, None]

    def _weights(self, name: str, num_tokens: int, init: nn.initializers.Initializer) -> jax.Array:
        """Weights from position j to position i, (N, N, M)."""
        kernel_NxNxM = self.param(name, init, (num_tokens, num_tokens, self.expansion))
        return kernel_NxNxM * jnp.triu(jnp.ones((num_tokens, num_tokens)))[..., None] if self.causal else kernel_NxNxM

    def state_size(self, width: int, seq_len: int) -> int:
        """All tokens."""
        return seq_len * width
