"""The paper's Transformer: one layer of attention, then one ReLU layer; no residual, no layer norm."""

import jax
import jax.numpy as jnp
from flax import linen as nn

from qstr_jax.models import attention, initializers


class Transformer(nn.Module):
    """ŷ_i = a^T σ(W h_i + b) + c, with h_i the concatenated heads at position i (PAPER.md, section 3).

    Attributes:
        num_heads: H; Theorem 4 takes H = q.
        mlp_width: m, width of the ReLU layer.
        attention: 'separate' (W_Q, W_K, W_V and an output projection) or 'merged' (W_QK alone).
        output_bias: whether c is there; the theory has none.
        initializer: 'flax' or 'pytorch'.
    """

    num_heads: int = 1
    mlp_width: int = 100
    attention: str = 'separate'
    output_bias: bool = True
    initializer: str = 'pytorch'

    @nn.compact
    def __call__(self, z_NxE, position=None):
        """Predictions at all positions, (N,), or at one, (): then one query is enough, O(N) work."""
        query_MxE = z_NxE if position is None else z_NxE[jnp.atleast_1d(position)]
        form = {'merged': attention.MergedAttention, 'separate': attention.SeparateAttention}
        attend = form[self.attention](self.num_heads, self.initializer, name='attention')
        heads_MxF = attend(query_MxE, z_NxE)
        hidden = initializers.dense(self.mlp_width, self.initializer, heads_MxF.shape[-1], name='hidden')
        out = initializers.dense(1, self.initializer, self.mlp_width, name='out', use_bias=self.output_bias)
        prediction_M = out(jax.nn.relu(hidden(heads_MxF)))[:, 0]
        return prediction_M if position is None else prediction_M[0]
