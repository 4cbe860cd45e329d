"""Variances of labels by link, without JAX, since both tasks and the analysis of rows need them."""

# Σ_j E g_j² of links that are sums Σ_j g_j(x_{t_j}) with E g_j = 0, where q is not in it: the label's variance at
# distinct indices.
_VARIANCES = {'linear': 1.0, 'sum': 1.0, 'hermite2': 1.0, 'norm2': 2.0}


def of_link(link: str, sparsity: int) -> float | None:
    """Σ_j E g_j² for tokens N(0, I); None for a link that is not known to be a sum over tokens."""
    return 1.0 / sparsity if link == 'mean' else _VARIANCES.get(link)
