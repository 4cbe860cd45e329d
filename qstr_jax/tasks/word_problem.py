"""The word problem of a finite group, the product of all elements so far: what `modular_sum` and `permutations` ask.

Addition modulo m and the composition of permutations are the tasks of Ebrahimi et al., "On the Induction Bias in
Sequence Models", arXiv:2602.18333, where recurrent networks need far fewer samples than Transformers. We had only its
abstract and summaries. Supervision by the outcome alone is 'last' here, supervision by aligned steps 'each'; chains of
thought are left out.
"""

import dataclasses
import math
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from qstr_jax.tasks.base import Sequence, logits_of
from qstr_jax.tasks.task import Prompt


@dataclasses.dataclass(frozen=True)
class WordProblem(Sequence):
    """Tokens are uniform elements of a group G, as indicators; y_i = g_i ∘ … ∘ g_1. A task writes `table`.

    Attributes:
        supervised: which positions count: 'each' or the 'last'.
    """

    supervised: Literal['each', 'last'] = 'each'

    loss = 'cross_entropy'

    def table(self) -> np.ndarray:
        """Number of a ∘ b, in row a and column b, (|G|, |G|)."""
        raise NotImplementedError

    @property
    def token_dim(self) -> int:
        """|G|, indicators of the element."""
        return len(self.table())

    @property
    def num_outputs(self) -> int:
        """|G|, logits of the elements."""
        return len(self.table())

    def products(self, tokens_N: jax.Array) -> jax.Array:
        """Products of the first 1, …, N elements, (N,)."""
        table = jnp.asarray(self.table())
        return jax.lax.associative_scan(lambda before, after: table[after, before], tokens_N)

    def sample(self, key: jax.Array, link_params: Any) -> Prompt:
        """Draws one prompt; arguments as in `Task.sample`."""
        tokens_N = jax.random.randint(key, (self.seq_len,), 0, self.token_dim)
        return Prompt(
            x_NxD=jax.nn.one_hot(tokens_N, self.token_dim),
            t_NxQ=jnp.zeros((self.seq_len, 0), jnp.int32),
            y_N=self.products(tokens_N),
            weights_N=jax.nn.one_hot(self.seq_len - 1, self.seq_len) if self.supervised == 'last' else None,
        )

    def no_retrieval(self, threshold_on: str) -> float:
        """The error of a guess among all elements; the first position needs none, since its label is its token."""
        share = 1.0 if self.supervised == 'last' else 1 - 1 / self.seq_len
        return share * (math.log(self.num_outputs) if threshold_on == 'loss' else 1 - 1 / self.num_outputs)

    def oracle(self, prompt: Prompt, link_params: Any) -> jax.Array:
        """Logits of the labels, (N, C): no error."""
        return logits_of(self.products(jnp.argmax(prompt.x_NxD, axis=1)), self.num_outputs)

    def trivial(self, prompt: Prompt, link_params: Any) -> jax.Array:
        """Logits of the first element at its position and zeros elsewhere, (N, C)."""
        return self.oracle(prompt, link_params).at[1:].set(0.0)
