"""Matrix decompositions that a vmapped program may call on a CPU without waiting for itself.

JAX hands a batch of decompositions to XLA's threads and waits for them on one of those threads. A program that runs as
many batches at a time as there are threads, such as two on a machine of two cores, then waits for ever (seen with jax
0.10.2). A single decomposition runs where it is called, so on a CPU `vmap` goes through a batch one by one.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp


def _one_by_one_on_cpu(decompose: Callable[[jax.Array], Any], **others: Callable) -> Callable[[jax.Array], Any]:
    one_by_one = jax.custom_batching.sequential_vmap(decompose)
    return lambda w: jax.lax.platform_dependent(w, cpu=one_by_one, default=decompose, **others)


def _eigh_by_jacobi(w_AxA: jax.Array) -> tuple[jax.Array, jax.Array]:
    """By Jacobi's iteration, with which a ridge regression on 1024 prompts compiles for a TPU in 6 seconds of a core.
    With polar decompositions, JAX's own choice there, it takes more than 120.
    """
    vectors_AxA, sizes_A = jax.lax.linalg.eigh(w_AxA, implementation=jax.lax.linalg.EighImplementation.JACOBI)
    return sizes_A, vectors_AxA


def _svd_by_jacobi(w_AxB: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """By one polar decomposition W = P H and Jacobi's iteration on H = V^T diag(s) V, so that U = P V^T.

    JAX's own choice on a TPU decomposes H by polar decompositions again: 640 x 640 compiles there in 45 seconds of a
    core, this way in 19.
    """
    if w_AxB.shape[0] < w_AxB.shape[1]:
        v_BxR, sizes_R, u_RxA = _svd_by_jacobi(w_AxB.T)
        return u_RxA.T, sizes_R, v_BxR.T
    polar_AxB, square_BxB, _, _ = jax.lax.linalg.qdwh(w_AxB, is_hermitian=False)
    sizes_B, v_BxB = eigh(square_BxB)
    # Sorted in descending order; rounding may not take the zeros of a matrix without full rank below 0.
    sizes_B, v_BxB = jnp.maximum(sizes_B[::-1], 0), v_BxB[:, ::-1]
    return polar_AxB @ v_BxB, sizes_B, v_BxB.T


_svd = _one_by_one_on_cpu(lambda w_AxB: tuple(jnp.linalg.svd(w_AxB, full_matrices=False)), tpu=_svd_by_jacobi)
_eigh = _one_by_one_on_cpu(lambda w_AxA: tuple(jnp.linalg.eigh(w_AxA)), tpu=_eigh_by_jacobi)


def svd(w_AxB: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The thin singular value decomposition W = U diag(s) V; `jax.grad` through it is an error."""
    return _svd(w_AxB)


def eigh(w_AxA: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The eigenvalues and eigenvectors of a symmetric matrix; `jax.grad` through them is an error."""
    return _eigh(w_AxA)


def operator_norm(w_AxB: jax.Array) -> jax.Array:
    """‖W‖_op = uᵀ W v with the first singular vectors u and v, whose gradient is u vᵀ."""
    u_AxR, _, v_RxB = svd(jax.lax.stop_gradient(w_AxB))
    return u_AxR[:, 0] @ w_AxB @ v_RxB[0]
