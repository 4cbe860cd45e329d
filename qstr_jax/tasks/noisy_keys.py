"""Continuous associative recall: a noisy key asks for the token whose key is nearest (ours, after MQAR)."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from qstr_jax.settings import checks
from qstr_jax.tasks import links
from qstr_jax.tasks.base import Sequence
from qstr_jax.tasks.task import Prompt, register


@register('noisy_keys')
@dataclasses.dataclass(frozen=True)
class NoisyKeys(Sequence):
    """x_i = (v_i, κ_i, r_i): a value ~ N(0, I), a key on the unit sphere, and a query κ_j + σ ξ/√k, ξ ~ N(0, I).

    j is uniform on [N]. The label is ⟨u, v_m⟩, where u is a unit vector and m the token whose key is nearest to r_i.
    Keys are drawn anew in each prompt.

    Attributes:
        value_dim: d.
        key_dim: k.
        noise: σ, about the length of the noise.
    """

    value_dim: int = 10
    key_dim: int = 8
    noise: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.integer('value_dim', self.value_dim)
        checks.integer('key_dim', self.key_dim, 2)  # unit vectors in R are ±1
        checks.number('noise', self.noise, 0)

    @property
    def token_dim(self) -> int:
        """d + 2 k."""
        return self.value_dim + 2 * self.key_dim

    def draw_link(self, key: jax.Array) -> Any:
        """u, uniform on the unit sphere."""
        return {'u_D': links.unit_vectors(key, (self.value_dim,))}

    def sample(self, key: jax.Array, link_params: Any) -> Prompt:
        """Draws one prompt; arguments as in `Task.sample`."""
        key_values, key_keys, key_noise, key_asked = jax.random.split(key, 4)
        values_NxD = jax.random.normal(key_values, (self.seq_len, self.value_dim))
        keys_NxK = links.unit_vectors(key_keys, (self.seq_len, self.key_dim))
        noise_NxK = jax.random.normal(key_noise, keys_NxK.shape) / jnp.sqrt(self.key_dim)
        asked_N = jax.random.randint(key_asked, (self.seq_len,), 0, self.seq_len)
        x_NxD = jnp.concatenate([values_NxD, keys_NxK, keys_NxK[asked_N] + self.noise * noise_NxK], axis=1)
        nearest_N = self._nearest(x_NxD)
        return Prompt(x_NxD=x_NxD, t_NxQ=nearest_N[:, None], y_N=values_NxD[nearest_N] @ link_params['u_D'])

    def _nearest(self, x_NxD: jax.Array) -> jax.Array:
        """The token whose key is nearest to each query, (N,)."""
        _, keys_NxK, queries_NxK = jnp.split(x_NxD, [self.value_dim, self.value_dim + self.key_dim], axis=1)
        return jnp.argmax(queries_NxK @ keys_NxK.T, axis=1)  # keys are unit vectors

    def no_retrieval(self, threshold_on: str) -> float:
        """1 − 1/N: labels have variance 1, and all tokens are equally likely."""
        return 1 - 1 / self.seq_len

    def oracle(self, prompt: Prompt, link_params: Any) -> jax.Array:
        """The labels, (N,)."""
        return prompt.x_NxD[self._nearest(prompt.x_NxD), : self.value_dim] @ link_params['u_D']

    def trivial(self, prompt: Prompt, link_params: Any) -> jax.Array:
        """Mean over all tokens, (N,)."""
        values_N = prompt.x_NxD[:, : self.value_dim] @ link_params['u_D']
        return jnp.broadcast_to(jnp.mean(values_N), values_N.shape)
