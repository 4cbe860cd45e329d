"""Tails of tokens: Lemma 12."""

import math

from qstr_jax.theory import domain


def gaussian_moment(token_dim: int) -> float:
    """The least C_x of Assumption 1 for x ~ N(0, I_d): sup_r E[‖x‖^r]^{2/r}/(d r) over r ≥ 1, reached at r = 1.

    E‖x‖ = √2 Γ((d+1)/2)/Γ(d/2) ≤ √d, so that C_x ≤ 1.
    """
    domain.at_least(1, token_dim=token_dim)
    mean = math.sqrt(2) * math.exp(math.lgamma((token_dim + 1) / 2) - math.lgamma(token_dim / 2))
    return mean**2 / token_dim


def largest_token(radius: float, num_samples: int, seq_len: int, token_dim: int, moment: float = 1.0) -> float:
    """Lemma 12: P(max_{i,j} ‖x_j^(i)‖ ≥ R) ≤ nN exp(−R²/(2 e C_x d)), for R² ≥ e C_x d.

    Markov's inequality for the r-th moment gives nN (C_x d r)^{r/2}/R^r, and r = R²/(e C_x d) ≥ 1 the bound. At the
    radius r_x = √(3 C_x e d log(nN)) (`rates.token_radius`) it is 1/√(nN). The prompts need not be independent.
    """
    domain.positive(radius=radius, num_samples=num_samples, seq_len=seq_len, token_dim=token_dim, moment=moment)
    order = radius**2 / (math.e * moment * token_dim)
    return min(1.0, num_samples * seq_len * math.exp(-order / 2)) if order >= 1 else 1.0
