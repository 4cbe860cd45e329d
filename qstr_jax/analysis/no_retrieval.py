"""The loss of a predictor that ignores t: a threshold above it needs no retrieval, and no exponent is fitted.

Tasks write it into their rows, in the column `no_retrieval`. Rows of qSTR are older than that column, so the formula
here takes its place.
Tokens are N(0, I), and t_1, …, t_q independent and uniform on [N]. The best predictor that ignores t is E[y | x], the
mean of the link over all indices. Where the link is a sum over tokens, Σ_j g_j(x_{t_j}) with E g_j = 0, its error is

    E Var(y | x) = Σ_j E Var_{t_j}(g_j(x_{t_j}) | x) = (1 − 1/N) Σ_j E g_j².
"""

import pandas as pd

from qstr_jax import variances

# Settings for which the formula holds; a table that lacks such a column counts as having this value.
_NEEDED = {'task': ('qstr', 'simple_qstr'), 'indices': ('uniform',), 'tokens': ('gaussian',)}


def no_retrieval_loss(link: str, sparsity: int, seq_len: int) -> float | None:
    """Test loss of the best predictor that ignores t: 1 − 1/N where the label has variance 1."""
    variance = variances.of_link(link, sparsity)
    return None if variance is None else variance * (1 - 1 / seq_len)


def losses(rows: pd.DataFrame) -> pd.Series:
    """Test loss of the best predictor that ignores t on the task of each lane, NaN where it is not known."""
    said = rows.get('no_retrieval', pd.Series(float('nan'), rows.index)).astype(float)
    if not {'link', 'sparsity', 'seq_len'} <= set(rows.columns):
        return said
    found = [no_retrieval_loss(*point) for point in zip(rows['link'], rows['sparsity'], rows['seq_len'], strict=True)]
    known = pd.Series(found, rows.index, dtype=float)
    for column, values in _NEEDED.items():
        if column in rows.columns:
            known = known.where(rows[column].isin(values))
    return said.fillna(known)


def is_easy(rows: pd.DataFrame) -> pd.Series:
    """Which lanes have a threshold that needs no retrieval: the loss of a predictor that ignores t is not above it."""
    if 'threshold' not in rows.columns:
        return pd.Series(False, rows.index)
    return losses(rows) <= rows['threshold'].astype(float)
