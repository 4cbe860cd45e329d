"""The Transformers of the proofs as weights of `models.Transformer` (Lemma 11, sparse averaging).

Constructions are computed on the host in float64, from concrete numbers, and handed over in jax's default
precision: call them inside `jax.enable_x64(True)` for float64 weights. Nothing here is random.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.spatial import distance

from qstr_jax.models import Transformer
from qstr_jax.tasks import links


class Construction(NamedTuple):
    """A network of a proof.

    Attributes:
        module: the Linen module that the weights fit.
        params: what `module.init` would return, {'params': …}.
        norms: name → number; sizes of the weights.
        bounds: name → number; what is promised, and for which tokens.
    """

    module: Any
    params: dict
    norms: dict[str, float]
    bounds: dict[str, float]


class Separation(NamedTuple):
    """How far apart N encodings are: signed coherence c = max_{i≠j} ⟨ω_i, ω_j⟩, δ = min_{i≠j} ‖ω_i − ω_j‖₁."""

    coherence: float
    distance: float


def separation(omega_NxE):
    """`Separation` of unit vectors ω, (N, d_e).

    Raises:
        ValueError: two encodings are equal, or one is not a unit vector.
    """
    omega_NxE = np.asarray(omega_NxE, np.float64)
    if np.max(np.abs(np.sum(omega_NxE**2, axis=1) - 1)) > 1e-5:
        raise ValueError('encodings: every ω_i must have norm 1')
    pairs_P = distance.pdist(omega_NxE, 'cityblock')
    if np.min(pairs_P) == 0:
        i, j = np.argwhere(np.triu(distance.squareform(pairs_P) == 0, 1))[0]
        raise ValueError(f'encodings {i} and {j} are equal: draw them with distinct=True or a larger d_e')
    gram_NxN = omega_NxE @ omega_NxE.T
    return Separation(float(np.max(gram_NxN - 3 * np.eye(len(gram_NxN)))), float(np.min(pairs_P)))


def check_tokens(built, x_BxD):
    """Raises ValueError when a token lies outside what a construction was built for; x is (..., d)."""
    x_BxD = np.asarray(x_BxD)
    largest = {
        'token_bound': ('M', 'max |x_jk|', float(np.max(np.abs(x_BxD)))),
        'token_radius': ('radius', 'max ‖x_j‖', float(np.max(np.linalg.norm(x_BxD, axis=-1)))),
    }
    for name, (symbol, what, value) in largest.items():
        limit = built.bounds.get(name, math.inf)
        if value > limit * (1 + 1e-6):
            raise ValueError(f'{symbol}={limit:.6g}: below the data, {what} = {value:.6g}')


def as_params(tree):
    """A tree of numpy arrays as Flax parameters in jax's default precision."""
    return {'params': jax.tree.map(jnp.asarray, tree)}


def square_norm(tree):
    """Sum of the squares of all leaves, a float, summed on the host in float64."""
    return float(sum(np.sum(np.square(leaf, dtype=np.float64)) for leaf in jax.tree.leaves(tree)))


def two_layer_arrays(task, task_draw, radius, error):
    """(a_g, W_g, b_g) of the task's link as float64 arrays, and its sup error on ‖x_j‖ ≤ radius."""
    form = links.two_layer_form(task.link, task_draw.link, task.sparsity, task.token_dim, radius, error)
    a_M, W_MxK, b_M = (np.asarray(leaf, np.float64) for leaf in form[:3])
    return a_M, W_MxK, b_M, form.error


def feedforward_norms(a_M, W_MxK, b_M):
    """Assumption 2's r_a = √m ‖a‖ and r_w = ‖(W, b)‖_F/√m, and the Lipschitz constant ‖a‖ ‖W‖_op."""
    root = math.sqrt(len(a_M))
    size_a, size_w = np.linalg.norm(a_M), math.hypot(np.linalg.norm(W_MxK), np.linalg.norm(b_M))
    return {
        'r_a': float(root * size_a),
        'r_w': float(size_w / root),
        'lipschitz': float(size_a * np.linalg.norm(W_MxK, ord=2)),
    }


def _coherence_for(task_draw, coherence):
    """The signed coherence that a bound uses: measured, or the caller's if the encodings meet it."""
    measured = separation(task_draw.encodings.omega_NxE).coherence
    if coherence is None:
        return measured
    if not measured <= coherence < 1:
        raise ValueError(
            f'coherence={coherence}: the encodings have max ⟨ω_i, ω_j⟩ = {measured:.3g}, and it must be < 1'
        )
    return coherence


def _head_blocks(task, num_heads, block_HxQxExE):
    """W_QK (H, D_e, D_e) of zeros but for the blocks (query's ω_{t_l}, key's ω_j)."""
    d, d_e = task.token_dim, task.encoding_dim
    qk_HxExE = np.zeros((num_heads, task.embedding_dim, task.embedding_dim))
    for head, blocks in enumerate(block_HxQxExE):
        for index, block_ExE in enumerate(blocks):
            row = d + (index + 1) * d_e
            qk_HxExE[head, row : row + d_e, d : d + d_e] = block_ExE
    return qk_HxExE


def _balanced_norm(keys_HxExK):
    """Norm of W_Q, W_K of all heads, balanced: ‖W_Q‖_F² + ‖W_K‖_F² = 2 ‖W_Q^T W_K‖_nuclear; non-zero columns."""
    return math.sqrt(2 * sum(np.linalg.norm(w_ExK, ord='nuc') for w_ExK in keys_HxExK))


def _assemble(task, qk_HxExE, a_M, W_MxHxD, b_M):
    """Module and parameters of a Transformer whose ReLU layer reads the first d coordinates of each head."""
    num_heads, width = len(qk_HxExE), len(a_M)
    kernel_MxHxE = np.zeros((width, num_heads, task.embedding_dim))
    kernel_MxHxE[:, : W_MxHxD.shape[1], : task.token_dim] = W_MxHxD
    module = Transformer(num_heads, width, attention='merged', output_bias=False)
    params = as_params(
        {
            'attention': {'qk_HxExE': qk_HxExE},
            'hidden': {'kernel': kernel_MxHxE.reshape(width, -1).T, 'bias': b_M},
            'out': {'kernel': a_M[:, None]},
        }
    )
    norms = {
        **feedforward_norms(a_M, W_MxHxD.reshape(width, -1), b_M),
        'param_norm': math.sqrt(square_norm(params)),
        'query_key_frobenius': float(np.max(np.linalg.norm(qk_HxExE, axis=(1, 2)))),
        'query_key_two_one': float(np.max(np.sum(np.linalg.norm(qk_HxExE, axis=1), axis=1))),
        'query_key_balanced': _balanced_norm(qk_HxExE[:, :, task.token_dim :][:, :, : task.encoding_dim]),
    }
    return module, params, norms


def _sharpness(largest_error, error, gap):
    """Least α with largest_error · e^{−α gap} ≤ error."""
    return max(0.0, math.log(largest_error / error)) / gap if largest_error > 0 else 0.0


def transformer(task, task_draw, radius, error=0.1, alpha=None, num_heads=None, coherence=None):
    """Lemma 11, (A.2): head h finds x_{t_ih}, the feedforward layer is the link's two-layer form.

    W_QK^(h) pairs the query's ω_{t_ih} with the key's ω_j by α I, so the score is α s² ⟨ω_{t_ih}, ω_j⟩ with
    s² = d/q for scaled and 1 for unscaled encodings. With c = max_{i≠j} ⟨ω_i, ω_j⟩ < 1 the mass off the right
    token is μ ≤ (N−1) e^{−α s² (1−c)}, a head errs by ≤ 2 r_x μ, and for all ‖x_j‖ ≤ r_x

        |ŷ_i − y_i| ≤ η_g + 2 L √q r_x μ,   L = ‖a_g‖ ‖W_g‖_op,   η_g = sup error of the two-layer form.

    α = log(2 L √q r_x (N−1)/η) / (s² (1−c)) makes the second term η. The paper has c = 1/2, r_a r_w for L, N for
    N − 1 and η_g = η = √ε_2NN, which gives 2√ε_2NN.

    Args:
        task: `tasks.Task`; its link must have a two-layer form.
        task_draw: `tasks.Draw`.
        radius: r_x.
        error: η, both the error asked of the two-layer form and the one allowed to the attention.
        alpha: α; None takes it from `error`.
        num_heads: H ≥ q; None is q. Heads beyond q are zero.
        coherence: c to use, for instance 1/2; None measures it.

    Returns:
        `Construction` for `models.Transformer(attention='merged')`, with norms r_a, r_w, lipschitz, param_norm,
        query_key_* (largest over heads; balanced: of W_Q, W_K of all heads) and bounds alpha, off_mass, output
        (of |ŷ − y|), squared_error, coherence, token_radius.

    Raises:
        ValueError: equal encodings, a coherence above `coherence`, no two-layer form, H < q.
    """
    q, num_heads = task.sparsity, task.sparsity if num_heads is None else num_heads
    if num_heads < q:
        raise ValueError(f'num_heads={num_heads}: the construction needs one head per index, H ≥ q = {q}')
    a_M, W_MxK, b_M, form_error = two_layer_arrays(task, task_draw, radius, error)
    coherence = _coherence_for(task_draw, coherence)
    gap = task.scale**2 * (1 - coherence)
    leak = 2 * feedforward_norms(a_M, W_MxK, b_M)['lipschitz'] * math.sqrt(q) * radius
    if alpha is None:
        alpha = _sharpness(leak * (task.seq_len - 1), error, gap)
    identity = np.einsum('hq,ef->hqef', np.eye(q), alpha * np.eye(task.encoding_dim))
    qk_HxExE = _head_blocks(task, num_heads, identity)
    module, params, norms = _assemble(task, qk_HxExE, a_M, W_MxK.reshape(len(a_M), q, task.token_dim), b_M)
    off_mass = min(1.0, (task.seq_len - 1) * math.exp(-alpha * gap))
    output = form_error + leak * off_mass
    bounds = {
        'alpha': alpha,
        'off_mass': off_mass,
        'output': output,
        'squared_error': output**2,
        'coherence': coherence,
        'token_radius': radius,
    }
    return Construction(module, params, norms, bounds)


def paper_alpha(task, task_draw, radius, error=0.1):
    """Lemma 11's α = (2/s²) log(2 r_a r_w √q r_x N/√ε_2NN), for coherence ≤ 1/2; √ε_2NN is `error`."""
    norms = feedforward_norms(*two_layer_arrays(task, task_draw, radius, error)[:3])
    leak = 2 * norms['r_a'] * norms['r_w'] * math.sqrt(task.sparsity) * radius
    return _sharpness(leak * task.seq_len, error, task.scale**2 / 2)


def sparse_average(task, task_draw, radius, error=0.1, alpha=None):
    """Sparse averaging with one head (the remark after Proposition 3), for the link `mean`.

    All q blocks of W_QK are α G with G = Ω^+ (Ω^+)^T/s², which makes s² ⟨ω_i, G ω_j⟩ = 1[i = j]: the scores are α
    on the q relevant tokens and 0 elsewhere, so the head is their mean but for the mass elsewhere, and for all
    ‖x_j‖ ≤ r_x

        |ŷ_i − y_i| ≤ 2 r_x μ,   μ = (N − q)/(q e^α + N − q) ≤ (N/q − 1) e^{−α}.

    The t_i1, …, t_iq must differ: a score that is linear in the encodings weighs a token named twice by e^α, not
    by 2. Vectors of Ω must be linearly independent, d_e ≥ N; with d_e < N coherence tilts the weights.

    Args:
        task: `tasks.Task` with link 'mean' and distinct indices.
        task_draw: `tasks.Draw`.
        radius: r_x.
        error: target for |ŷ − y|.
        alpha: α; None takes it from `error`.

    Returns:
        `Construction` for one head, with the norms of `transformer` and bounds alpha, off_mass, output,
        squared_error, token_radius.

    Raises:
        ValueError: another link, or linearly dependent encodings.
    """
    if task.link.name != 'mean':
        raise ValueError(f'link {task.link.name!r}: one head averages, so the link must be mean')
    omega_NxE = np.asarray(task_draw.encodings.omega_NxE, np.float64)
    if np.linalg.matrix_rank(omega_NxE, tol=1e-4) < task.seq_len:
        raise ValueError(f'encodings: one head needs {task.seq_len} linearly independent ones (d_e ≥ N)')
    others = task.seq_len - task.sparsity
    if alpha is None:
        alpha = _sharpness(2 * radius * others / task.sparsity, error, 1.0)
    dual_ExN = np.linalg.pinv(omega_NxE)
    block_ExE = alpha * dual_ExN @ dual_ExN.T / task.scale**2
    qk_1xExE = _head_blocks(task, 1, np.tile(block_ExE, (1, task.sparsity, 1, 1)))
    u_D = np.asarray(task_draw.link['u_D'], np.float64)
    W_2x1xD = np.stack([u_D, -u_D])[:, None, :]
    module, params, norms = _assemble(task, qk_1xExE, np.array([1.0, -1.0]), W_2x1xD, np.zeros(2))
    off_mass = others / (task.sparsity * math.exp(alpha) + others)
    output = 2 * radius * off_mass
    bounds = {
        'alpha': alpha,
        'off_mass': off_mass,
        'output': output,
        'squared_error': output**2,
        'token_radius': radius,
    }
    return Construction(module, params, norms, bounds)
