"""Lower bounds on the test error that no training can cross, and the oracles that attain them.

`analysis/floors.py` has the floors of rows.

The floors for too few heads are about the link norm2 on a task with tokens='half' and indices='half', where
Var(y_i) = 2 at the late positions i ≥ N/2 (1-based). The printed floors are for the average over all positions, of
which at least half are late; at the late positions alone they are twice as high.
"""

import jax
import jax.numpy as jnp

from qstr_jax.analysis.floors import theorem6_floor as theorem6_floor  # so that all floors are found here
from qstr_jax.learners.span_of_inputs import basis as span_basis
from qstr_jax.tasks import encodings
from qstr_jax.theory import domain
from qstr_jax.theory.sparse_task import SparseTask

# Variance of the norm2 label at a late position.
LATE_VARIANCE = 2.0


def late_positions(seq_len: int) -> jax.Array:
    """The positions i ≥ N/2 (1-based), where t_i = (1, …, q) and x_i = 0."""
    return 2 * (jnp.arange(seq_len) + 1) >= seq_len


def proposition3(num_heads: int, sparsity: int, token_dim: int, late: bool = False) -> float:
    """Proposition 3 as printed: (1/N) E‖y − ŷ‖² ≥ 1 − H (q + d)/(q d), or 0 where that is negative.

    A late position sees the q d Gaussian numbers of X (rows x_1, …, x_q) through H heads. The scores of head h depend
    on X through X u_h, q numbers, and its output shows X^T α_h, d numbers: at most H (q + d) linear functions V X in
    all. By Lemma 40 the label's variance given these is Var(‖X‖² | V X)/(q d) = 2 (q d − rank V)/(q d).
    """
    domain.at_least(1, num_heads=num_heads, sparsity=sparsity, token_dim=token_dim)
    floor = 1 - num_heads * (sparsity + token_dim) / (sparsity * token_dim)
    return (1 + late) * max(0.0, floor)


def head_floor(num_heads: int, sparsity: int, token_dim: int, late: bool = False) -> float:
    """Sharper than Proposition 3: (1/N) E‖y − ŷ‖² ≥ (1 − H/q)(1 − H/d), 0 where H ≥ min(q, d).

    Fix a late position. Its query is constant (x_i = 0), so head h scores token j by ⟨u_h, x_j⟩ + const, and the
    weights α_h ∈ R^q are functions of X u_h. Given X U with U = (u_1, …, u_H), the rest X P_{U^⊥} is still Gaussian
    and independent of A = (α_1, …, α_H). The outputs X^T A therefore show P_A X P_{U^⊥}, and P_{A^⊥} X P_{U^⊥} stays
    unseen: a standard Gaussian in at least (q − H)(d − H) dimensions. Given everything that is seen (tokens and
    indices of the other positions included), its squared norm has variance 2 (q − H)(d − H), and y is ‖X‖²/√(qd)
    + const. `oracle` attains the floor if U and A have rank H. For d ≥ q the floor proves that H ≥ q heads are
    necessary, whatever W_QK is. Not in the paper.
    """
    domain.at_least(1, num_heads=num_heads, sparsity=sparsity, token_dim=token_dim)
    if num_heads >= min(sparsity, token_dim):
        return 0.0
    return (1 + late) * (1 - num_heads / sparsity) * (1 - num_heads / token_dim)


def proposition21(num_heads: int, sparsity: int, late: bool = False) -> float:
    """Proposition 21, for scores that ignore x: (1/N) E‖y − ŷ‖² ≥ 1 − H/q, for every d.

    This is `head_floor` with U = 0: A is constant, and (q − H) d of the q d dimensions stay unseen. It holds for norm2.
    At the late positions, without the factor 2 (variance 1), it also holds for hermite2 with any unit u_j: given X^T A
    the projections ⟨u_j, x_j⟩ keep a covariance Σ of trace ≥ q − H, and the error is (2 tr Σ − ‖Σ‖_F²)/q ≥ tr Σ/q, with
    equality if all u_j are the same. The paper has d = 1 and q < N/2.
    """
    domain.at_least(1, num_heads=num_heads, sparsity=sparsity)
    return (1 + late) * max(0.0, 1 - num_heads / sparsity)


def seen_through_heads(
    heads_HxE: jax.Array,
    qk_HxExE: jax.Array,
    t_NxQ: jax.Array,
    *,
    position: int,
    task: SparseTask,
    omega_NxE: jax.Array,
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """What the outputs of H heads at one late position show of X, computed from the outputs alone.

    The encodings' part of Σ_j α_j z_j gives the weights, if the ω are linearly independent (d_e ≥ N). The ratios of the
    weights to that of the last token, which is 0 and so has a known score, give the scores' X U.
    """
    q, d, d_e = task.sparsity, task.token_dim, task.encoding_dim
    if task.num_gaussian != q or d_e < task.seq_len:
        raise ValueError(
            f'seq_len={task.seq_len}, encoding_dim={d_e}: must be 2q+1 or 2q+2 with tokens=half, and d_e ≥ N'
        )
    blank_NxD = jnp.zeros((task.seq_len, d), heads_HxE.dtype)
    z_NxE = encodings.encode(blank_NxD, t_NxQ, omega_NxE, task.scale)
    query_HxE = jnp.einsum('e,hef->hf', z_NxE[position], qk_HxExE)
    constant_HxN = query_HxE @ z_NxE.T
    weights_HxN = heads_HxE[:, d : d + d_e] @ jnp.linalg.pinv(task.scale * omega_NxE)
    log_HxN = jnp.log(jnp.maximum(weights_HxN, jnp.finfo(weights_HxN.dtype).tiny)) - constant_HxN
    return (log_HxN[:, :q] - log_HxN[:, -1:]).T, heads_HxE[:, :d], query_HxE[:, :d].T, weights_HxN[:, :q].T


def oracle(scores_QxH: jax.Array, outputs_HxD: jax.Array, u_DxH: jax.Array, weights_QxH: jax.Array) -> jax.Array:
    """The best prediction of the norm2 label from X U and X^T A: (‖seen‖² + unseen dimensions − qd)/√(qd).

    It attains `head_floor` (`proposition21` if U = 0) if U and A have rank H. Uses Lemma 40.
    """
    q, d = weights_QxH.shape[0], u_DxH.shape[0]
    by_scores_QxD = scores_QxH @ jnp.linalg.pinv(u_DxH)  # X P_U
    pinv_HxQ = jnp.linalg.pinv(weights_QxH)
    by_outputs_QxD = pinv_HxQ.T @ outputs_HxD  # P_A X
    both_QxD = pinv_HxQ.T @ (weights_QxH.T @ by_scores_QxD)  # P_A X P_U
    seen = jnp.sum(by_scores_QxD**2) + jnp.sum((by_outputs_QxD - both_QxD) ** 2)
    rank = jnp.linalg.matrix_rank
    unseen = (q - rank(weights_QxH)) * (d - rank(u_DxH))
    return (seen + unseen - q * d) / jnp.sqrt(1.0 * q * d)


def theorem6_given(x_BxNxD: jax.Array, u_D: jax.Array) -> jax.Array:
    """Theorem 6's floor for one u and one training set: 1 − ‖V (I_N ⊗ u)‖_F²/N.

    The rows of W lie in the span of the training prompts x^(1), …, x^(n) ∈ R^{Nd}. With V an orthonormal basis of it,
    the network sees V x, and y = ⟨e_t ⊗ u, x⟩ keeps the variance 1 − ‖V (e_t ⊗ u)‖²; the floor is its mean over t. If u
    is uniform on the sphere, the mean of the floor is the printed `theorem6_floor`, 1 − rank(V)/(Nd), which therefore
    bounds the average over u as well. A single run must be compared with its own floor, which fluctuates around that.
    """
    num_samples, seq_len, token_dim = x_BxNxD.shape
    v_RxNxD = span_basis(x_BxNxD.reshape(num_samples, -1)).reshape(-1, seq_len, token_dim)
    return 1 - jnp.sum((v_RxNxD @ u_D) ** 2) / seq_len


def theorem6_oracle(basis_RxV: jax.Array, x_NxD: jax.Array, t: jax.Array | int, u_D: jax.Array) -> jax.Array:
    """ŷ = ⟨V^T V (e_t ⊗ u), x⟩, the best prediction from V x; it attains `theorem6_given`."""
    target_V = jnp.outer(jax.nn.one_hot(t, x_NxD.shape[0], dtype=u_D.dtype), u_D).reshape(-1)
    return (basis_RxV @ target_V) @ (basis_RxV @ x_NxD.reshape(-1))


def proposition8_bits(bits: float, seq_len: int) -> float:
    """A floor for finite states on 1STR: (1/N) E‖ŷ − y‖² ≥ (1 − 1/N) 2^{−2B/(N−1)}.

    Let g be linear, x ~ N(0, I), t_i uniform and independent, and let the two exclusive states at position i together
    hold B bits (entropy, or only mutual information with the other tokens). The states do not know t_i, so they must
    describe all N − 1 standard normals s_j = ⟨u, x_j⟩, j ≠ i. By the rate-distortion function of a Gaussian vector,
    (N−1)/2 · log₂(1/D) ≤ B for the mean D of E(s_j − ŝ_j)², where ŝ_j is f_y's answer to t_i = j (x_i, i and t, which
    f_y sees as well, are independent of s). t_i ≠ i has probability 1 − 1/N. A Gaussian test channel with I = B attains
    the floor; scalar quantisers of b bits come within a factor π√3/2 ≈ 2.72. Not in the paper.
    """
    domain.at_least(2, seq_len=seq_len)
    domain.at_least(0, bits=bits)
    return (1 - 1 / seq_len) * 2.0 ** (-2 * bits / (seq_len - 1))
