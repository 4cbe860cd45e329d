"""The theorems' rates as functions of their parameters; `rnn_sizes` has those without samples.

Constants that the paper does not give are arguments, 1 by default. No threshold can therefore be read off these
functions: draw them through at most one measured point (`through`).
"""

import math
from collections.abc import Callable

from qstr_jax.theory import domain


def through(curve: Callable[[float], float], at: float, value: float) -> Callable[[float], float]:
    """Scales a curve so that it passes through one measured point."""
    domain.positive(value=value, curve=curve(at))
    constant = value / curve(at)
    return lambda x: constant * curve(x)


def token_radius(num_samples: float, seq_len: int, token_dim: int, moment: float = 1.0) -> float:
    """Assumption 2's r_x = √(3 C_x e d log(nN)): with high probability all ‖x_j‖ of n prompts are below it."""
    domain.positive(num_samples=num_samples, seq_len=seq_len, token_dim=token_dim)
    return math.sqrt(3 * moment * math.e * token_dim * math.log(num_samples * seq_len))


def theorem4_radius_square(*, sparsity: int, token_dim: int, width: int, r_a: float, r_w: float) -> float:
    """Theorem 4's R² = r_a²/m_g + m_g r_w² + q²/d, up to logarithms."""
    domain.positive(token_dim=token_dim, width=width)
    return r_a**2 / width + width * r_w**2 + sparsity**2 / token_dim


def theorem4(
    num_samples: float,
    seq_len: int,
    *,
    sparsity: int,
    token_dim: int,
    width: int,
    r_a: float,
    r_w: float,
    **more: float,
) -> float:
    """Theorem 4, Transformer with H = q heads: R ≲ ε_2NN + C_1 √(q (d + q)(m_g + d + q) polylog(nN)/n), C_1 = R² q d.

    `more` is `approximation`, `constant` and `log_power`, as for `theorem7`.
    """
    square = theorem4_radius_square(sparsity=sparsity, token_dim=token_dim, width=width, r_a=r_a, r_w=r_w)
    c_1 = square * sparsity * token_dim
    complexity = c_1**2 * sparsity * (token_dim + sparsity) * (width + token_dim + sparsity)
    return theorem7(num_samples, seq_len, complexity=complexity, **more)


def theorem7(
    num_samples: float,
    seq_len: int,
    *,
    complexity: float = 1.0,
    approximation: float = 0.0,
    constant: float = 1.0,
    log_power: float = 1.0,
) -> float:
    """Theorem 7, RNN on simple-qSTR: R ≲ ε_2NN + √(poly(d, q, m_g, r_a, r_w, 1/ε_2NN) log(nN)^p/n)."""
    domain.positive(num_samples=num_samples, seq_len=seq_len, complexity=complexity)
    logs = math.log(num_samples * seq_len) ** log_power
    return constant * (approximation + math.sqrt(complexity * logs / num_samples))
