"""Twisted teachers: Lemma 11's network, turned so that indices that no training prompt asks for point elsewhere.

The block α I of W_QK becomes α B with the orthogonal B that is nearest to ω_t → ω_t for asked t and ω_t → ω_{t'} for
the others, t' the next index that is not asked. The norm is the construction's. If d_e ≥ N, the training risk is about
0 and the test loss about twice the share of indices not asked: an ERM may fail, whatever the optimiser.

For the linear link and tokens N(0, I) both risks are means of ‖p_t − e_t‖², with p_t the attention weights of a query
that asks for t, so nothing is sampled but the indices.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from qstr_jax import tasks
from qstr_jax.theory import construction_norm
from qstr_jax.theory.sparse_task import SparseTask

# Indices that are drawn, as a multiple of N: each is asked for, except with probability N e^{−32}.
_MOST = 32


class Twisted(NamedTuple):
    """A twisted teacher."""

    block_ExE: np.ndarray  # B, orthogonal
    train_risk: float  # its error on the asked indices, averaged over tokens
    test_loss: float


def twist(omega_NxE: np.ndarray, asked_B: np.ndarray, sharpness: float) -> Twisted:
    """The twisted teacher of a training set."""
    omega_NxE = np.asarray(omega_NxE, np.float64)
    target_N = np.arange(len(omega_NxE))
    not_asked = np.setdiff1d(target_N, asked_B)
    target_N[not_asked] = np.roll(not_asked, 1)
    left_ExE, _, right_ExE = np.linalg.svd(omega_NxE.T @ omega_NxE[target_N])
    block_ExE = left_ExE @ right_ExE
    error_N = errors(block_ExE, omega_NxE, sharpness)
    return Twisted(block_ExE=block_ExE, train_risk=float(np.mean(error_N[asked_B])), test_loss=float(np.mean(error_N)))


def errors(block_ExE: np.ndarray, omega_NxE: np.ndarray, sharpness: float) -> np.ndarray:
    """E (ŷ − y)² = ‖p_t − e_t‖² of each index t, (N,), for the linear link with ‖u‖ = 1 and tokens N(0, I)."""
    scores_NxN = sharpness * omega_NxE @ block_ExE @ omega_NxE.T
    weights_NxN = np.exp(scores_NxN - scores_NxN.max(axis=1, keepdims=True))
    weights_NxN /= weights_NxN.sum(axis=1, keepdims=True)
    return np.sum((weights_NxN - np.eye(len(omega_NxE))) ** 2, axis=1)


def largest_sample(
    omega_NxE: np.ndarray, asked_B: np.ndarray, sharpness: float, *, threshold: float, tolerance: float
) -> int:
    """The largest n at which the twisted teacher is an ERM that fails; 0 if it fails at no n.

    It is one while its training risk is at most Lemma 11's on the same indices plus a tolerance, and its test loss at
    least the threshold. Training sets are nested, and only an n that is followed by a new index can be the largest.
    """
    # Places of the prompts that ask for an index which no earlier prompt asks for.
    firsts = np.sort(np.unique(asked_B, return_index=True)[1])
    straight_N = errors(np.eye(omega_NxE.shape[1]), np.asarray(omega_NxE, np.float64), sharpness)
    for n in firsts[:0:-1]:
        asked = asked_B[:n]
        found = twist(omega_NxE, asked, sharpness)
        if found.test_loss >= threshold and found.train_risk <= np.mean(straight_N[asked]) + tolerance:
            return int(n)
    return 0


def sharpness_of(task: SparseTask) -> float:
    """α s² of the network whose norm is the unit 'construction' of radii."""
    if task.sparsity != 1 or task.link.name != 'linear':
        raise ValueError(f'twisted teacher: needs the linear link and q = 1, not {task.link.name} and {task.sparsity}')
    return construction_norm.transformer(task).bounds['alpha'] * task.scale**2


def samples(
    task: SparseTask, seeds: Sequence[int], *, asked_per_prompt: int = 1, threshold: float = 0.05,
    tolerance: float = 1e-3,
) -> list[int]:  # fmt: skip
    """The largest number of prompts with which a twisted teacher is an ERM that fails, for each draw of encodings.

    A prompt asks for one index where the risk is point-wise and on simple-1STR, for N by the averaged risk on 1STR.
    """
    sharpness = sharpness_of(task)
    draws = jax.jit(jax.vmap(lambda seed: tasks.draw(tasks.task_key(seed, task), task)))(jnp.asarray(seeds))
    task.check_draw(draws.encodings.complete)
    found = []
    for seed, omega_NxE in zip(seeds, np.asarray(draws.encodings.omega_NxE, np.float64), strict=True):
        asked_B = np.random.default_rng(seed).integers(task.seq_len, size=_MOST * task.seq_len)
        n = largest_sample(omega_NxE, asked_B, sharpness, threshold=threshold, tolerance=tolerance)
        found.append(n // asked_per_prompt)
    return found
