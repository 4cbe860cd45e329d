"""Single-location regression: the token that counts is marked by a direction and named nowhere.

Marion et al., arXiv:2410.01537; Duranthon et al., arXiv:2509.21936; Sagitova et al., arXiv:2603.03993. We had only
their abstracts: one token at a latent random position makes the label, a linear map of it, and a linear projection
gives the position away. The rest is ours: both directions are orthogonal unit vectors, and the label
stands at all N positions, since our models answer at each.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from qstr_jax.settings import checks
from qstr_jax.tasks.base import Sequence
from qstr_jax.tasks.task import Prompt, register


@register('latent_index')
@dataclasses.dataclass(frozen=True)
class LatentIndex(Sequence):
    """x_i = √ν 1[i = ε] k + ξ_i, ξ_i ~ N(0, I), ε uniform on [N]; y = ⟨v, x_ε⟩ + √Δ ζ at every position, ζ ~ N(0, 1).

    Attributes:
        token_dim: d, at least 2.
        signal: ν.
        label_noise: Δ.
    """

    token_dim: int = 10
    signal: float = 9.0
    label_noise: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.integer('token_dim', self.token_dim, 2)
        checks.number('signal', self.signal, 0)
        checks.number('label_noise', self.label_noise, 0)

    def draw_link(self, key: jax.Array) -> Any:
        """k and v, orthogonal unit vectors."""
        k_D, v_D = jnp.linalg.qr(jax.random.normal(key, (self.token_dim, 2)))[0].T
        return {'k_D': k_D, 'v_D': v_D}

    def sample(self, key: jax.Array, link_params: Any) -> Prompt:
        """Draws one prompt; arguments as in `Task.sample`."""
        key_x, key_index, key_y = jax.random.split(key, 3)
        index = jax.random.randint(key_index, (), 0, self.seq_len)
        x_NxD = jax.random.normal(key_x, (self.seq_len, self.token_dim))
        x_NxD = x_NxD.at[index].add(jnp.sqrt(self.signal) * link_params['k_D'])
        y = x_NxD[index] @ link_params['v_D'] + jnp.sqrt(self.label_noise) * jax.random.normal(key_y)
        return Prompt(
            x_NxD=x_NxD, t_NxQ=jnp.broadcast_to(index, (self.seq_len, 1)), y_N=jnp.broadcast_to(y, (self.seq_len,))
        )

    def no_retrieval(self, threshold_on: str) -> float:
        """1 − 1/N + Δ."""
        return 1 - 1 / self.seq_len + self.label_noise

    def posterior(self, prompt: Prompt, link_params: Any) -> jax.Array:
        """P(ε = i | x) = softmax_i(√ν ⟨k, x_i⟩), (N,)."""
        return jax.nn.softmax(jnp.sqrt(self.signal) * prompt.x_NxD @ link_params['k_D'])

    def oracle(self, prompt: Prompt, link_params: Any) -> jax.Array:
        """Bayes' predictor Σ_i P(ε = i | x) ⟨v, x_i⟩, (N,): softmax attention."""
        y = self.posterior(prompt, link_params) @ (prompt.x_NxD @ link_params['v_D'])
        return jnp.broadcast_to(y, (self.seq_len,))

    def trivial(self, prompt: Prompt, link_params: Any) -> jax.Array:
        """Mean over all tokens, (N,)."""
        return jnp.broadcast_to(jnp.mean(prompt.x_NxD @ link_params['v_D']), (self.seq_len,))
