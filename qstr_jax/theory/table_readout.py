"""An FFN of Theorem 6 that is fitted to a stationary point: f(T, W x)_i = ⟨a_{t_i}, W x⟩, one row a_t for each index.

Its predictions are ⟨M_t, x⟩ with M = A W of rank ≤ m, so its population loss has a closed form, and f knows T exactly.
"""

from typing import NamedTuple

import numpy as np
from scipy import optimize


class Fitted(NamedTuple):
    """A fitted network."""

    w_MxV: np.ndarray  # W, the first layer
    a_NxM: np.ndarray  # the rows a_t of the read-out
    train_risk: float  # the mean squared error of the training labels
    residual: float  # ‖∇_W [risk + (λ/2)‖W‖²]‖ / ‖λ W‖; 0 at a stationary point

    def loss(self, u_D: np.ndarray) -> float:
        """The population loss for tokens N(0, I) and the linear link: the mean of ‖M_t − e_t ⊗ u‖² over t."""
        return float(np.mean(np.sum((self.a_NxM @ self.w_MxV - targets(len(self.a_NxM), u_D)) ** 2, axis=1)))

    def off_span(self, x_BxV: np.ndarray) -> float:
        """‖W (I − P)‖_F/‖W‖_F, with P the projection onto the span of the training prompts."""
        basis_VxR = np.linalg.svd(x_BxV.T, full_matrices=False)[0]
        outside = self.w_MxV - (self.w_MxV @ basis_VxR) @ basis_VxR.T
        return float(np.linalg.norm(outside) / np.linalg.norm(self.w_MxV))


def targets(seq_len: int, u_D: np.ndarray) -> np.ndarray:
    """The rows e_t ⊗ u, (N, N d): the best M."""
    return np.kron(np.eye(seq_len), np.asarray(u_D)[None])


def fit(
    x_BxV: np.ndarray, t_BxR: np.ndarray, u_D: np.ndarray, *, width: int, weight_decay: float, max_steps: int, seed: int
) -> Fitted:
    """A stationary point of risk + (λ/2)(‖W‖² + ‖A‖²) by L-BFGS, from a start outside the span of the prompts."""
    x_BxV, size = np.asarray(x_BxV, np.float64), x_BxV.shape[1]
    seq_len = size // len(u_D)
    # How often each prompt asks for each index; the label depends on the index alone.
    counts_BxN = np.stack([np.bincount(row, minlength=seq_len) for row in np.asarray(t_BxR)]).astype(np.float64)
    counts_BxN /= counts_BxN.sum()
    y_BxN = x_BxV.reshape(-1, seq_len, len(u_D)) @ np.asarray(u_D, np.float64)

    def split(flat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return flat[: width * size].reshape(width, size), flat[width * size :].reshape(seq_len, width)

    def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
        w_MxV, a_NxM = split(flat)
        hidden_BxM = x_BxV @ w_MxV.T
        error_BxN = hidden_BxM @ a_NxM.T - y_BxN
        slope_BxN = 2 * counts_BxN * error_BxN
        of_w = (slope_BxN @ a_NxM).T @ x_BxV + weight_decay * w_MxV
        of_a = slope_BxN.T @ hidden_BxM + weight_decay * a_NxM
        value = np.sum(counts_BxN * error_BxN**2) + weight_decay / 2 * np.sum(flat**2)
        return value, np.concatenate([of_w.ravel(), of_a.ravel()])

    start = np.random.default_rng(seed).normal(size=width * (size + seq_len)) * 0.3 / np.sqrt(size)
    limits = {'maxiter': max_steps, 'maxfun': 2 * max_steps, 'gtol': 1e-9, 'ftol': 1e-15, 'maxcor': 20}
    found = optimize.minimize(objective, start, jac=True, method='L-BFGS-B', options=limits)
    value, gradient = objective(found.x)
    w_MxV, a_NxM = split(found.x)
    residual = np.linalg.norm(gradient[: w_MxV.size]) / (weight_decay * np.linalg.norm(w_MxV))
    risk = float(value - weight_decay / 2 * np.sum(found.x**2))
    return Fitted(w_MxV=w_MxV, a_NxM=a_NxM, train_risk=risk, residual=float(residual))
