"""The span of the training prompts, in which Theorem 6 keeps an FFN's first layer.

'started'      W starts in the span; gradient descent, momentum and L-BFGS then stay there up to rounding.
'coordinates'  W^T = C V with V an orthonormal basis of the span; C is trained, by any optimiser.
"""

import jax.numpy as jnp

FORMS = ('free', 'started', 'coordinates')
# The first layer of `models.Feedforward(form='theorem6')`, (N d, m).
LAYER = 'tokens'


def basis(x_BxK):
    """Orthonormal rows V (min(n, K), K) that span the rows of x (n, K); rows beyond the rank are 0."""
    _, sizes_R, v_RxK = jnp.linalg.svd(x_BxK, full_matrices=False)
    tolerance = sizes_R[0] * max(x_BxK.shape) * jnp.finfo(x_BxK.dtype).eps
    return v_RxK * (sizes_R > tolerance)[:, None]


def _with_kernel(params, kernel):
    layers = {**params['params'], LAYER: {**params['params'][LAYER], 'kernel': kernel}}
    return {'params': layers}


def kernel(params):
    """W^T, (N d, m)."""
    return params['params'][LAYER]['kernel']


def enter(params, basis_RxK, form):
    """First parameters of a fit: W projected onto the span, or its coordinates."""
    if form == 'free':
        return params
    coordinates_RxM = basis_RxK @ kernel(params)
    return _with_kernel(params, basis_RxK.T @ coordinates_RxM if form == 'started' else coordinates_RxM)


def expand(params, basis_RxK, form):
    """Parameters as the module has them."""
    return _with_kernel(params, basis_RxK.T @ kernel(params)) if form == 'coordinates' else params


def residual(params, basis_RxK):
    """‖W (I − P_S)‖_F of parameters as the module has them."""
    kernel_KxM = kernel(params)
    return jnp.linalg.norm(kernel_KxM - basis_RxK.T @ (basis_RxK @ kernel_KxM))


def zeros(x_BxK):
    """A `basis` of the right shape, before there is one."""
    return jnp.zeros((min(x_BxK.shape), x_BxK.shape[1]))


def masked(x_BxNxD, size):
    """The first `size` prompts' tokens as rows (n_max, N d), the others 0."""
    x_BxK = x_BxNxD.reshape(x_BxNxD.shape[0], -1)
    return jnp.where(jnp.arange(x_BxK.shape[0])[:, None] < size, x_BxK, 0.0)
