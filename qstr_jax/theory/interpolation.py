"""The recurrent network that memorises n samples and learns nothing else (Theorem 9, Lemmas 36-38)."""

import math

import jax
import numpy as np

from qstr_jax import tasks
from qstr_jax.models import Recurrent
from qstr_jax.theory import networks, recurrences
from qstr_jax.theory.networks import Construction
from qstr_jax.theory.sparse_task import SparseTask

# Directions that are tried.
_TRIES = 64


def least_separation(num_samples: int) -> float:
    """Lemma 37's separation √π/(3n²)."""
    return math.sqrt(math.pi) / (3 * num_samples**2)


def separating_direction(key: jax.Array, tokens_BxD: np.ndarray) -> np.ndarray:
    """Lemma 37: the first of some uniform unit vectors v that separates all ⟨v, x^(i)⟩ by at least √π/(3n²).

    For independent Gaussian x^(i) each vector does so with probability at least 1/3.
    """
    tokens_BxD = np.asarray(tokens_BxD, np.float64)
    normal_TxD = np.asarray(jax.random.normal(key, (_TRIES, tokens_BxD.shape[1])), np.float64)
    v_TxD = normal_TxD / np.linalg.norm(normal_TxD, axis=1, keepdims=True)
    sorted_TxB = np.sort(v_TxD @ tokens_BxD.T, axis=1)
    gap_T = np.min(np.diff(sorted_TxB, axis=1), axis=1, initial=np.inf)
    good_T = gap_T >= least_separation(len(tokens_BxD))
    if not good_T.any():
        raise ValueError(
            f'no direction of {_TRIES} separates the tokens by √π/(3n²): largest smallest gap {max(gap_T):.3g}'
        )
    return v_TxD[np.argmax(good_T)]


def interpolate(z_B: np.ndarray, y_B: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lemma 38: the linear interpolant between sorted points as a ReLU network, Σ_k a_k σ(w_k z_i + b_k) = y_i.

    A constant unit holds the first value; for each interval, one unit that starts at its left end adds the change of
    slope.
    """
    z_B, y_B = np.asarray(z_B, np.float64), np.asarray(y_B, np.float64)
    order_B = np.argsort(z_B)
    z_B, y_B = z_B[order_B], y_B[order_B]
    if np.any(np.diff(z_B) == 0):
        raise ValueError('two samples have the same z: they cannot be interpolated')
    slopes = np.diff(y_B) / np.diff(z_B)
    a_B = np.concatenate([y_B[:1], np.diff(slopes, prepend=0.0)])
    w_B = np.concatenate([[0.0], np.ones(len(slopes))])
    b_B = np.concatenate([[1.0], -z_B[:-1]])
    return a_B, w_B, b_B


def rescale(a_B: np.ndarray, w_B: np.ndarray, b_B: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same function with |a_k| = ‖(w_k, b_k)‖ for each unit, which has the least norm by homogeneity."""
    size_B = np.hypot(w_B, b_B)
    factor_B = np.sqrt(np.abs(a_B) / size_B)
    safe_B = np.where(factor_B > 0, factor_B, 1.0)
    return a_B / safe_B, w_B * factor_B, b_B * factor_B


def memorising(key: jax.Array, prompts: tasks.Prompt, positions_B: jax.Array, task: SparseTask) -> Construction:
    """Theorem 9's memoriser: f_y(z) = Σ_k a_k σ(w_k ⟨v, x⟩ + b_k) fits the n values of the point-wise risk.

    States stay 0 (Θ→ = Θ← = 0, U = 0). Only the own token is read, so nothing is retrieved. By Lemmas 37 and 38 and
    homogeneity

        ‖Θ‖² = 2 Σ_k |a_k| ‖(w_k, b_k)‖ ≤ 2 ‖a‖ ‖(w, b)‖ = O(n³).

    The sum is the least ‖Θ‖² when each unit is rescaled by its own factor, the right side when all units share one
    factor, as in the paper.
    """
    num_samples = len(positions_B)
    at = np.arange(num_samples), np.asarray(positions_B)
    x_BxD, y_B = (np.asarray(leaf, np.float64)[at] for leaf in (prompts.x_NxD, prompts.y_N))
    if num_samples < 2:
        raise ValueError(f'n={num_samples}: needs n ≥ 2')
    v_D = separating_direction(key, x_BxD)
    z_B = x_BxD @ v_D
    raw = interpolate(z_B, y_B)
    module, params = _network(task, v_D, rescale(*raw))
    apart, square = float(np.min(np.diff(np.sort(z_B)))), networks.square_norm(params)
    size_a, size_w, size_b = map(np.linalg.norm, raw)
    norms = {
        'param_norm': math.sqrt(square),
        'square': square,
        'square_layerwise': 2 * float(size_a * np.hypot(size_w, size_b)),
        'separation': apart,
    }
    bounds = {'square': _square_bound(z_B, y_B, apart)}
    return Construction(module=module, params=params, norms=norms, bounds=bounds)


def _square_bound(z_B: np.ndarray, y_B: np.ndarray, apart: float) -> float:
    """Lemma 38: 2 ‖a‖ ‖(w, b)‖ ≤ 2 √(1 + 16/ε²) ‖y‖ √(‖z‖² + n), where ε separates the z.

    The changes of slope satisfy Σ_k (s_k − s_{k−1})² ≤ 4 Σ s_k² ≤ 4 Σ (y_{k+1} − y_k)²/ε² ≤ 16 ‖y‖²/ε², and the
    constant unit adds y_1².
    """
    size_a = math.sqrt(1 + 16 / apart**2) * np.linalg.norm(y_B)
    return float(2 * size_a * math.sqrt(np.sum(z_B**2) + len(z_B)))


def _network(
    task: SparseTask, v_D: np.ndarray, network: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> tuple[Recurrent, dict]:
    """Module and parameters of the RNN whose read-out is the network (a, w, b) of ⟨v, x⟩."""
    a_B, w_B, b_B = network
    width = len(a_B)
    kernel_IxB = np.zeros((2 * width + task.embedding_dim, width))
    kernel_IxB[2 * width : 2 * width + task.token_dim] = np.outer(v_D, w_B)
    cell = [np.zeros((task.embedding_dim, 1)), np.zeros((1, width))], np.zeros(1)
    module, params, _ = recurrences.build(width, cell, [(kernel_IxB, b_B), (a_B[:, None], None)], 1.0)
    return module, params
