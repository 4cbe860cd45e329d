"""Baselines that bound the field: linear in their parameters, fitted in closed form.

A baseline is a Linen module like the others, with one method more:
`closed_form(z_BxNxE, y_BxN, is_there_BxN, penalty, task_draw)` returns the parameters that minimise

    Σ (y − ŷ)² over the labels that are there  +  penalty · ‖vec Θ‖²,

of least norm where several do. The fixed-sample learners call it instead of taking steps.
"""

from typing import ClassVar

import jax
import jax.numpy as jnp
from flax import linen as nn


def retrieved(z_NxE, token_dim, sparsity):
    """The tokens that each position asks for, x_{t_i1}, …, x_{t_iq}: (N, q d).

    Reads t off the encodings: the key ω_j nearest to the query's ω_{t_il}. Exact where all encodings differ.
    """
    x_NxD, encodings = z_NxE[:, :token_dim], z_NxE[:, token_dim:]
    keys_NxE, *queries = jnp.split(encodings, sparsity + 1, axis=-1)
    indices_NxQ = jnp.stack([jnp.argmax(query_NxE @ keys_NxE.T, axis=-1) for query_NxE in queries], axis=-1)
    return x_NxD[indices_NxQ].reshape(z_NxE.shape[0], -1)


def _solve(gram_FxF, right_FxM, penalty):
    """(G + penalty I)^+ R for a positive semi-definite G, in the float type at hand."""
    sizes_F, vectors_FxF = jnp.linalg.eigh(gram_FxF)
    cut = 10 * gram_FxF.shape[0] * jnp.finfo(gram_FxF.dtype).eps * sizes_F[-1]
    inverse_F = jnp.where(sizes_F > cut, 1 / (sizes_F + penalty), 0.0)
    return vectors_FxF @ (inverse_F[:, None] * (vectors_FxF.T @ right_FxM))


class Zero(nn.Module):
    """ŷ = 0: the label's variance."""

    @nn.compact
    def __call__(self, z_NxE, position=None):
        """Zeros, (N,) or ()."""
        return jnp.zeros(z_NxE.shape[0] if position is None else (), z_NxE.dtype)

    def closed_form(self, z_BxNxE, y_BxN, is_there_BxN, penalty, task_draw):
        """Nothing to fit."""
        return {'params': {}}


class LeastSquares(nn.Module):
    """ŷ_i = ⟨w, vec(x_{t_i})⟩: least squares by a learner that knows t.

    For a linear link and x ~ N(0, I) it is also Bayes: given n point-wise labels the risk is 1 − n/(qd), 0 from
    n = qd on, the information-theoretic line.

    Attributes:
        token_dim, sparsity: d, q.
    """

    token_dim: int
    sparsity: int

    @nn.compact
    def __call__(self, z_NxE, position=None):
        """Predictions (N,) or ()."""
        w_F = self.param('w_F', nn.initializers.zeros, (self.sparsity * self.token_dim,))
        prediction_N = retrieved(z_NxE, self.token_dim, self.sparsity) @ w_F
        return prediction_N if position is None else prediction_N[position]

    def closed_form(self, z_BxNxE, y_BxN, is_there_BxN, penalty, task_draw):
        """w = (Σ φ φ^T + penalty I)^+ Σ φ y over the labels that are there."""
        phi_BxNxF = jax.vmap(lambda z_NxE: retrieved(z_NxE, self.token_dim, self.sparsity))(z_BxNxE)
        phi_BxNxF = phi_BxNxF * is_there_BxN[..., None]
        gram_FxF = jnp.einsum('bnf,bng->fg', phi_BxNxF, phi_BxNxF)
        right_F = jnp.einsum('bnf,bn->f', phi_BxNxF, y_BxN)
        return {'params': {'w_F': _solve(gram_FxF, right_F[:, None], penalty)[:, 0]}}


class Ridge(nn.Module):
    """ŷ = W vec(z) + b on the flattened prompt, by ridge regression (the constant is one more feature)."""

    has_penalty: ClassVar[bool] = True

    @nn.compact
    def __call__(self, z_NxE, position=None):
        """Predictions (N,) or ()."""
        w_FxN = self.param('w_FxN', nn.initializers.zeros, (z_NxE.size + 1, z_NxE.shape[0]))
        w = w_FxN if position is None else w_FxN[:, position]
        return jnp.append(z_NxE.ravel(), 1.0) @ w

    def closed_form(self, z_BxNxE, y_BxN, is_there_BxN, penalty, task_draw):
        """W = Z^T (Z Z^T + penalty I)^+ Y: in the space of examples, which is smaller than that of features."""
        num = z_BxNxE.shape[0]
        phi_BxF = jnp.concatenate([z_BxNxE.reshape(num, -1), jnp.ones((num, 1))], axis=1)
        gram_BxB = phi_BxF @ phi_BxF.T

        def dual(is_there_B, y_BxM):
            masked_BxB = gram_BxB * is_there_B[:, None] * is_there_B[None, :]
            return _solve(masked_BxB, y_BxM * is_there_B[:, None], penalty)

        def same():  # averaged risk: one system for all positions
            return dual(is_there_BxN[:, 0], y_BxN)

        def different():
            dual_NxBx1 = jax.lax.map(lambda column: dual(column[0], column[1][:, None]), (is_there_BxN.T, y_BxN.T))
            return dual_NxBx1[..., 0].T

        is_same = jnp.all(is_there_BxN == is_there_BxN[:, :1])
        return {'params': {'w_FxN': phi_BxF.T @ jax.lax.cond(is_same, same, different)}}
