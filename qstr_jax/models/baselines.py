"""Simple predictors that are linear in their parameters and are fitted in closed form.

A baseline is a Linen module like the other models, with one more method:
`closed_form(z_BxNxE, y_BxN, is_there_BxN, penalty, task_draw)` returns the parameters that minimise

    Σ (y − ŷ)² over the observed labels  +  penalty · ‖vec Θ‖²,

and the ones of least norm if there are several. Learners on a fixed training set call it instead of taking steps.
"""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from flax import linen as nn

from qstr_jax import decompositions
from qstr_jax.models.initializers import Position


def retrieved(z_NxE: jax.Array, token_dim: int, sparsity: int) -> jax.Array:
    """The tokens that each position asks for, (x_{t_i1}, …, x_{t_iq}).

    Reads t off the encodings: t_il is the position whose ω_j has the largest inner product with the query's ω_{t_il}.
    This is exact if all encodings differ.
    """
    x_NxD, encodings = z_NxE[:, :token_dim], z_NxE[:, token_dim:]
    keys_NxE, *queries = jnp.split(encodings, sparsity + 1, axis=-1)
    indices_NxQ = jnp.stack([jnp.argmax(query_NxE @ keys_NxE.T, axis=-1) for query_NxE in queries], axis=-1)
    return x_NxD[indices_NxQ].reshape(z_NxE.shape[0], -1)


def _solve(gram_FxF: jax.Array, right_FxM: jax.Array, penalty: float | jax.Array) -> jax.Array:
    """(G + penalty I)^+ R for a positive semi-definite G, in G's precision; R is (F, M)."""
    sizes_F, vectors_FxF = decompositions.eigh(gram_FxF)
    cut = 10 * gram_FxF.shape[0] * jnp.finfo(gram_FxF.dtype).eps * sizes_F[-1]
    inverse_F = jnp.where(sizes_F > cut, 1 / (sizes_F + penalty), 0.0)
    return vectors_FxF @ (inverse_F[:, None] * (vectors_FxF.T @ right_FxM))


class Zero(nn.Module):
    """ŷ = 0. Its risk is the variance of the label; with C classes it is log C, since it calls all equally likely.

    Attributes:
        num_outputs: C, numbers at each position.
    """

    num_outputs: int = 1

    @nn.compact
    def __call__(self, z_NxE: jax.Array, position: Position = None) -> jax.Array:
        """Zeros (N,) or (N, C), or without N at a position; arguments as in `models.predict`."""
        shape = () if self.num_outputs == 1 else (self.num_outputs,)
        return jnp.zeros((z_NxE.shape[0], *shape) if position is None else shape, z_NxE.dtype)

    def closed_form(
        self, z_BxNxE: jax.Array, y_BxN: jax.Array, is_there_BxN: jax.Array, penalty: float | jax.Array, task_draw: Any
    ) -> dict:
        """No parameters. See `LeastSquares.closed_form` for the arguments."""
        return {'params': {}}


class LeastSquares(nn.Module):
    """ŷ_i = ⟨w, vec(x_{t_i})⟩: least squares by a learner that knows t.

    For a linear link and x ~ N(0, I) this is also Bayes' predictor: its risk given n point-wise labels is 1 − n/(qd),
    and 0 from n = qd on, the information-theoretic limit.

    Attributes:
        token_dim: d.
        sparsity: q.
    """

    token_dim: int
    sparsity: int

    @nn.compact
    def __call__(self, z_NxE: jax.Array, position: Position = None) -> jax.Array:
        """Predictions (N,), or () at a position; arguments as in `models.predict`."""
        w_F = self.param('w_F', nn.initializers.zeros, (self.sparsity * self.token_dim,))
        prediction_N = retrieved(z_NxE, self.token_dim, self.sparsity) @ w_F
        return prediction_N if position is None else prediction_N[position]

    def closed_form(
        self, z_BxNxE: jax.Array, y_BxN: jax.Array, is_there_BxN: jax.Array, penalty: float | jax.Array, task_draw: Any
    ) -> dict:
        """w = (Σ φ φ^T + penalty I)^+ Σ φ y, with sums over the observed labels and φ = vec(x_{t_i}).

        Args:
            z_BxNxE: encoded training prompts, (B, N, D_e).
            y_BxN: their labels, (B, N).
            is_there_BxN: 1 where a label is observed and 0 elsewhere, (B, N).
            penalty: factor of ‖vec Θ‖², at least 0.
            task_draw: the `tasks.Draw` of the prompts; not used here.

        Returns:
            The parameters, {'params': …}.
        """
        phi_BxNxF = jax.vmap(lambda z_NxE: retrieved(z_NxE, self.token_dim, self.sparsity))(z_BxNxE)
        phi_BxNxF = phi_BxNxF * is_there_BxN[..., None]
        gram_FxF = jnp.einsum('bnf,bng->fg', phi_BxNxF, phi_BxNxF)
        right_F = jnp.einsum('bnf,bn->f', phi_BxNxF, y_BxN)
        return {'params': {'w_F': _solve(gram_FxF, right_F[:, None], penalty)[:, 0]}}


class Ridge(nn.Module):
    """ŷ = W vec(z) + b on the flattened prompt, fitted by ridge regression; b is the weight of a constant feature."""

    has_penalty: ClassVar[bool] = True

    @nn.compact
    def __call__(self, z_NxE: jax.Array, position: Position = None) -> jax.Array:
        """Predictions (N,), or () at a position; arguments as in `models.predict`."""
        w_FxN = self.param('w_FxN', nn.initializers.zeros, (z_NxE.size + 1, z_NxE.shape[0]))
        w = w_FxN if position is None else w_FxN[:, position]
        return jnp.append(z_NxE.ravel(), 1.0) @ w

    def closed_form(
        self, z_BxNxE: jax.Array, y_BxN: jax.Array, is_there_BxN: jax.Array, penalty: float | jax.Array, task_draw: Any
    ) -> dict:
        """W = Z^T (Z Z^T + penalty I)^+ Y, solved in the space of prompts, which is smaller than that of features.

        See `LeastSquares.closed_form` for the arguments.
        """
        num = z_BxNxE.shape[0]
        phi_BxF = jnp.concatenate([z_BxNxE.reshape(num, -1), jnp.ones((num, 1))], axis=1)
        gram_BxB = phi_BxF @ phi_BxF.T

        def dual(is_there_B: jax.Array, y_BxM: jax.Array) -> jax.Array:
            masked_BxB = gram_BxB * is_there_B[:, None] * is_there_B[None, :]
            return _solve(masked_BxB, y_BxM * is_there_B[:, None], penalty)

        def same() -> jax.Array:  # averaged risk: one system for all positions
            return dual(is_there_BxN[:, 0], y_BxN)

        def different() -> jax.Array:
            dual_NxBx1 = jax.lax.map(lambda column: dual(column[0], column[1][:, None]), (is_there_BxN.T, y_BxN.T))
            return dual_NxBx1[..., 0].T

        is_same = jnp.all(is_there_BxN == is_there_BxN[:, :1])
        return {'params': {'w_FxN': phi_BxF.T @ jax.lax.cond(is_same, same, different)}}
