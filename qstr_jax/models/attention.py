"""Multi-head attention in which every head sees the whole embedding (PAPER.md, section 3).

Long prompts are attended to a block of queries at a time: the weights of all queries, (H, N, N), never exist together,
neither in the forward pass nor in the backward one, where each block is computed again.
"""

import math

import einops
import jax
import jax.numpy as jnp
from flax import linen as nn

from qstr_jax.models import initializers

FORMS = ('merged', 'separate')

# Queries whose weights exist together: all of the paper's prompts are one block.
QUERY_BLOCK = 256


def in_blocks(attend, query_HxMxA):
    """`attend(query_HxMxA)`, (H, M, B), in blocks of `QUERY_BLOCK` queries where there are more."""
    num_queries = query_HxMxA.shape[1]
    if num_queries <= QUERY_BLOCK:
        return attend(query_HxMxA)
    num_blocks = -(-num_queries // QUERY_BLOCK)
    padding = num_blocks * QUERY_BLOCK - num_queries
    padded_HxPxA = jnp.pad(query_HxMxA, ((0, 0), (0, padding), (0, 0)))
    blocks_KxHxCxA = einops.rearrange(padded_HxPxA, 'h (k c) a -> k h c a', k=num_blocks)
    heads_KxHxCxB = jax.lax.map(jax.checkpoint(attend), blocks_KxHxCxA)
    return einops.rearrange(heads_KxHxCxB, 'k h c b -> h (k c) b')[:, :num_queries]


class MergedAttention(nn.Module):
    """The theory's attention: one matrix W_QK = W_Q^T W_K per head, W_V absorbed by the next layer.

        Attn_h(p)_i = Σ_j softmax_j(⟨z_i, W_QK^(h) z_j⟩) z_j ∈ R^{D_e}

    Attributes:
        num_heads: H.
        initializer: see `initializers`.
    """

    num_heads: int
    initializer: str = 'pytorch'

    @nn.compact
    def __call__(self, query_MxE, z_NxE):
        """Heads of the queries, concatenated: (M, H D_e)."""
        width = z_NxE.shape[-1]
        if self.initializer == 'flax':
            init = nn.initializers.lecun_normal(in_axis=1, out_axis=2, batch_axis=(0,))
        else:
            init = initializers.uniform(math.sqrt(6 / (2 * width)))  # Xavier
        qk_HxExE = self.param('qk_HxExE', init, (self.num_heads, width, width))

        def weights(query_HxMxE):
            return jax.nn.softmax(jnp.einsum('hmf,nf->hmn', query_HxMxE, z_NxE), axis=-1)

        def attend(query_HxMxE):
            return jnp.einsum('hmn,ne->hme', weights(query_HxMxE), z_NxE)

        query_HxMxE = jnp.einsum('me,hef->hmf', query_MxE, qk_HxExE)
        if self.is_mutable_collection('intermediates'):
            self.sow('intermediates', 'weights_HxMxN', weights(query_HxMxE))
        heads_HxMxE = in_blocks(attend, query_HxMxE)
        return einops.rearrange(heads_HxMxE, 'h m e -> m (h e)')


class SeparateAttention(nn.Module):
    """Standard attention: W_Q, W_K, W_V per head of size D_e, scores times 1/√D_e, output projection.

    Attributes:
        num_heads: H.
        initializer: see `initializers`.
    """

    num_heads: int
    initializer: str = 'pytorch'

    @nn.compact
    def __call__(self, query_MxE, z_NxE):
        """Projected heads of the queries: (M, D_e)."""
        width = z_NxE.shape[-1]
        shape = (width, 3, self.num_heads, width)
        kernel_Ex3xHxA = self.param('in_kernel', initializers.attention_in(self.initializer, width), shape)
        bias_3xHxA = self.param('in_bias', nn.initializers.zeros, shape[1:])
        query_HxMxA = self._project(query_MxE, kernel_Ex3xHxA[:, 0], bias_3xHxA[0])
        are_few = query_MxE.shape[0] < z_NxE.shape[0]
        if are_few:
            # W_K goes to the queries and W_V to the heads, O(M D_e²) and not O(N D_e²). The bias of the keys shifts all
            # scores of a query alike, which softmax does not see.
            query_HxMxA = jnp.einsum('hma,eha->hme', query_HxMxA, kernel_Ex3xHxA[:, 1])
            key, value, tokens = z_NxE, z_NxE, 'na'
        else:
            key = self._project(z_NxE, kernel_Ex3xHxA[:, 1], bias_3xHxA[1])
            value = self._project(z_NxE, kernel_Ex3xHxA[:, 2], bias_3xHxA[2])
            tokens = 'hna'

        def weights(query_HxMxA):
            scores_HxMxN = jnp.einsum(f'hma,{tokens}->hmn', query_HxMxA, key) / math.sqrt(width)
            return jax.nn.softmax(scores_HxMxN, axis=-1)

        def attend(query_HxMxA):
            return jnp.einsum(f'hmn,{tokens}->hma', weights(query_HxMxA), value)

        if self.is_mutable_collection('intermediates'):
            self.sow('intermediates', 'weights_HxMxN', weights(query_HxMxA))
        heads_HxMxA = in_blocks(attend, query_HxMxA)
        if are_few:
            heads_HxMxA = jnp.einsum('hme,eha->hma', heads_HxMxA, kernel_Ex3xHxA[:, 2]) + bias_3xHxA[2][:, None, :]
        # PyTorch's out-projection: a Linear layer's weights, but no bias to start with.
        out_kernel = initializers.kernel(self.initializer, self.num_heads * width)
        return nn.Dense(width, kernel_init=out_kernel, name='out')(einops.rearrange(heads_HxMxA, 'h m a -> m (h a)'))

    @staticmethod
    def _project(z_NxE, kernel_ExHxA, bias_HxA):
        return jnp.einsum('ne,eha->hna', z_NxE, kernel_ExHxA) + bias_HxA[:, None, :]
