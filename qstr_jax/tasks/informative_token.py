"""Is there an informative token? Sparse-token classification (Barnfield, Cui and Lu, arXiv:2509.25153).

The definition is that of the paper, of which we had a part. The label stands at all N positions, since our models
answer at each. This is not the task of Vural et al., "Learning to Recall with Transformers Beyond Orthogonal
Embeddings", arXiv:2603.15923, of which we had the abstract: there the informative token is one of a vocabulary, and a
fixed one-to-one map of it is the label.
"""

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp

from qstr_jax.settings import checks
from qstr_jax.tasks import link_functions
from qstr_jax.tasks.base import Sequence
from qstr_jax.tasks.task import Prompt, register


@register('informative_token')
@dataclasses.dataclass(frozen=True)
class InformativeToken(Sequence):
    """X = θ v ξ^T + Z if y = 1, X = Z if y = 0; Z ~ N(0, I), ξ a unit vector, v indicates R of N tokens, P(y = 1) = π.

    Attributes:
        token_dim: d.
        num_informative: R.
        signal: θ.
        positive_share: π.
    """

    token_dim: int = 10
    num_informative: int = 1
    signal: float = 4.0
    positive_share: float = 0.5

    num_outputs = 2
    loss = 'cross_entropy'

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.integer('token_dim', self.token_dim)
        checks.integer('num_informative', self.num_informative)
        checks.number('signal', self.signal, 0)
        if self.num_informative > self.seq_len:
            raise ValueError(f'num_informative={self.num_informative}: must be at most seq_len={self.seq_len}')
        if not 0 < self.positive_share < 1:
            raise ValueError(f'positive_share={self.positive_share}: must lie in (0, 1)')

    def draw_link(self, key: jax.Array) -> Any:
        """ξ, uniform on the unit sphere."""
        return {'xi_D': link_functions.unit_vectors(key, (self.token_dim,))}

    def sample(self, key: jax.Array, link_params: Any) -> Prompt:
        """Draws one prompt; arguments as in `Task.sample`."""
        key_x, key_y, key_v = jax.random.split(key, 3)
        indices_R = jax.random.permutation(key_v, self.seq_len)[: self.num_informative]
        y = jax.random.bernoulli(key_y, self.positive_share).astype(jnp.int32)
        x_NxD = jax.random.normal(key_x, (self.seq_len, self.token_dim))
        return Prompt(
            x_NxD=x_NxD.at[indices_R].add(y * self.signal * link_params['xi_D']),
            t_NxQ=jnp.broadcast_to(indices_R, (self.seq_len, self.num_informative)),
            y_N=jnp.broadcast_to(y, (self.seq_len,)),
        )

    def no_retrieval(self, threshold_on: str) -> float:
        """Of a guess by π: its entropy, or min(π, 1 − π)."""
        share = self.positive_share
        entropy = -share * math.log(share) - (1 - share) * math.log(1 - share)
        return entropy if threshold_on == 'loss' else min(share, 1 - share)

    def oracle(self, prompt: Prompt, link_params: Any) -> jax.Array:
        """Bayes' logits (N, 2): log π/(1 − π) + log mean_S Π_{i∈S} exp(θ⟨ξ, x_i⟩ − θ²/2), over all S of R tokens."""
        log_ratio_N = self.signal * prompt.x_NxD @ link_params['xi_D'] - self.signal**2 / 2
        # Elementary symmetric polynomials of the ratios: entry r is of r tokens among those read.
        start_R = jnp.full(self.num_informative + 1, -jnp.inf).at[0].set(0.0)

        def read(sums_R: jax.Array, log_ratio: jax.Array) -> tuple[jax.Array, None]:
            return sums_R.at[1:].set(jnp.logaddexp(sums_R[1:], sums_R[:-1] + log_ratio)), None

        sums_R, _ = jax.lax.scan(read, start_R, log_ratio_N)
        return self._logits(sums_R[-1] - math.log(math.comb(self.seq_len, self.num_informative)))

    def trivial(self, prompt: Prompt, link_params: Any) -> jax.Array:
        """The logits of π, (N, 2)."""
        return self._logits(jnp.float32(0))

    def _logits(self, evidence: jax.Array) -> jax.Array:
        logit = math.log(self.positive_share / (1 - self.positive_share)) + evidence
        return jnp.broadcast_to(jnp.stack([jnp.zeros_like(logit), logit]), (self.seq_len, 2))
