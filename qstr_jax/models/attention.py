"""The paper's multi-head attention, where every head sees the whole embedding (Section 3 of arXiv:2503.11272).

It has no mask; `mixers/attention.py` has the causal one.

Long prompts are handled a block of queries at a time. The attention weights of all queries, (H, N, N), are therefore
never in memory together: not in the forward pass, and not in the backward pass, which computes each block again.
"""

import math
from collections.abc import Callable

import einops
import jax
import jax.numpy as jnp
from flax import linen as nn

from qstr_jax.models import initializers

# Number of queries in a block. All prompts of the paper's experiments fit into one block.
QUERY_BLOCK = 256


def in_blocks(attend: Callable[[jax.Array], jax.Array], query_HxMxA: jax.Array) -> jax.Array:
    """Applies `attend` to the queries, in blocks of `QUERY_BLOCK` if there are more than that."""
    num_queries = query_HxMxA.shape[1]
    if num_queries <= QUERY_BLOCK:
        return attend(query_HxMxA)
    num_blocks = -(-num_queries // QUERY_BLOCK)
    padding = num_blocks * QUERY_BLOCK - num_queries
    padded_HxPxA = jnp.pad(query_HxMxA, ((0, 0), (0, padding), (0, 0)))
    blocks_KxHxCxA = einops.rearrange(padded_HxPxA, 'h (k c) a -> k h c a', k=num_blocks)
    heads_KxHxCxB = jax.lax.map(jax.checkpoint(attend), blocks_KxHxCxA)
    return einops.rearrange(heads_KxHxCxB, 'k h c b -> h (k c) b')[:, :num_queries]


def softmax_1(scores_HxMxN: jax.Array) -> jax.Array:
    """e^{s_j} / (1 + Σ_j e^{s_j}): one more score of 0, whose weight goes to no token."""
    return jax.nn.softmax(jnp.pad(scores_HxMxN, ((0, 0), (0, 0), (0, 1))))[..., :-1]


class _Attention(nn.Module):
    """The settings of both forms of attention, and how scores become outputs."""

    num_heads: int
    initializer: str = 'pytorch'
    softmax_1: bool = False

    def _attend(
        self,
        query_HxMxA: jax.Array,
        scores: Callable[[jax.Array], jax.Array],
        mix: Callable[[jax.Array], jax.Array],
        length: jax.Array | None,
    ) -> jax.Array:
        """Outputs `mix(softmax(scores(query)))`, (H, M, B). Sows the weights where intermediates are asked for."""

        def weights(query_HxMxA: jax.Array) -> jax.Array:
            scores_HxMxN = scores(query_HxMxA)
            if length is not None:
                is_there_N = jnp.arange(scores_HxMxN.shape[-1]) < length
                scores_HxMxN = jnp.where(is_there_N[None, None], scores_HxMxN, -jnp.inf)
            return (softmax_1 if self.softmax_1 else jax.nn.softmax)(scores_HxMxN)

        if self.is_mutable_collection('intermediates'):
            self.sow('intermediates', 'weights_HxMxN', weights(query_HxMxA))
        return in_blocks(lambda query_HxMxA: mix(weights(query_HxMxA)), query_HxMxA)


class MergedAttention(_Attention):
    """The theory's attention: one matrix W_QK = W_Q^T W_K per head; the next layer absorbs W_V.

        Attn_h(p)_i = Σ_j softmax_j(⟨z_i, W_QK^(h) z_j⟩) z_j ∈ R^{D_e}

    Attributes:
        num_heads: H.
        initializer: 'flax' or 'pytorch', see `initializers`.
        softmax_1: whether weights are exp(s_j)/(1 + Σ_k exp(s_k)), so that a head can look at nothing.
    """

    @nn.compact
    def __call__(self, query_MxE: jax.Array, z_NxE: jax.Array, length: jax.Array | None = None) -> jax.Array:
        """Attends from each query to all tokens."""
        width = z_NxE.shape[-1]
        if self.initializer == 'flax':
            init = nn.initializers.lecun_normal(in_axis=1, out_axis=2, batch_axis=(0,))
        else:
            init = initializers.uniform(math.sqrt(6 / (2 * width)))  # Xavier
        qk_HxExE = self.param('qk_HxExE', init, (self.num_heads, width, width))
        heads_HxMxE = self._attend(
            jnp.einsum('me,hef->hmf', query_MxE, qk_HxExE),
            scores=lambda query_HxMxE: jnp.einsum('hmf,nf->hmn', query_HxMxE, z_NxE),
            mix=lambda weights_HxMxN: jnp.einsum('hmn,ne->hme', weights_HxMxN, z_NxE),
            length=length,
        )
        return einops.rearrange(heads_HxMxE, 'h m e -> m (h e)')


class SeparateAttention(_Attention):
    """Standard attention: W_Q, W_K, W_V per head, each of size D_e; scores are divided by √D_e; output projection.

    Attributes:
        num_heads: H.
        initializer: 'flax' or 'pytorch', see `initializers`.
        softmax_1: as of `MergedAttention`.
    """

    @nn.compact
    def __call__(self, query_MxE: jax.Array, z_NxE: jax.Array, length: jax.Array | None = None) -> jax.Array:
        """The projected outputs of the heads, (M, D_e); arguments as in `MergedAttention`."""
        width = z_NxE.shape[-1]
        shape = (width, 3, self.num_heads, width)
        kernel_Ex3xHxA = self.param('in_kernel', initializers.attention_in(self.initializer, width), shape)
        bias_3xHxA = self.param('in_bias', nn.initializers.zeros, shape[1:])
        query_HxMxA = self._project(query_MxE, kernel_Ex3xHxA[:, 0], bias_3xHxA[0])
        are_few = query_MxE.shape[0] < z_NxE.shape[0] and not self.softmax_1
        if are_few:
            # Applying W_K to the queries and W_V to the outputs costs O(M D_e²) instead of O(N D_e²). The keys' bias
            # shifts all scores of a query by the same amount, which the softmax ignores, and its weights sum to 1, so
            # that the values' bias is added whole; neither holds for softmax-1.
            query_HxMxA = jnp.einsum('hma,eha->hme', query_HxMxA, kernel_Ex3xHxA[:, 1])
            key, value, tokens = z_NxE, z_NxE, 'na'
        else:
            key = self._project(z_NxE, kernel_Ex3xHxA[:, 1], bias_3xHxA[1])
            value = self._project(z_NxE, kernel_Ex3xHxA[:, 2], bias_3xHxA[2])
            tokens = 'hna'
        heads_HxMxA = self._attend(
            query_HxMxA,
            scores=lambda query_HxMxA: jnp.einsum(f'hma,{tokens}->hmn', query_HxMxA, key) / math.sqrt(width),
            mix=lambda weights_HxMxN: jnp.einsum(f'hmn,{tokens}->hma', weights_HxMxN, value),
            length=length,
        )
        if are_few:
            heads_HxMxA = jnp.einsum('hme,eha->hma', heads_HxMxA, kernel_Ex3xHxA[:, 2]) + bias_3xHxA[2][:, None, :]
        # PyTorch initialises the output projection like a Linear layer, except that its bias starts at zero.
        out_kernel = initializers.kernel(self.initializer, self.num_heads * width)
        return nn.Dense(width, kernel_init=out_kernel, name='out')(einops.rearrange(heads_HxMxA, 'h m a -> m (h a)'))

    @staticmethod
    def _project(z_NxE: jax.Array, kernel_ExHxA: jax.Array, bias_HxA: jax.Array) -> jax.Array:
        return jnp.einsum('ne,eha->hna', z_NxE, kernel_ExHxA) + bias_HxA[:, None, :]
