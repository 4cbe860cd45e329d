"""Variances of labels by link, without JAX, since both tasks and the analysis of rows need them."""

from collections.abc import Callable

# Σ_j E g_j² of links that are sums Σ_j g_j(x_{t_j}) with E g_j = 0, by q: the label's variance at distinct indices.
_VARIANCES: dict[str, Callable[[int], float]] = {
    'linear': lambda q: 1.0,
    'sum': lambda q: 1.0,
    'hermite2': lambda q: 1.0,
    'mean': lambda q: 1.0 / q,
    'norm2': lambda q: 2.0,
}


def of_link(link: str, sparsity: int) -> float | None:
    """Σ_j E g_j² for tokens N(0, I); None for a link that is not known to be a sum over tokens."""
    variance = _VARIANCES.get(link)
    return None if variance is None else variance(sparsity)
