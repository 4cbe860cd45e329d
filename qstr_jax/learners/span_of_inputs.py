"""The span of the training prompts, in which Theorem 6 keeps an FFN's first layer W.

'started'      W starts in the span; gradient descent, momentum and L-BFGS then stay there up to rounding.
'coordinates'  W^T = C V with V an orthonormal basis of the span; C is trained, by any optimiser.
"""

from typing import Any

import jax
import jax.numpy as jnp

from qstr_jax import decompositions

# The first layer of `models.Feedforward(form='theorem6')`, (N d, m).
LAYER = 'tokens'


def basis(x_BxV: jax.Array) -> jax.Array:
    """An orthonormal basis of the span of some rows."""
    _, sizes_R, v_RxV = decompositions.svd(x_BxV)
    tolerance = sizes_R[0] * max(x_BxV.shape) * jnp.finfo(x_BxV.dtype).eps
    return v_RxV * (sizes_R > tolerance)[:, None]


def _with_kernel(params: Any, kernel: jax.Array) -> Any:
    layers = {**params['params'], LAYER: {**params['params'][LAYER], 'kernel': kernel}}
    return {'params': layers}


def kernel(params: Any) -> jax.Array:
    """The first layer W^T, (N d, m), or its coordinates."""
    return params['params'][LAYER]['kernel']


def enter(params: Any, basis_RxV: jax.Array, span: str) -> Any:
    """The first parameters of a fit, with W in the span."""
    if span == 'free':
        return params
    coordinates_RxM = basis_RxV @ kernel(params)
    return _with_kernel(params, basis_RxV.T @ coordinates_RxM if span == 'started' else coordinates_RxM)


def expand(params: Any, basis_RxV: jax.Array, span: str) -> Any:
    """Parameters as the module has them."""
    return _with_kernel(params, basis_RxV.T @ kernel(params)) if span == 'coordinates' else params


def residual(params: Any, basis_RxV: jax.Array) -> jax.Array:
    """The distance ‖W (I − P_S)‖_F of W from the span S."""
    kernel_VxM = kernel(params)
    return jnp.linalg.norm(kernel_VxM - basis_RxV.T @ (basis_RxV @ kernel_VxM))


def masked(x_BxNxD: jax.Array, size: jax.Array) -> jax.Array:
    """The tokens of the first `size` prompts as rows, with zeros in all other rows."""
    x_BxV = x_BxNxD.reshape(x_BxNxD.shape[0], -1)
    return jnp.where(jnp.arange(x_BxV.shape[0])[:, None] < size, x_BxV, 0.0)
