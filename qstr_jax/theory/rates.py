"""The theorems' rates as functions. Constants that the paper hides are arguments, 1 unless told.

No threshold can be read off these functions: draw them through at most one measured point (`through`).
"""

import math


def _check_positive(**values):
    for name, value in values.items():
        if not value > 0:
            raise ValueError(f'{name}={value}: must be positive')


def through(curve, at, value):
    """`curve` times the constant that takes it through one measured point (at, value).

    Args:
        curve: function of one number, positive at `at`.
        at, value: the point.

    Returns:
        The scaled function.
    """
    _check_positive(value=value, curve=curve(at))
    constant = value / curve(at)
    return lambda x: constant * curve(x)


def token_radius(num_samples, seq_len, token_dim, moment=1.0):
    """Assumption 2's r_x = √(3 C_x e d log(nN)): all ‖x_j‖ of n prompts are below it with high probability."""
    _check_positive(num_samples=num_samples, seq_len=seq_len, token_dim=token_dim)
    return math.sqrt(3 * moment * math.e * token_dim * math.log(num_samples * seq_len))


def theorem4_radius_square(sparsity, token_dim, width, r_a, r_w):
    """Theorem 4's R² = r_a²/m_g + m_g r_w² + q²/d, up to logarithms."""
    _check_positive(token_dim=token_dim, width=width)
    return r_a**2 / width + width * r_w**2 + sparsity**2 / token_dim


def _theorem4_complexity(sparsity, token_dim, width, r_a, r_w):
    """C_1² q (d + q)(m_g + d + q), C_1 = R² q d: what n is measured against."""
    c_1 = theorem4_radius_square(sparsity, token_dim, width, r_a, r_w) * sparsity * token_dim
    return c_1**2 * sparsity * (token_dim + sparsity) * (width + token_dim + sparsity)


def theorem4(
    num_samples, seq_len, sparsity, token_dim, width, r_a, r_w, approximation=0.0, constant=1.0, log_power=1.0
):
    """Theorem 4, Transformer with H = q heads: R ≲ ε_2NN + C_1 √(q (d + q)(m_g + d + q) polylog(nN)/n).

    Args:
        num_samples, seq_len, sparsity, token_dim: n, N, q, d.
        width, r_a, r_w: m_g and the link's sizes (Assumption 2).
        approximation: ε_2NN.
        constant: in front of both terms (free).
        log_power: polylog(nN) = log(nN)^log_power (free).

    Returns:
        The bound on the risk, a float.
    """
    _check_positive(num_samples=num_samples, seq_len=seq_len)
    complexity = _theorem4_complexity(sparsity, token_dim, width, r_a, r_w)
    return constant * (
        approximation + math.sqrt(complexity * math.log(num_samples * seq_len) ** log_power / num_samples)
    )


def _solve_log(constant, seq_len, log_power):
    """n = constant · log(nN)^log_power by iteration (the right side grows slower than n), at least 2."""
    _check_positive(constant=constant, seq_len=seq_len)
    n = max(2.0, constant)
    for _ in range(200):
        n = max(2.0, constant * math.log(n * seq_len) ** log_power)
    return n


def theorem4_samples(seq_len, sparsity, token_dim, width, r_a, r_w, excess=1.0, constant=1.0, log_power=1.0):
    """n at which Theorem 4's estimation term is `excess`: N enters only through log(nN)."""
    _check_positive(excess=excess)
    complexity = _theorem4_complexity(sparsity, token_dim, width, r_a, r_w)
    return _solve_log((constant / excess) ** 2 * complexity, seq_len, log_power)


def information_limit(sparsity, token_dim, constant=1.0):
    """n = Ω(q d): as many samples as the link has directions to be learnt (the remark after Theorem 4)."""
    return constant * sparsity * token_dim


def theorem6_samples(seq_len, token_dim, loss):
    """Theorem 6, FFN on simple-1STR: n ≥ N d (1 − loss) for a loss below 1; no free constant."""
    _check_positive(seq_len=seq_len, token_dim=token_dim)
    return seq_len * token_dim * max(0.0, 1 - loss)


def theorem7(num_samples, seq_len, complexity=1.0, approximation=0.0, constant=1.0, log_power=1.0):
    """Theorem 7, RNN on simple-qSTR: R ≲ ε_2NN + √(poly(d, q, m_g, r_a, r_w, 1/ε_2NN) log(nN)^p/n).

    `complexity` stands for the polynomial, which the paper does not give. Other arguments as `theorem4`.
    """
    _check_positive(num_samples=num_samples, seq_len=seq_len, complexity=complexity)
    logs = math.log(num_samples * seq_len) ** log_power
    return constant * (approximation + math.sqrt(complexity * logs / num_samples))


def theorem7_samples(seq_len, complexity=1.0, excess=1.0, constant=1.0, log_power=1.0):
    """n at which Theorem 7's estimation term is `excess`."""
    _check_positive(excess=excess, complexity=complexity)
    return _solve_log((constant / excess) ** 2 * complexity, seq_len, log_power)


def proposition8_width(seq_len, lipschitz_projection, constant=1.0):
    """Proposition 8, RNN on 1STR below a constant loss: d_h ≥ constant · N/log(1 + L² ‖U‖_op²).

    Args:
        seq_len: N.
        lipschitz_projection: L ‖U‖_op.
    """
    _check_positive(seq_len=seq_len, lipschitz_projection=lipschitz_projection)
    return constant * seq_len / math.log1p(lipschitz_projection**2)


def proposition8_norm(seq_len, width, constant=1.0):
    """Proposition 8's other half: L² ‖U‖_op² ≥ constant · N/log(1 + d_h); compare `measures.state_sensitivity`."""
    _check_positive(seq_len=seq_len, width=width)
    return constant * seq_len / math.log1p(width)


def log_packing(dim, distance, constant=1.0):
    """Lemma 41: log P(ε) of the unit ball of R^d ≤ min(d log(1 + 2/ε), constant · ε^{−2} log(1 + d ε²)).

    The first bound (volumes) is exact; only the second (Maurey) hides a constant.
    """
    _check_positive(dim=dim, distance=distance)
    by_volume = dim * math.log1p(2 / distance)
    by_maurey = constant * math.log1p(dim * distance**2) / distance**2
    return min(by_volume, by_maurey)


def theorem9_memorise(num_samples, constant=1.0):
    """Theorem 9, upper side: ‖Θ‖² = constant · n³ fits n samples; compare `interpolation.memorising`."""
    _check_positive(num_samples=num_samples)
    return constant * num_samples**3


def theorem9_generalise(seq_len, width, depth, constant=1.0):
    """Theorem 9, lower side: ‖Θ‖² ≥ constant · (N/log d_h)^{1/L_y} below a constant risk.

    Proposition 8's L² ‖U‖² with L ≤ Π_{l ≥ 2} ‖W_l‖_op; the AM-GM inequality over the L_y factors.
    """
    _check_positive(seq_len=seq_len, depth=depth)
    if width < 2:
        raise ValueError(f'width={width}: log d_h must be positive')
    return constant * (seq_len / math.log(width)) ** (1 / depth)


def theorem9_samples(seq_len, width, depth, memorise=1.0, generalise=1.0):
    """n where the two sides of Theorem 9 cross; fewer samples are memorised, not learnt. Asymptotic only."""
    _check_positive(memorise=memorise, generalise=generalise)
    return (theorem9_generalise(seq_len, width, depth, generalise) / memorise) ** (1 / 3)
