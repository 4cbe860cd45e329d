"""Gates as layers of ReLU networks, from which the recurrent networks of the proofs are built.

The distance of a gate is 0 where the gate is open and at least δ where it is shut, and for |x| ≤ M

    gate(x) = σ(x − (M/δ) distance) − σ(−x − (M/δ) distance)  is exactly x or 0.

Kernels have the shape (inputs, outputs), as in Flax.
"""

import numpy as np
from scipy.linalg import block_diag

from qstr_jax.theory.sparse_task import SparseTask

# Gates shut a little more firmly than they must, so that float32 rounding cannot open one.
SLACK = 1e-4


def signed(kernel: np.ndarray) -> np.ndarray:
    """The kernel of z ↦ (Kz, −Kz), whose ReLUs keep the positive and the negative part of Kz."""
    return np.concatenate([kernel, -kernel], axis=1)


def unsigned(size: int) -> np.ndarray:
    """The kernel of (σ(v), σ(−v)) ↦ v."""
    return np.concatenate([np.eye(size), -np.eye(size)])


def pre_activations(values_ixo: np.ndarray, distances_jxo: np.ndarray) -> np.ndarray:
    """The kernel from (σ(v), σ(−v), distances) to the pre-activations (v − distance, −v − distance) of gates."""
    v_2ixo = np.concatenate([values_ixo, -values_ixo])
    return np.block([[v_2ixo, -v_2ixo], [-distances_jxo, -distances_jxo]])


def own_kernels(task: SparseTask, gain: float) -> tuple[np.ndarray, np.ndarray]:
    """Two kernels, with ReLUs between them and no biases: gates that hold x_i in block l if t_l = i.

    The first computes (±x, ±s(ω_i − ω_{t_l})), the second the pre-activations of the gates, whose distance is
    s ‖ω_i − ω_{t_l}‖₁.
    """
    q, d, d_e = task.sparsity, task.token_dim, task.encoding_dim
    differences = np.concatenate([np.tile(np.eye(d_e), (1, q)), -np.eye(q * d_e)])
    first = block_diag(signed(np.eye(d)), signed(differences))
    both_signs = np.tile(gain * np.kron(np.eye(q), np.ones((d_e, d))), (2, 1))
    return first, pre_activations(np.tile(np.eye(d), (1, q)), both_signs)
