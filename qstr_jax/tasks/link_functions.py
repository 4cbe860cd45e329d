"""The links that come with the package: how their parameters are drawn, their values and their two-layer forms.

For a link `name`, `links` registers up to three of them: `name_init`, `name_apply` and `name_two_layer`.
"""

import math

import jax
import jax.numpy as jnp

from qstr_jax.tasks import two_layer
from qstr_jax.tasks.two_layer import TwoLayer

Params = dict[str, jax.Array]
# Units of the link 'two_layer', m_g.
TWO_LAYER_WIDTH = 16


def unit_vectors(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """Independent vectors, uniform on the unit sphere."""
    normal = jax.random.normal(key, shape)
    return normal / jnp.linalg.norm(normal, axis=-1, keepdims=True)


# linear: ⟨u, vec(x)⟩ with u uniform on the unit sphere of R^{qd}; at q = 1 this is the paper's ⟨u, x_1⟩.


def linear_init(key: jax.Array, sparsity: int, token_dim: int) -> Params:
    """Draws u."""
    return {'u_V': unit_vectors(key, (sparsity * token_dim,))}


def linear_apply(params: Params, x_QxD: jax.Array) -> jax.Array:
    """⟨u, vec(x)⟩."""
    return jnp.sum(params['u_V'] * x_QxD.reshape(-1))


def linear_two_layer(params: Params, sparsity: int, token_dim: int, radius: float, error: float) -> TwoLayer:
    """Two units, exact."""
    return two_layer.linear(params['u_V'])


# mean: (1/q) Σ_j ⟨u, x_j⟩ with one shared u: the projection of a sparse average.


def mean_init(key: jax.Array, sparsity: int, token_dim: int) -> Params:
    """Draws u."""
    return {'u_D': unit_vectors(key, (token_dim,))}


def mean_apply(params: Params, x_QxD: jax.Array) -> jax.Array:
    """(1/q) Σ_j ⟨u, x_j⟩."""
    return jnp.mean(x_QxD @ params['u_D'])


def mean_two_layer(params: Params, sparsity: int, token_dim: int, radius: float, error: float) -> TwoLayer:
    """Two units, exact."""
    return two_layer.linear(jnp.tile(params['u_D'] / sparsity, sparsity))


# sum: Σ_j ⟨u_j, x_j⟩/√q. hermite2: (1/√q) Σ_j He2(⟨u_j, x_j⟩), He2(z) = (z² − 1)/√2.


def separate_init(key: jax.Array, sparsity: int, token_dim: int) -> Params:
    """Draws u_1, …, u_q, for the links sum and hermite2."""
    return {'u_QxD': unit_vectors(key, (sparsity, token_dim))}


def _projections(params: Params, x_QxD: jax.Array) -> jax.Array:
    return jnp.sum(params['u_QxD'] * x_QxD, axis=-1)


def sum_apply(params: Params, x_QxD: jax.Array) -> jax.Array:
    """Σ_j ⟨u_j, x_j⟩/√q."""
    return jnp.sum(_projections(params, x_QxD)) / math.sqrt(x_QxD.shape[0])


def sum_two_layer(params: Params, sparsity: int, token_dim: int, radius: float, error: float) -> TwoLayer:
    """Two units, exact."""
    return two_layer.linear((params['u_QxD'] / math.sqrt(sparsity)).reshape(-1))


def hermite2_apply(params: Params, x_QxD: jax.Array) -> jax.Array:
    """(1/√q) Σ_j He2(⟨u_j, x_j⟩)."""
    he2_Q = (_projections(params, x_QxD) ** 2 - 1) / math.sqrt(2)
    return jnp.sum(he2_Q) / math.sqrt(x_QxD.shape[0])


def hermite2_two_layer(params: Params, sparsity: int, token_dim: int, radius: float, error: float) -> TwoLayer:
    """Squares, interpolated between knots."""
    scale = 1 / math.sqrt(2 * sparsity)
    directions = two_layer.block_rows(params['u_QxD'])
    return two_layer.quadratic(directions, scale=scale, constant=-math.sqrt(sparsity / 2), radius=radius, error=error)


# norm2: (1/√(qd)) Σ_j (‖x_j‖² − d).


def norm2_init(key: jax.Array, sparsity: int, token_dim: int) -> Params:
    """No parameters: an empty dict."""
    return {}


def norm2_apply(params: Params, x_QxD: jax.Array) -> jax.Array:
    """(1/√(qd)) Σ_j (‖x_j‖² − d)."""
    return (jnp.sum(x_QxD**2) - x_QxD.size) / math.sqrt(x_QxD.size)


def norm2_two_layer(params: Params, sparsity: int, token_dim: int, radius: float, error: float) -> TwoLayer:
    """Squares of all coordinates, interpolated between knots."""
    size = sparsity * token_dim
    return two_layer.quadratic(
        jnp.eye(size), scale=1 / math.sqrt(size), constant=-math.sqrt(size), radius=radius, error=error
    )


# two_layer: a random two-layer ReLU network, with weights of Assumption 2's size.


def two_layer_init(key: jax.Array, sparsity: int, token_dim: int) -> Params:
    """Draws a, W and b."""
    key_a, key_w, key_b = jax.random.split(key, 3)
    return {
        'a_M': jax.random.normal(key_a, (TWO_LAYER_WIDTH,)) / math.sqrt(TWO_LAYER_WIDTH),
        'W_MxV': unit_vectors(key_w, (TWO_LAYER_WIDTH, sparsity * token_dim)),
        'b_M': jax.random.normal(key_b, (TWO_LAYER_WIDTH,)) / 2,
    }


def two_layer_apply(params: Params, x_QxD: jax.Array) -> jax.Array:
    """The network itself."""
    return TwoLayer(**params, error=0.0)(x_QxD)


def two_layer_two_layer(params: Params, sparsity: int, token_dim: int, radius: float, error: float) -> TwoLayer:
    """The network itself, exact."""
    return TwoLayer(**params, error=0.0)
