"""Which token says something, and what? Token retrieval (Vural, Bietti, Soltanolkotabi and Wu, arXiv:2603.15923).

We had only the paper's abstract: one token of the prompt is informative, the label is a one-to-one map of it, and
tokens have random embeddings, which are not orthogonal. What sets that token apart is our choice: all others come from
a second vocabulary, which says nothing. The label stands at all N positions, since our models answer at each.
"""

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp

from qstr_jax.settings import checks
from qstr_jax.tasks import links
from qstr_jax.tasks.base import Sequence, logits_of
from qstr_jax.tasks.task import Prompt, register


@register('informative_token')
@dataclasses.dataclass(frozen=True)
class InformativeToken(Sequence):
    """x_i = √d e(w_i), y = π(w_t): w_t is one of V informative tokens, all others are among V that say nothing.

    t is uniform on [N], the 2V embeddings e on the unit sphere; π is a uniform permutation.

    Attributes:
        token_dim: d, of the embeddings.
        vocab_size: V, informative tokens and classes.
    """

    token_dim: int = 10
    vocab_size: int = 16

    loss = 'cross_entropy'

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.integer('token_dim', self.token_dim, 2)  # unit vectors in R are ±1
        checks.integer('vocab_size', self.vocab_size, 2)

    @property
    def num_outputs(self) -> int:
        """V, logits of the labels."""
        return self.vocab_size

    def draw_link(self, key: jax.Array) -> Any:
        """e, of which the first V are informative, and the labels of these."""
        key_e, key_label = jax.random.split(key)
        return {
            'e_MxD': links.unit_vectors(key_e, (2 * self.vocab_size, self.token_dim)),
            'label_V': jax.random.permutation(key_label, self.vocab_size),
        }

    def sample(self, key: jax.Array, link_params: Any) -> Prompt:
        """Draws one prompt; arguments as in `Task.sample`."""
        key_place, key_token, key_others = jax.random.split(key, 3)
        t = jax.random.randint(key_place, (), 0, self.seq_len)
        token = jax.random.randint(key_token, (), 0, self.vocab_size)
        others_N = jax.random.randint(key_others, (self.seq_len,), self.vocab_size, 2 * self.vocab_size)
        return Prompt(
            x_NxD=math.sqrt(self.token_dim) * link_params['e_MxD'][others_N.at[t].set(token)],
            t_NxQ=jnp.broadcast_to(t, (self.seq_len, 1)),
            y_N=jnp.broadcast_to(link_params['label_V'][token], (self.seq_len,)),
        )

    def no_retrieval(self, threshold_on: str) -> float:
        """The error of a guess: log V, or 1 − 1/V."""
        return math.log(self.vocab_size) if threshold_on == 'loss' else 1 - 1 / self.vocab_size

    def oracle(self, prompt: Prompt, link_params: Any) -> jax.Array:
        """Logits (N, V) of the label of the only token with an informative embedding: no error."""
        overlap_NxV = prompt.x_NxD @ link_params['e_MxD'][: self.vocab_size].T
        label = jnp.take(link_params['label_V'], jnp.argmax(jnp.max(overlap_NxV, axis=0)))
        return logits_of(jnp.broadcast_to(label, (self.seq_len,)), self.num_outputs)

    def trivial(self, prompt: Prompt, link_params: Any) -> jax.Array:
        """The same logits for all labels, (N, V)."""
        return jnp.zeros((self.seq_len, self.num_outputs))
