"""Multi-query associative recall (Arora et al., "Zoology", arXiv:2312.04927; its zoology/data/multiquery_ar.py)."""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from qstr_jax.settings import checks
from qstr_jax.tasks.base import Sequence, logits_of
from qstr_jax.tasks.task import Prompt, register


@register('mqar')
@dataclasses.dataclass(frozen=True)
class MQAR(Sequence):
    """Pairs k_1 v_1 k_2 v_2 …, then each key once more among blanks, where the label is its value.

    As in zoology, except that blanks stand between queries; in zoology random tokens do, which can repeat a key with
    another value behind it. Keys and values of a prompt are distinct. Query k stands 2 g_k tokens behind the
    pairs; the g_k are distinct, drawn one after the other with P(g) ∝ (g + 1)^(a − 1).

    Attributes:
        num_pairs: K; None is N/4, the most that there can be.
        vocab_size: V: a blank, V/2 − 1 keys, V/2 values; z_i has the token as V indicators.
        power: a; 1 is uniform.

    Raises:
        ValueError: N is odd, too small for the pairs, or there are fewer keys than pairs.
    """

    num_pairs: int | None = None
    vocab_size: int = 64
    power: float = 0.01

    loss = 'cross_entropy'

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, 'num_pairs', self.seq_len // 4 if self.num_pairs is None else self.num_pairs)
        if self.num_pairs == 0:
            raise ValueError(f'seq_len={self.seq_len}: must be at least 4, since a pair takes four tokens')
        checks.integer('num_pairs', self.num_pairs)
        checks.positive('power', self.power)
        if self.seq_len % 2 or self.seq_len < 4 * self._num_pairs:
            raise ValueError(f'seq_len={self.seq_len}: must be even and at least 4 num_pairs = {4 * self._num_pairs}')
        if self.vocab_size // 2 - 1 < self._num_pairs:
            raise ValueError(f'vocab_size={self.vocab_size}: must be at least 2 num_pairs + 2')

    @property
    def _num_pairs(self) -> int:
        assert self.num_pairs is not None  # `__post_init__` fills it in
        return self.num_pairs

    @property
    def token_dim(self) -> int:
        """V, indicators of the token."""
        return self.vocab_size

    @property
    def num_outputs(self) -> int:
        """V, logits of the tokens."""
        return self.vocab_size

    def no_retrieval(self, threshold_on: str) -> float:
        """The error of the best guess from a query's position alone, which says something about its pair."""
        joint_GxK = _pairs_by_gap(self.seq_len // 2 - self._num_pairs, self._num_pairs, self.power)
        if threshold_on == 'error_rate':
            return float(1 - joint_GxK.max(axis=1).sum())
        return float(-np.sum(joint_GxK * np.log(joint_GxK / joint_GxK.sum(axis=1, keepdims=True))))

    def sample(self, key: jax.Array, link_params: Any) -> Prompt:
        """Draws one prompt; arguments as in `Task.sample`."""
        num_pairs, half = self._num_pairs, self.vocab_size // 2
        key_keys, key_values, key_gaps = jax.random.split(key, 3)
        keys_K = 1 + jax.random.permutation(key_keys, half - 1)[:num_pairs]
        values_K = half + jax.random.permutation(key_values, self.vocab_size - half)[:num_pairs]
        num_gaps = self.seq_len // 2 - num_pairs
        log_p = (self.power - 1) * jnp.log(jnp.arange(1, num_gaps + 1))
        # The largest of log p + Gumbel noise are drawn one after the other without replacement.
        query_K = 2 * num_pairs + 2 * jax.lax.top_k(log_p + jax.random.gumbel(key_gaps, (num_gaps,)), num_pairs)[1]
        tokens_N = jnp.zeros(self.seq_len, jnp.int32)
        tokens_N = tokens_N.at[: 2 * num_pairs].set(jnp.stack([keys_K, values_K], axis=1).ravel())
        positions_N = jnp.arange(self.seq_len)
        return Prompt(
            x_NxD=jax.nn.one_hot(tokens_N.at[query_K].set(keys_K), self.vocab_size),
            t_NxQ=positions_N.at[query_K].set(2 * jnp.arange(num_pairs) + 1)[:, None],
            y_N=tokens_N.at[query_K].set(values_K),
            weights_N=jnp.zeros(self.seq_len).at[query_K].set(1.0),
        )

    def oracle(self, prompt: Prompt, link_params: Any) -> jax.Array:
        """Logits of the value behind the same key, (N, C): no error."""
        tokens_N = jnp.argmax(prompt.x_NxD, axis=-1)
        keys_K, values_K = tokens_N[: 2 * self._num_pairs].reshape(-1, 2).T
        return logits_of(values_K[jnp.argmax(tokens_N[:, None] == keys_K[None], axis=1)], self.num_outputs)

    def trivial(self, prompt: Prompt, link_params: Any) -> jax.Array:
        """Logits of the values of the prompt by the position alone, (N, C): `no_retrieval`."""
        num_pairs = self._num_pairs
        values_K = jnp.argmax(prompt.x_NxD[1 : 2 * num_pairs : 2], axis=-1)
        joint_GxK = _pairs_by_gap(self.seq_len // 2 - num_pairs, num_pairs, self.power)
        gap_N = jnp.maximum(jnp.arange(self.seq_len) // 2 - num_pairs, 0)
        logits_NxK = jnp.log(jnp.asarray(joint_GxK, jnp.float32))[gap_N]
        return jnp.full((self.seq_len, self.num_outputs), -jnp.inf).at[:, values_K].set(logits_NxK)


@functools.cache
def _pairs_by_gap(num_gaps: int, num_pairs: int, power: float) -> np.ndarray:
    """P(g, k), how often a query stands at gap g and asks for pair k, (G, K), estimated by drawing gaps.

    The first pairs are more likely to stand near, since gaps are drawn one after the other.
    """
    log_p = (power - 1) * np.log(np.arange(1, num_gaps + 1))
    noise = np.random.default_rng(0).gumbel(size=(4_000_000 // num_gaps, num_gaps))
    gap_BxK = np.argsort(-(log_p + noise), axis=1)[:, :num_pairs]
    counts_GxK = np.full((num_gaps, num_pairs), 0.1)
    np.add.at(counts_GxK, (gap_BxK, np.arange(num_pairs)), 1)
    return counts_GxK / counts_GxK.sum()
