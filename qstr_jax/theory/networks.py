"""What all networks of the proofs share: the record of one, what they need of the encodings and tokens, their norms."""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn
from scipy.spatial import distance

from qstr_jax import tasks
from qstr_jax.tasks import links
from qstr_jax.theory.sparse_task import SparseTask


class Construction(NamedTuple):
    """A network of a proof."""

    module: nn.Module
    params: dict  # parameters as `module.init` would return them, {'params': …}
    norms: dict[str, float]  # sizes of the weights, by name
    bounds: dict[str, float]  # what is promised and for which tokens, by name


class Separation(NamedTuple):
    """How far apart N encodings are."""

    coherence: float  # the signed coherence c = max_{i≠j} ⟨ω_i, ω_j⟩
    distance: float  # δ = min_{i≠j} ‖ω_i − ω_j‖₁


class TwoLayerArrays(NamedTuple):
    """A link's two-layer form (a_g, W_g, b_g) in float64."""

    a_M: np.ndarray
    W_MxV: np.ndarray
    b_M: np.ndarray
    error: float  # sup |g − net| for ‖x_j‖ ≤ the radius it was built for


def separation(omega_NxE: jax.Array | np.ndarray) -> Separation:
    """How far apart encodings are."""
    omega_NxE = np.asarray(omega_NxE, np.float64)
    if np.max(np.abs(np.sum(omega_NxE**2, axis=1) - 1)) > 1e-5:
        raise ValueError('encodings: every ω_i must have norm 1')
    pairs_P = distance.pdist(omega_NxE, 'cityblock')
    if np.min(pairs_P) == 0:
        i, j = np.argwhere(np.triu(distance.squareform(pairs_P) == 0, 1))[0]
        raise ValueError(f'encodings {i} and {j} are equal: draw them with distinct=True or a larger d_e')
    gram_NxN = omega_NxE @ omega_NxE.T
    coherence = float(np.max(gram_NxN - 3 * np.eye(len(gram_NxN))))
    return Separation(coherence=coherence, distance=float(np.min(pairs_P)))


def check_tokens(built: Construction, x_BxD: jax.Array | np.ndarray) -> None:
    """Checks that a construction was built for tokens of this size."""
    x_BxD = np.asarray(x_BxD)
    largest = {
        'token_bound': ('M', 'max |x_jk|', float(np.max(np.abs(x_BxD)))),
        'token_radius': ('radius', 'max ‖x_j‖', float(np.max(np.linalg.norm(x_BxD, axis=-1)))),
    }
    for name, (symbol, what, value) in largest.items():
        limit = built.bounds.get(name, math.inf)
        if value > limit * (1 + 1e-6):
            raise ValueError(f'{symbol}={limit:.6g}: below the data, {what} = {value:.6g}')


def as_params(tree: dict) -> dict:
    """Flax parameters {'params': …} in JAX's default precision."""
    dtype = jnp.result_type(float)
    # Put there as it is: `jnp.asarray` compiles a program for every shape.
    return {'params': jax.device_put(jax.tree.map(lambda leaf: np.asarray(leaf, dtype), tree))}


def square_norm(tree: Any) -> float:
    """‖vec Θ‖₂², summed on the host in float64."""
    return float(sum(np.sum(np.square(leaf, dtype=np.float64)) for leaf in jax.tree.leaves(tree)))


def two_layer_arrays(task: SparseTask, task_draw: tasks.Draw, radius: float, error: float) -> TwoLayerArrays:
    """The two-layer form of the task's link."""
    form = links.two_layer_form(task.link, task_draw.link, task.sparsity, task.token_dim, radius=radius, error=error)
    a_M, W_MxV, b_M = (np.asarray(leaf, np.float64) for leaf in form[:3])
    return TwoLayerArrays(a_M=a_M, W_MxV=W_MxV, b_M=b_M, error=form.error)


def feedforward_norms(a_M: np.ndarray, W_MxV: np.ndarray, b_M: np.ndarray) -> dict[str, float]:
    """Assumption 2's r_a = √m ‖a‖ and r_w = ‖(W, b)‖_F/√m, and the Lipschitz constant ‖a‖ ‖W‖_op."""
    root = math.sqrt(len(a_M))
    size_a, size_w = np.linalg.norm(a_M), math.hypot(np.linalg.norm(W_MxV), np.linalg.norm(b_M))
    return {
        'r_a': float(root * size_a),
        'r_w': float(size_w / root),
        'lipschitz': float(size_a * np.linalg.norm(W_MxV, ord=2)),
    }
