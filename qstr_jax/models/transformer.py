"""The paper's Transformer: one layer of attention, then one ReLU layer; no residual connection, no layer norm."""

import jax
import jax.numpy as jnp
from flax import linen as nn

from qstr_jax.models import attention, initializers
from qstr_jax.models.initializers import Position


class Transformer(nn.Module):
    """ŷ_i = a^T σ(W h_i + b) + c, where h_i are the concatenated heads at position i (Section 3, arXiv:2503.11272).

    Attributes:
        num_heads: H; Theorem 4 takes H = q.
        mlp_width: m, width of the ReLU layer.
        attention: 'separate' (W_Q, W_K, W_V and an output projection) or 'merged' (W_QK alone).
        output_bias: whether there is a c; the theory has none.
        initializer: 'flax' or 'pytorch', see `initializers`.
        num_outputs: C, rows of a.
        softmax_1: whether a head can look at nothing, see `attention.MergedAttention`.
    """

    num_heads: int = 1
    mlp_width: int = 100
    attention: str = 'separate'
    output_bias: bool = True
    initializer: str = 'pytorch'
    num_outputs: int = 1
    softmax_1: bool = False

    @nn.compact
    def __call__(self, z_NxE: jax.Array, position: Position = None, length: jax.Array | None = None) -> jax.Array:
        """Predictions (N,) or (N, C), or without N at a position; arguments as in `models.predict`.

        One position needs one query, which is O(N) work instead of O(N²).
        """
        query_MxE = z_NxE if position is None else z_NxE[jnp.atleast_1d(position)]
        form = {'merged': attention.MergedAttention, 'separate': attention.SeparateAttention}[self.attention]
        attend = form(self.num_heads, self.initializer, self.softmax_1, name='attention')
        heads_MxF = attend(query_MxE, z_NxE, length)
        hidden = initializers.dense(self.mlp_width, self.initializer, heads_MxF.shape[-1], name='hidden')
        out = initializers.dense(
            self.num_outputs, self.initializer, self.mlp_width, name='out', use_bias=self.output_bias
        )
        prediction_M = initializers.squeezed(out(jax.nn.relu(hidden(heads_MxF))))
        return prediction_M if position is None else prediction_M[0]
