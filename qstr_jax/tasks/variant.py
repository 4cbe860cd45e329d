"""What variants of qSTR share: the best predictor that ignores t, from how often each token is asked for."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from qstr_jax import variances
from qstr_jax.tasks import links
from qstr_jax.tasks.qstr import QSTR
from qstr_jax.tasks.task import Prompt


@dataclasses.dataclass(frozen=True)
class Variant(QSTR):
    """qSTR with other questions about Gaussian tokens. A variant writes `asked_NxN` and draws its indices itself."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, default in (('indices', 'uniform'), ('tokens', 'gaussian')):
            if getattr(self, name) != default:
                raise ValueError(f'{name}={getattr(self, name)!r}: task {self.name!r} draws its own; leave it out')

    def asked_NxN(self) -> np.ndarray:
        """Probability that position i (row) asks for token j (column) by one of its indices."""
        return np.full((self.seq_len, self.seq_len), 1 / self.seq_len)

    def no_retrieval(self, threshold_on: str) -> float | None:
        """E Var(y | x) = Σ_j E g_j² · mean_i (1 − Σ_m P(i asks for m)²), for links that are sums Σ_j g_j(x_{t_j})."""
        variance = variances.of_link(links.get(self.link).name, self.sparsity)
        return None if variance is None else float(variance * (1 - np.mean(np.sum(self.asked_NxN() ** 2, axis=1))))

    def trivial(self, prompt: Prompt, link_params: Any) -> jax.Array:
        """E[y_i | x] = Σ_m P(i asks for m) g(x_m, …, x_m), (N,), for links that are sums."""
        return jnp.asarray(self.asked_NxN(), jnp.float32) @ self.alike(prompt.x_NxD, link_params)
