"""Covering numbers of the two function classes, with every constant (Proposition 17, Corollary 31).

The paper states them up to constants and without the arguments of its logarithms. The functions below are bounds
of the same form with both filled in, derived in the docstrings, for the sup distance over prompts

    d_∞(f, g) = sup_{p, i} |f(p)_i − g(p)_i|.
"""

import math


def _check_positive(**values):
    for name, value in values.items():
        if not value > 0:
            raise ValueError(f'{name}={value}: must be positive')


def log_ball(dim, radius, distance):
    """log of a covering of a Euclidean ball by volumes: dim · log(1 + 2 radius/distance)."""
    return dim * math.log1p(2 * radius / distance)


def log_maurey(size, radius, distance):
    """log of a covering in ‖·‖_F of {W ∈ R^{D×D}: Σ|W_ij| ≤ r}: ⌈r²/ε²⌉ log(2D² + 1), Maurey's lemma.

    A point of the hull of 0 and the 2D² vertices ± r e_i e_j^T is within r/√k of a mean of k of them.
    """
    return math.ceil((radius / distance) ** 2) * math.log(2 * size**2 + 1)


def attention_lipschitz(radius_z):
    """2 r_z³: |Attn(p; W)_i − Attn(p; W')_i| ≤ 2 r_z³ ‖W − W'‖_op where all ‖z_j‖ ≤ r_z.

    Scores move by ≤ r_z² ‖W − W'‖, softmax weights by ≤ twice that in ℓ1, the output by r_z times that.
    """
    return 2 * radius_z**3


def transformer_steps(distance, num_heads, norm_a, norm_w, radius_z):
    """Distances (δ_a, δ_W, δ_QK) that together move a Transformer's output by at most `distance`.

    With ρ² = H r_z² + 1 ≥ ‖(h_i, 1)‖²: changing a moves it by ≤ ‖δa‖ R_w ρ, (W, b) by ≤ r_a ‖δ(W, b)‖_F ρ, the
    heads by ≤ r_a R_w √H 2 r_z³ δ_QK. A quarter, a quarter and a half.
    """
    reach = math.sqrt(num_heads * radius_z**2 + 1)
    for_heads = norm_a * norm_w * math.sqrt(num_heads) * attention_lipschitz(radius_z)
    return distance / (4 * norm_w * reach), distance / (4 * norm_a * reach), distance / (2 * for_heads)


def log_cover_transformer(distance, num_heads, width, embedding_dim, norm_a, norm_w, norm_qk, radius_z):
    """Proposition 17: log C(F_TR, ε) ≤ feedforward + attention, all constants explicit.

        feedforward = m log(1 + 2 r_a/δ_a) + m (H D_e + 1) log(1 + 2 R_w/δ_W)
        attention   = H min( ⌈r_QK²/δ_QK²⌉ log(2 D_e² + 1), D_e² log(1 + 2 r_QK/δ_QK) )

    with the δ of `transformer_steps`, so r_QK²/δ_QK² = 16 H r_a² R_w² r_z⁶ r_QK²/ε². The paper's
    m H D_e log(1 + R/ε) + min(r_z⁶ r_a² R_w² H² r_QK² log(·)/ε², H D_e² log(·)).

    Args:
        distance: ε.
        num_heads, width, embedding_dim: H, m, D_e.
        norm_a, norm_w: bounds on ‖a‖ and ‖(W, b)‖_F.
        norm_qk: r_QK, bound on Σ_ij |W_QK,ij| of each head (‖W_QK‖_F ≤ r_QK suffices for the second branch).
        radius_z: r_z ≥ ‖z_j‖.

    Returns:
        The bound, a float.
    """
    _check_positive(
        distance=distance,
        norm_a=norm_a,
        norm_w=norm_w,
        norm_qk=norm_qk,
        radius_z=radius_z,
        num_heads=num_heads,
        width=width,
        embedding_dim=embedding_dim,
    )
    step_a, step_w, step_qk = transformer_steps(distance, num_heads, norm_a, norm_w, radius_z)
    feedforward = log_ball(width, norm_a, step_a)
    feedforward += log_ball(width * (num_heads * embedding_dim + 1), norm_w, step_w)
    sparse = log_maurey(embedding_dim, norm_qk, step_qk)
    dense = log_ball(embedding_dim**2, norm_qk, step_qk)
    return feedforward + num_heads * min(sparse, dense)


def mlp_lipschitz(depth, norm, radius_in):
    """(2^L − 1) R^{L−1} (r + 1): how fast an L-layer ReLU net moves in its parameters, ‖vec Θ‖ ≤ R, R ≥ 1.

    Layer by layer ‖x_l‖ + 1 ≤ 2R (‖x_{l−1}‖ + 1) and Δ_l ≤ R Δ_{l−1} + ‖δΘ‖ (‖x_{l−1}‖ + 1) (Lemma 30).
    """
    return (2**depth - 1) * norm ** (depth - 1) * (radius_in + 1)


def state_growth(seq_len, lipschitz):
    """Σ_{i<N} (1 + α)^i ≤ N e^{αN}: what an error of f adds up to in the states (Lemma 29); ≤ e N at α ≤ 1/N."""
    return seq_len if lipschitz == 0 else math.expm1(seq_len * math.log1p(lipschitz)) / lipschitz


def log_cover_rnn(distance, seq_len, norm, depths, sizes, radius_h, radius_z, lipschitz=None):
    """Corollary 31: log C(F_RNN, ε) ≤ 2 p_h log(1 + 2R K_h/ε_h) + p_y log(1 + 4R K_y/ε); N only in a logarithm.

    Half of ε is for f_y, a quarter for each direction: f_y is R^{L_y}-Lipschitz in the states, which move by
    `state_growth` times the error ε_h of f, so ε_h = ε/(4 R^{L_y} state_growth). K are `mlp_lipschitz` for inputs
    (h, z) and (h→, h←, z). The projection Π is 1-Lipschitz, so it drops out. Θ are the weights after the
    constraint ‖W_L‖_op ⋯ ‖W_{1,h}‖_op ≤ α_N has been applied.

    Args:
        distance: ε.
        seq_len: N.
        norm: R ≥ 1, bound on ‖vec Θ‖ of f→, f← and f_y each.
        depths: (L_h, L_y).
        sizes: (p_h, p_y), numbers of parameters of one transition and of f_y.
        radius_h, radius_z: r_h and r_z.
        lipschitz: α_N; None is 1/N.

    Returns:
        The bound, a float.

    Raises:
        ValueError: R < 1 or a number that is not positive.
    """
    _check_positive(distance=distance, seq_len=seq_len, radius_h=radius_h, radius_z=radius_z)
    if norm < 1:
        raise ValueError(f'norm={norm}: the bound needs R ≥ 1')
    lipschitz = 1 / seq_len if lipschitz is None else lipschitz
    step_h = distance / (4 * norm ** depths[1] * state_growth(seq_len, lipschitz))
    speed_h = mlp_lipschitz(depths[0], norm, radius_h + radius_z)
    speed_y = mlp_lipschitz(depths[1], norm, 2 * radius_h + radius_z)
    transitions = 2 * log_ball(sizes[0], norm, step_h / speed_h)
    return transitions + log_ball(sizes[1], norm, distance / 2 / speed_y)
