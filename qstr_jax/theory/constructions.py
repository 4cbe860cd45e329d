"""The Transformers of the proofs as weights of `models.Transformer`: Lemma 11, and sparse averaging.

Constructions are deterministic. They are computed on the host in float64 from concrete arrays, and returned in JAX's
default precision: call them inside `jax.enable_x64(True)` to get float64 weights.
"""

import math

import numpy as np

from qstr_jax import tasks
from qstr_jax.models import Transformer
from qstr_jax.theory import networks
from qstr_jax.theory.networks import Construction
from qstr_jax.theory.sparse_task import SparseTask


def _coherence_for(task_draw: tasks.Draw, coherence: float | None) -> float:
    """The signed coherence that a bound uses: the caller's, which the encodings must meet, or else the measured one."""
    measured = networks.separation(task_draw.encodings.omega_NxE).coherence
    if coherence is None:
        return measured
    if not measured <= coherence < 1:
        raise ValueError(
            f'coherence={coherence}: must be below 1 and at least the max ⟨ω_i, ω_j⟩ = {measured:.3g} of the encodings'
        )
    return coherence


def _head_blocks(task: SparseTask, num_heads: int, block_HxQxExE: np.ndarray) -> np.ndarray:
    """W_QK (H, D_e, D_e) that is zero outside the blocks (query's ω_{t_l}, key's ω_j), which are given."""
    d, d_e = task.token_dim, task.encoding_dim
    qk_HxExE = np.zeros((num_heads, task.embedding_dim, task.embedding_dim))
    for head, blocks in enumerate(block_HxQxExE):
        for index, block_ExE in enumerate(blocks):
            row = d + (index + 1) * d_e
            qk_HxExE[head, row : row + d_e, d : d + d_e] = block_ExE
    return qk_HxExE


def _balanced_norm(keys_HxExR: np.ndarray) -> float:
    """Norm of all heads' W_Q and W_K if they are balanced: ‖W_Q‖_F² + ‖W_K‖_F² = 2 ‖W_Q^T W_K‖_nuclear.

    Only the columns of W_QK that are not zero are passed.
    """
    return math.sqrt(2 * sum(np.linalg.norm(w_ExR, ord='nuc') for w_ExR in keys_HxExR))


def _assemble(
    task: SparseTask, qk_HxExE: np.ndarray, a_M: np.ndarray, W_MxHxD: np.ndarray, b_M: np.ndarray
) -> tuple[Transformer, dict, dict[str, float]]:
    """Module, parameters and norms of a Transformer whose ReLU layer reads the first d coordinates of each head."""
    num_heads, width = len(qk_HxExE), len(a_M)
    kernel_MxHxE = np.zeros((width, num_heads, task.embedding_dim))
    kernel_MxHxE[:, : W_MxHxD.shape[1], : task.token_dim] = W_MxHxD
    module = Transformer(num_heads=num_heads, mlp_width=width, attention='merged', output_bias=False)
    params = networks.as_params(
        {
            'attention': {'qk_HxExE': qk_HxExE},
            'hidden': {'kernel': kernel_MxHxE.reshape(width, -1).T, 'bias': b_M},
            'out': {'kernel': a_M[:, None]},
        }
    )
    norms = {
        **networks.feedforward_norms(a_M, W_MxHxD.reshape(width, -1), b_M),
        'param_norm': math.sqrt(networks.square_norm(params)),
        'query_key_frobenius': float(np.max(np.linalg.norm(qk_HxExE, axis=(1, 2)))),
        'query_key_two_one': float(np.max(np.sum(np.linalg.norm(qk_HxExE, axis=1), axis=1))),
        'query_key_balanced': _balanced_norm(qk_HxExE[:, :, task.token_dim :][:, :, : task.encoding_dim]),
    }
    return module, params, norms


def _sharpness(largest_error: float, error: float, gap: float) -> float:
    """The least α ≥ 0 with largest_error · e^{−α gap} ≤ error."""
    return max(0.0, math.log(largest_error / error)) / gap if largest_error > 0 else 0.0


def _bounds(alpha: float, off_mass: float, output: float, radius: float, **more: float) -> dict[str, float]:
    """The bounds of a construction; output is that of |ŷ − y|."""
    bounds = {'alpha': alpha, 'off_mass': off_mass, 'output': output, 'squared_error': output**2}
    return {**bounds, **more, 'token_radius': radius}


def transformer(
    task: SparseTask,
    task_draw: tasks.Draw,
    radius: float,
    error: float = 0.1,
    *,
    alpha: float | None = None,
    num_heads: int | None = None,
    coherence: float | None = None,
) -> Construction:
    """Lemma 11, (A.2): head h finds x_{t_ih}, and the feedforward layer is the link's two-layer form.

    W_QK^(h) pairs the query's ω_{t_ih} with the key's ω_j by α I. The score is then α s² ⟨ω_{t_ih}, ω_j⟩ with
    s² = d/q for scaled and 1 for unscaled encodings. With c = max_{i≠j} ⟨ω_i, ω_j⟩ < 1 the attention mass off the right
    token is μ ≤ (N−1) e^{−α s² (1−c)}, a head errs by at most 2 r_x μ, and if all ‖x_j‖ ≤ r_x

        |ŷ_i − y_i| ≤ η_g + 2 L √q r_x μ,   L = ‖a_g‖ ‖W_g‖_op,   η_g = sup error of the two-layer form.

    α = log(2 L √q r_x (N−1)/η) / (s² (1−c)) makes the second term η. The paper uses c = 1/2, r_a r_w for L, N for
    N − 1, and η_g = η = √ε_2NN, which gives 2√ε_2NN.
    """
    q = task.sparsity
    num_heads = q if num_heads is None else num_heads
    if num_heads < q:
        raise ValueError(f'num_heads={num_heads}: the construction needs one head per index, H ≥ q = {q}')
    form = networks.two_layer_arrays(task, task_draw, radius, error)
    coherence = _coherence_for(task_draw, coherence)
    gap = task.scale**2 * (1 - coherence)
    leak = 2 * networks.feedforward_norms(*form[:3])['lipschitz'] * math.sqrt(q) * radius
    if alpha is None:
        alpha = _sharpness(leak * (task.seq_len - 1), error, gap)
    identity_ExE = alpha * np.eye(task.encoding_dim)
    identity_QxQxExE = np.eye(q)[:, :, None, None] * identity_ExE[None, None]
    qk_HxExE = _head_blocks(task, num_heads, identity_QxQxExE)
    W_MxHxD = form.W_MxV.reshape(len(form.a_M), q, task.token_dim)
    module, params, norms = _assemble(task, qk_HxExE, form.a_M, W_MxHxD, form.b_M)
    off_mass = min(1.0, (task.seq_len - 1) * math.exp(-alpha * gap))
    output = form.error + leak * off_mass
    bounds = _bounds(alpha, off_mass, output, radius, coherence=coherence)
    return Construction(module=module, params=params, norms=norms, bounds=bounds)


def paper_alpha(task: SparseTask, task_draw: tasks.Draw, radius: float, error: float = 0.1) -> float:
    """Lemma 11's α = (2/s²) log(2 r_a r_w √q r_x N/√ε_2NN), for coherence ≤ 1/2."""
    norms = networks.feedforward_norms(*networks.two_layer_arrays(task, task_draw, radius, error)[:3])
    leak = 2 * norms['r_a'] * norms['r_w'] * math.sqrt(task.sparsity) * radius
    return _sharpness(leak * task.seq_len, error, task.scale**2 / 2)


def sparse_average(task: SparseTask, task_draw: tasks.Draw, radius: float, error: float = 0.1) -> Construction:
    """Sparse averaging with one head, for the link `mean` (the remark after Proposition 3).

    All q blocks of W_QK are α G with G = Ω^+ (Ω^+)^T/s², so that s² ⟨ω_i, G ω_j⟩ = 1[i = j]. The scores are then α on
    the q relevant tokens and 0 elsewhere, the head is their mean up to the mass elsewhere, and if all ‖x_j‖ ≤ r_x

        |ŷ_i − y_i| ≤ 2 r_x μ,   μ = (N − q)/(q e^α + N − q) ≤ (N/q − 1) e^{−α}.

    The indices t_i1, …, t_iq must differ: a score that is linear in the encodings gives a token that is named twice
    the weight e^{2α} instead of 2 e^α. The rows of Ω must be linearly independent, d_e ≥ N.
    """
    if task.link.name != 'mean':
        raise ValueError(f"link={task.link.name!r}: one head can only average, so the link must be 'mean'")
    others = task.seq_len - task.sparsity
    alpha = _sharpness(2 * radius * others / task.sparsity, error, 1.0)
    qk_1xExE = _averaging_head(task, task_draw, alpha)
    u_D = np.asarray(task_draw.link['u_D'], np.float64)
    W_2x1xD = np.stack([u_D, -u_D])[:, None, :]
    module, params, norms = _assemble(task, qk_1xExE, np.array([1.0, -1.0]), W_2x1xD, np.zeros(2))
    off_mass = others / (task.sparsity * math.exp(alpha) + others)
    bounds = _bounds(alpha, off_mass, 2 * radius * off_mass, radius)
    return Construction(module=module, params=params, norms=norms, bounds=bounds)


def _averaging_head(task: SparseTask, task_draw: tasks.Draw, alpha: float) -> np.ndarray:
    """W_QK (1, D_e, D_e) whose q blocks are α G, see `sparse_average`."""
    omega_NxE = np.asarray(task_draw.encodings.omega_NxE, np.float64)
    if np.linalg.matrix_rank(omega_NxE, tol=1e-4) < task.seq_len:
        raise ValueError(f'encodings: one head needs {task.seq_len} linearly independent ones (d_e ≥ N)')
    dual_ExN = np.linalg.pinv(omega_NxE)
    block_ExE = alpha * dual_ExN @ dual_ExN.T / task.scale**2
    return _head_blocks(task, 1, np.tile(block_ExE, (1, task.sparsity, 1, 1)))
