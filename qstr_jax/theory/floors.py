"""Lower bounds on the test error that no training can cross, and the oracles that attain them.

Head floors are for the link norm2 on `Task(tokens='half', indices='half')`, where Var(y_i) = 2 on the late
positions i ≥ N/2 (1-based); the printed floors are for the average over all positions, of which at least half
are late, and on the late positions alone they are twice as high.
"""

import jax
import jax.numpy as jnp

from qstr_jax.learners.span_of_inputs import basis as span_basis
from qstr_jax.tasks import encodings


def _check_counts(least=1, **counts):
    for name, value in counts.items():
        if value < least:
            raise ValueError(f'{name}={value}: must be at least {least}')


def late_positions(seq_len):
    """Mask (N,) of the positions i ≥ N/2 (1-based), where t_i = (1, …, q) and x_i = 0."""
    return 2 * (jnp.arange(seq_len) + 1) >= seq_len


def proposition3(num_heads, sparsity, token_dim, late=False):
    """Proposition 3 as printed: (1/N) E‖y − ŷ‖² ≥ 1 − H (q + d)/(q d), or 0 where that is negative.

    A late position sees the q d Gaussian numbers of X (rows x_1, …, x_q) through H heads. Head h's scores depend
    on X through X u_h, q numbers, and its output shows X^T α_h, d numbers: at most H (q + d) linear functions in
    all. By Lemma 40, Var(‖X‖² | V X) = 2 (q d − rank V), over q d.

    Args:
        num_heads, sparsity, token_dim: H, q, d.
        late: twice it, for the mean error over `late_positions`.

    Returns:
        The floor of the mean squared error, a float.
    """
    _check_counts(num_heads=num_heads, sparsity=sparsity, token_dim=token_dim)
    floor = 1 - num_heads * (sparsity + token_dim) / (sparsity * token_dim)
    return (1 + late) * max(0.0, floor)


def head_floor(num_heads, sparsity, token_dim, late=False):
    """Sharper than Proposition 3: (1/N) E‖y − ŷ‖² ≥ (1 − H/q)(1 − H/d), 0 where H ≥ min(q, d).

    Fix a late position; its query is constant (x_i = 0), so head h scores token j by ⟨u_h, x_j⟩ + const and the
    weights α_h ∈ R^q are functions of X u_h. Given X U for U = (u_1, …, u_H) the rest X P_{U^⊥} is still Gaussian
    and independent of A = (α_1, …, α_H), so the outputs X^T A show P_A X P_{U^⊥} and leave P_{A^⊥} X P_{U^⊥}, a
    standard Gaussian in ≥ (q − H)(d − H) dimensions, unseen. Its squared norm has variance 2 (q − H)(d − H)
    given everything seen (tokens and indices of the other positions included), and y is ‖X‖²/√(qd) + const.
    `oracle` attains it for U, A of rank H. For d ≥ q it proves that H ≥ q heads are necessary, whatever W_QK.

    Args, returns: see `proposition3`.
    """
    _check_counts(num_heads=num_heads, sparsity=sparsity, token_dim=token_dim)
    if num_heads >= min(sparsity, token_dim):
        return 0.0
    return (1 + late) * (1 - num_heads / sparsity) * (1 - num_heads / token_dim)


def proposition21(num_heads, sparsity, late=False):
    """Proposition 21, for scores that ignore x: (1/N) E‖y − ŷ‖² ≥ 1 − H/q, for every d.

    As in `head_floor` with U = 0: A is a constant, (q − H) d of the q d dimensions stay unseen. Holds for norm2
    and, on the late positions without the factor 2 (variance 1), for hermite2 with any unit u_j: given X^T A the
    projections ⟨u_j, x_j⟩ keep a covariance Σ of trace ≥ q − H and the error is (2 tr Σ − ‖Σ‖_F²)/q ≥ tr Σ/q,
    with equality for one shared u. The paper has d = 1 and q < N/2.

    Args, returns: see `proposition3`.
    """
    _check_counts(num_heads=num_heads, sparsity=sparsity)
    return (1 + late) * max(0.0, 1 - num_heads / sparsity)


def hermite2_floor(num_heads, sparsity):
    """hermite2 with orthonormal u_j and any scores: error on late positions ≥ 1 − 2H/q, or 0.

    Of the projections p_j = ⟨u_j, x_j⟩, X U explains Σ_j ‖P_U u_j‖² ≤ H of the variance q, and X^T A at most H
    more: the rest has trace ≥ q − 2H, and the error is ≥ tr Σ/q as in `proposition21`. No floor of this kind
    holds for one shared u, which one head can see through its scores.

    Args, returns: see `proposition3`.
    """
    _check_counts(num_heads=num_heads, sparsity=sparsity)
    return max(0.0, 1 - 2 * num_heads / sparsity)


def seen_through_heads(heads_HxE, qk_HxExE, t_NxQ, position, task, omega_NxE):
    """What the outputs of H heads at one late position show of X, read off the outputs alone.

    The weights come from the encodings' part of Σ_j α_j z_j (ω linearly independent, d_e ≥ N), the scores' X U
    from the ratios of the weights to that of the last token, which is 0 and so has a known score.

    Args:
        heads_HxE: outputs of the heads, (H, D_e).
        qk_HxExE: their W_QK.
        t_NxQ: indices of the prompt (known to the predictor), (N, q).
        position: i.
        task: with N ≤ 2q + 2, so that the q relevant tokens are the only ones that are not 0.
        omega_NxE: encodings.

    Returns:
        (X U (q, H), X^T A (H, d), U (d, H), A (q, H)), the arguments of `oracle`.

    Raises:
        ValueError: N > 2q + 2 or d_e < N.
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


def oracle(scores_QxH, outputs_HxD, u_DxH, weights_QxH):
    """Best prediction of the norm2 label from X U and X^T A: E[y | seen] = (‖seen‖² + unseen dims − qd)/√(qd).

    Attains `head_floor` (and `proposition21` where U = 0) when U and A have rank H.

    Args:
        scores_QxH: X U.
        outputs_HxD: A^T X.
        u_DxH: U.
        weights_QxH: A.

    Returns:
        The prediction, a scalar.
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


def theorem6(num_samples, seq_len, token_dim):
    """Theorem 6: sup_u E[R | S_n] ≥ 1 − n/(N d) for every stationary point or min-norm ε-ERM of an FFN.

    The rows of W lie in the span of the training prompts x^(1), …, x^(n) ∈ R^{Nd}; with V an orthonormal basis of
    it the network sees V x, and y = ⟨e_t ⊗ u, x⟩ keeps the variance 1 − ‖V (e_t ⊗ u)‖². Over t uniform and u
    uniform on the sphere the mean of the second term is rank(V)/(Nd). It bounds the average over u, too.

    Args:
        num_samples, seq_len, token_dim: n, N, d.

    Returns:
        The floor, a float; 0 from n = N d on.
    """
    _check_counts(seq_len=seq_len, token_dim=token_dim)
    _check_counts(least=0, num_samples=num_samples)
    return max(0.0, 1 - num_samples / (seq_len * token_dim))


def theorem6_given(x_BxNxD, u_D):
    """Theorem 6's floor for one u and one training set: 1 − ‖V (I_N ⊗ u)‖_F²/N.

    The mean over t of 1 − ‖V (e_t ⊗ u)‖². It fluctuates around `theorem6`: compare a run with its own.

    Args:
        x_BxNxD: tokens of the training prompts, (n, N, d).
        u_D: the link's direction, a unit vector.

    Returns:
        The floor, a scalar.
    """
    num_samples, seq_len, token_dim = x_BxNxD.shape
    v_RxNxD = span_basis(x_BxNxD.reshape(num_samples, -1)).reshape(-1, seq_len, token_dim)
    return 1 - jnp.sum((v_RxNxD @ u_D) ** 2) / seq_len


def theorem6_oracle(basis_RxK, x_NxD, t, u_D):
    """ŷ = ⟨V^T V (e_t ⊗ u), x⟩, the best prediction from V x; attains `theorem6_given`."""
    target_K = jnp.outer(jax.nn.one_hot(t, x_NxD.shape[0], dtype=u_D.dtype), u_D).reshape(-1)
    return (basis_RxK @ target_K) @ (basis_RxK @ x_NxD.reshape(-1))


def proposition8_bits(bits, seq_len):
    """A converse to 1STR with finite states: (1/N) E‖ŷ − y‖² ≥ (1 − 1/N) 2^{−2B/(N−1)}.

    For linear g, x ~ N(0, I), t_i uniform and independent: let the two exclusive states at position i carry B
    bits together (entropy, or only mutual information with the other tokens). They do not know t_i, so they
    describe all N − 1 standard normals s_j = ⟨u, x_j⟩, j ≠ i. The rate-distortion function of a Gaussian vector
    gives (N−1)/2 · log₂(1/D) ≤ B for the mean D of E(s_j − ŝ_j)², where ŝ_j is f_y's answer to t_i = j (side
    information x_i, i and t is independent of s). t_i ≠ i has probability 1 − 1/N. A Gaussian test channel with
    I = B attains it; scalar quantisers of b bits come within a factor π√3/2 ≈ 2.72. Not in the paper.

    Args:
        bits: B at one position, both states together.
        seq_len: N ≥ 2.

    Returns:
        The floor, a float.
    """
    _check_counts(least=2, seq_len=seq_len)
    _check_counts(least=0, bits=bits)
    return (1 - 1 / seq_len) * 2.0 ** (-2 * bits / (seq_len - 1))
