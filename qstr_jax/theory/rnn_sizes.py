"""How wide an RNN must be, and how large in norm: Proposition 8 and Theorem 9 as functions.

Constants that the paper does not give are arguments, 1 by default; see `rates`.
"""

import math

from qstr_jax.theory import domain


def proposition8_width(seq_len: int, lipschitz_projection: float, constant: float = 1.0) -> float:
    """Proposition 8, RNN on 1STR below a constant loss: d_h ≥ constant · N/log(1 + L² ‖U‖_op²)."""
    domain.positive(seq_len=seq_len, lipschitz_projection=lipschitz_projection)
    return constant * seq_len / math.log1p(lipschitz_projection**2)


def proposition8_norm(seq_len: int, width: float, constant: float = 1.0) -> float:
    """Proposition 8's other half: L² ‖U‖_op² ≥ constant · N/log(1 + d_h); compare `sensitivity.state_sensitivity`."""
    domain.positive(seq_len=seq_len, width=width)
    return constant * seq_len / math.log1p(width)


def theorem9_memorise(num_samples: float, constant: float = 1.0) -> float:
    """Theorem 9, upper side: ‖Θ‖² = constant · n³ is enough to fit n samples; compare `interpolation.memorising`."""
    domain.positive(num_samples=num_samples)
    return constant * num_samples**3


def theorem9_generalise(seq_len: float, width: float, depth: int, constant: float = 1.0) -> float:
    """Theorem 9, lower side: ‖Θ‖² ≥ constant · (N/log d_h)^{1/L_y} below a constant risk.

    This is Proposition 8's L² ‖U‖² with L ≤ Π_{l ≥ 2} ‖W_l‖_op, and the AM-GM inequality for the L_y factors.
    """
    domain.positive(seq_len=seq_len, depth=depth)
    if width < 2:
        raise ValueError(f'width={width}: must be at least 2, since log d_h must be positive')
    return constant * (seq_len / math.log(width)) ** (1 / depth)
