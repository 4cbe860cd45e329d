"""Two-layer ReLU networks a^T σ(W x + b) with given weights, the form of a link in Assumption 2."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp


class TwoLayer(NamedTuple):
    """a_g^T σ(W_g vec(x) + b_g), with vec(x) = (x_1, …, x_q) ∈ R^{qd}.

    Attributes:
        a_M: output weights, (m_g,).
        W_MxV: input weights, (m_g, q d).
        b_M: biases, (m_g,).
        error: the largest |g − net| where all ‖x_j‖ are within the radius that it was built for; 0 if it is exact. The
            paper's ε_2NN is its square.
    """

    a_M: jax.Array
    W_MxV: jax.Array
    b_M: jax.Array
    error: float

    def __call__(self, x_QxD: jax.Array) -> jax.Array:
        """The network's value."""
        return self.a_M @ jax.nn.relu(self.W_MxV @ x_QxD.reshape(-1) + self.b_M)


def linear(weight_V: jax.Array) -> TwoLayer:
    """⟨w, vec(x)⟩ = σ(⟨w, vec(x)⟩) − σ(−⟨w, vec(x)⟩): two units, exact."""
    a_M = jnp.array([1.0, -1.0])
    return TwoLayer(a_M=a_M, W_MxV=jnp.stack([weight_V, -weight_V]), b_M=jnp.zeros(2), error=0.0)


def quadratic(directions_PxV: jax.Array, *, scale: float, constant: float, radius: float, error: float) -> TwoLayer:
    """scale · Σ_p ⟨v_p, vec(x)⟩² + constant, each square interpolated linearly between knots kh with |k| h ≤ radius.

    The chord of z² over a step h is above it by at most h²/4, so the sum over P directions is too large by at most
    P · scale · h²/4 = 2 · error. Lowering the constant by `error` turns this into ±error.
    """
    num_directions = directions_PxV.shape[0]
    step = math.sqrt(8 * error / (num_directions * scale))
    num_knots = math.ceil(radius / step)
    # The chord on [kh, (k+1)h] has slope (2k+1)h: σ(z) has weight h, and each later knot adds 2h. The same for −z.
    weight_per_knot = scale * step * jnp.where(jnp.arange(num_knots) == 0, 1.0, 2.0)
    knots = -step * jnp.arange(num_knots)
    signed_2PxV = jnp.concatenate([directions_PxV, -directions_PxV])
    W_MxV = jnp.repeat(signed_2PxV, num_knots, axis=0)
    a_M = jnp.tile(weight_per_knot, 2 * num_directions)
    b_M = jnp.tile(knots, 2 * num_directions)
    # One unit with zero weights and bias 1 carries the constant.
    a_M = jnp.append(a_M, constant - error)
    W_MxV = jnp.concatenate([W_MxV, jnp.zeros((1, W_MxV.shape[1]))])
    return TwoLayer(a_M=a_M, W_MxV=W_MxV, b_M=jnp.append(b_M, 1.0), error=error)


def block_rows(u_QxD: jax.Array) -> jax.Array:
    """The matrix whose row j computes ⟨u_j, x_j⟩ from vec(x)."""
    sparsity = u_QxD.shape[0]
    return jnp.einsum('qd,qr->qrd', u_QxD, jnp.eye(sparsity)).reshape(sparsity, -1)
