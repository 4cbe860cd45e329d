"""Bounds with every constant: covering numbers, from them to risks, and tails of tokens.

Covering numbers (Proposition 17, Corollary 31): the paper states them up to constants, and without the arguments of its
logarithms. The functions below are bounds of the same form with both filled in, as derived there, for the distance

    d_∞(f, g) = sup_{p, i} |f(p)_i − g(p)_i|.

Risks (Lemmas 18 and 32, Corollaries 19 and 33): a class of losses min((y − f)², τ) is covered at ε wherever the
predictions are covered at ε/(2√τ) (`truncated`), and log C is a function such as `log_cover_transformer`.
"""

import math
from collections.abc import Callable

import numpy as np

from qstr_jax.theory import domain

# Levels at which integrals and infima are evaluated; both bounds stay valid for any of them.
LEVELS = 400

LogCover = Callable[[float], float]


def log_ball(dim: int, radius: float, distance: float) -> float:
    """log size of a covering of a Euclidean ball, by volumes: dim · log(1 + 2 radius/distance)."""
    return dim * math.log1p(2 * radius / distance)


def log_maurey(size: int, radius: float, distance: float) -> float:
    """log size of a covering of {W ∈ R^{D×D}: Σ|W_ij| ≤ r} in ‖·‖_F: ⌈r²/ε²⌉ log(2D² + 1), by Maurey's lemma.

    Each point of the convex hull of 0 and the 2D² vertices ± r e_i e_j^T is within r/√k of a mean of k of them.
    """
    return math.ceil((radius / distance) ** 2) * math.log(2 * size**2 + 1)


def attention_lipschitz(radius_z: float) -> float:
    """2 r_z³: if all ‖z_j‖ ≤ r_z, then ‖Attn(p; W)_i − Attn(p; W')_i‖ ≤ 2 r_z³ ‖W − W'‖_op.

    Scores move by at most r_z² ‖W − W'‖, the softmax weights by at most twice that in ℓ1, and the output by at most
    r_z times the weights.
    """
    return 2 * radius_z**3


def transformer_steps(
    distance: float, *, num_heads: int, norm_a: float, norm_w: float, radius_z: float
) -> tuple[float, float, float]:
    """Distances (δ_a, δ_W, δ_QK) of the weights that together move a Transformer's output by at most `distance`.

    With ρ² = H r_z² + 1 ≥ ‖(h_i, 1)‖², a change of a moves the output by at most ‖δa‖ R_w ρ, one of (W, b) by at most
    r_a ‖δ(W, b)‖_F ρ, and one of the heads by at most r_a R_w √H 2 r_z³ δ_QK. They get a quarter, a quarter and a half.
    """
    reach = math.sqrt(num_heads * radius_z**2 + 1)
    for_heads = norm_a * norm_w * math.sqrt(num_heads) * attention_lipschitz(radius_z)
    return distance / (4 * norm_w * reach), distance / (4 * norm_a * reach), distance / (2 * for_heads)


def log_cover_transformer(
    distance: float,
    *,
    num_heads: int,
    width: int,
    embedding_dim: int,
    norm_a: float,
    norm_w: float,
    norm_qk: float,
    radius_z: float,
) -> float:
    """Proposition 17: log C(F_TR, ε) ≤ feedforward + attention, with all constants.

        feedforward = m log(1 + 2 r_a/δ_a) + m (H D_e + 1) log(1 + 2 R_w/δ_W)
        attention   = H min( ⌈r_QK²/δ_QK²⌉ log(2 D_e² + 1), D_e² log(1 + 2 r_QK/δ_QK) )

    with the δ of `transformer_steps`, so that r_QK²/δ_QK² = 16 H r_a² R_w² r_z⁶ r_QK²/ε². The paper has
    m H D_e log(1 + R/ε) + min(r_z⁶ r_a² R_w² H² r_QK² log(·)/ε², H D_e² log(·)).
    """
    domain.positive(distance=distance, num_heads=num_heads, width=width, embedding_dim=embedding_dim)
    domain.positive(norm_a=norm_a, norm_w=norm_w, norm_qk=norm_qk, radius_z=radius_z)
    step_a, step_w, step_qk = transformer_steps(
        distance, num_heads=num_heads, norm_a=norm_a, norm_w=norm_w, radius_z=radius_z
    )
    feedforward = log_ball(width, norm_a, step_a)
    feedforward += log_ball(width * (num_heads * embedding_dim + 1), norm_w, step_w)
    sparse = log_maurey(embedding_dim, norm_qk, step_qk)
    dense = log_ball(embedding_dim**2, norm_qk, step_qk)
    return feedforward + num_heads * min(sparse, dense)


def mlp_lipschitz(depth: int, norm: float, radius_in: float) -> float:
    """(2^L − 1) R^{L−1} (r + 1): a Lipschitz constant of an L-layer ReLU net in its parameters.

    For ‖vec Θ‖ ≤ R with R ≥ 1, layer by layer ‖x_l‖ + 1 ≤ 2R (‖x_{l−1}‖ + 1) and
    Δ_l ≤ R Δ_{l−1} + ‖δΘ‖ (‖x_{l−1}‖ + 1) (Lemma 30).
    """
    return (2**depth - 1) * norm ** (depth - 1) * (radius_in + 1)


def state_growth(seq_len: int, lipschitz: float) -> float:
    """Σ_{i<N} (1 + α)^i ≤ N e^{αN}: how an error of f adds up in the states (Lemma 29); at most e N if α ≤ 1/N."""
    return seq_len if lipschitz == 0 else math.expm1(seq_len * math.log1p(lipschitz)) / lipschitz


def log_cover_rnn(
    distance: float,
    seq_len: int,
    *,
    norm: float,
    depths: tuple[int, int],
    sizes: tuple[int, int],
    radius_h: float,
    radius_z: float,
    lipschitz: float | None = None,
) -> float:
    """Corollary 31: log C(F_RNN, ε) ≤ 2 p_h log(1 + 2R K_h/ε_h) + p_y log(1 + 4R K_y/ε); N enters only by logarithms.

    Half of ε goes to f_y and a quarter to each direction. f_y is R^{L_y}-Lipschitz in the states, which move by
    `state_growth` times the error ε_h of f, so ε_h = ε/(4 R^{L_y} state_growth). K_h and K_y are `mlp_lipschitz` for
    the inputs (h, z) and (h→, h←, z). The projection Π is 1-Lipschitz and changes nothing. Θ are the weights after the
    constraint ‖W_L‖_op ⋯ ‖W_{1,h}‖_op ≤ α_N has been enforced.
    """
    domain.positive(distance=distance, seq_len=seq_len, radius_h=radius_h, radius_z=radius_z)
    if norm < 1:
        raise ValueError(f'norm={norm}: the bound needs R ≥ 1')
    lipschitz = 1 / seq_len if lipschitz is None else lipschitz
    step_h = distance / (4 * norm ** depths[1] * state_growth(seq_len, lipschitz))
    speed_h = mlp_lipschitz(depths[0], norm, radius_h + radius_z)
    speed_y = mlp_lipschitz(depths[1], norm, 2 * radius_h + radius_z)
    transitions = 2 * log_ball(sizes[0], norm, step_h / speed_h)
    return transitions + log_ball(sizes[1], norm, distance / 2 / speed_y)


def truncated(log_cover: LogCover, level: float) -> LogCover:
    """log C of the losses min((y − f)², τ): they are 2√τ-Lipschitz in the prediction."""
    domain.positive(level=level)
    return lambda distance: log_cover(distance / (2 * math.sqrt(level)))


def one_step(log_cover: LogCover, num_samples: int, bound: float) -> float:
    """Lemma 32: the empirical Rademacher complexity is ≤ inf_ε ε + B √(2 log C(ε)/n), by Massart's lemma."""
    domain.positive(num_samples=num_samples, bound=bound)
    distances = np.geomspace(1e-6, 1, LEVELS) * bound
    return min(float(eps) + bound * math.sqrt(2 * max(0.0, log_cover(float(eps))) / num_samples) for eps in distances)


def chaining(log_cover: LogCover, num_samples: int, bound: float) -> float:
    """Lemma 18: the empirical Rademacher complexity is ≤ inf_α 4α + 12 ∫_α^B √(log C(ε)/n) dε (Dudley).

    log C falls with ε, so the sum over left ends of intervals is at least the integral.
    """
    domain.positive(num_samples=num_samples, bound=bound)
    ends = np.geomspace(1e-6, 1, LEVELS + 1) * bound
    heights = np.array([math.sqrt(max(0.0, log_cover(float(eps))) / num_samples) for eps in ends[:-1]])
    integrals = np.cumsum((heights * np.diff(ends))[::-1])[::-1]
    return float(np.min(4 * ends[:-1] + 12 * integrals))


def risk(train_risk: float, complexity: float, *, num_samples: int, bound: float, failure: float) -> float:
    """Corollaries 19 and 33: with probability ≥ 1 − δ all losses of the class have E ℓ ≤ R̂ + 2ℛ̂ + 3B √(log(2/δ)/2n)."""
    domain.positive(num_samples=num_samples, bound=bound, failure=failure)
    return train_risk + 2 * complexity + 3 * bound * math.sqrt(math.log(2 / failure) / (2 * num_samples))


def gaussian_moment(token_dim: int) -> float:
    """The least C_x of Assumption 1 for x ~ N(0, I_d): sup_r E[‖x‖^r]^{2/r}/(d r) over r ≥ 1, reached at r = 1.

    E‖x‖ = √2 Γ((d+1)/2)/Γ(d/2) ≤ √d, so that C_x ≤ 1.
    """
    domain.at_least(1, token_dim=token_dim)
    mean = math.sqrt(2) * math.exp(math.lgamma((token_dim + 1) / 2) - math.lgamma(token_dim / 2))
    return mean**2 / token_dim


def largest_token(radius: float, num_samples: int, seq_len: int, token_dim: int, moment: float = 1.0) -> float:
    """Lemma 12: P(max_{i,j} ‖x_j^(i)‖ ≥ R) ≤ nN exp(−R²/(2 e C_x d)), for R² ≥ e C_x d.

    Markov's inequality for the r-th moment gives nN (C_x d r)^{r/2}/R^r; r = R²/(e C_x d) ≥ 1 gives the bound. At the
    radius r_x = √(3 C_x e d log(nN)) (`rates.token_radius`) it is 1/√(nN). The prompts need not be independent.
    """
    domain.positive(radius=radius, num_samples=num_samples, seq_len=seq_len, token_dim=token_dim, moment=moment)
    order = radius**2 / (math.e * moment * token_dim)
    return min(1.0, num_samples * seq_len * math.exp(-order / 2)) if order >= 1 else 1.0
