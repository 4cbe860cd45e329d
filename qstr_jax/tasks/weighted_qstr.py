"""qSTR with weighted retrieval. The definition is ours."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from qstr_jax.tasks import links
from qstr_jax.tasks.task import Draw, Prompt, register
from qstr_jax.tasks.variant import Variant

LEAST, MOST = 0.5, 1.5


@register('weighted_qstr')
@dataclasses.dataclass(frozen=True)
class WeightedQSTR(Variant):
    """y_i = g(w_i1 x_{t_i1}, …, w_iq x_{t_iq}), with weights w ~ Unif[1/2, 3/2] that position i gives.

    They are encoded beside the indices, as w_il ω_{t_il}; `Prompt.x_NxD` has them behind the tokens.
    """

    def _prompt(self, key: jax.Array, numbers: tuple[jax.Array, jax.Array], link_params: Any) -> Prompt:
        plain = super()._prompt(key, numbers, link_params)
        weights_NxQ = jax.random.uniform(jax.random.fold_in(key, 2), plain.t_NxQ.shape, jnp.float32, LEAST, MOST)
        prompt = plain._replace(x_NxD=jnp.concatenate([plain.x_NxD, weights_NxQ], axis=1))
        return prompt._replace(y_N=self.oracle(prompt, link_params))

    def oracle(self, prompt: Prompt, link_params: Any) -> jax.Array:
        """The labels, (N,)."""
        x_NxD, weights_NxQ = jnp.split(prompt.x_NxD, [self.token_dim], axis=1)
        g = links.get(self.link).apply
        return jax.vmap(lambda t_Q, w_Q: g(link_params, w_Q[:, None] * x_NxD[t_Q]))(prompt.t_NxQ, weights_NxQ)

    def encode(self, prompt: Prompt, task_draw: Draw) -> jax.Array:
        """Encoded tokens (N, D_e); arguments as in `Task.encode`."""
        x_NxD, weights_NxQ = jnp.split(prompt.x_NxD, [self.token_dim], axis=1)
        z_NxE = super().encode(prompt._replace(x_NxD=x_NxD), task_draw)
        weights_NxE = jnp.repeat(weights_NxQ, task_draw.encodings.omega_NxE.shape[1], axis=1)
        return z_NxE.at[:, z_NxE.shape[1] - weights_NxE.shape[1] :].multiply(weights_NxE)

    def no_retrieval(self, threshold_on: str) -> float | None:
        """E w² = 13/12 times qSTR's, for the links that are linear."""
        if links.get(self.link).name not in ('linear', 'sum', 'mean'):
            return None
        whole = super().no_retrieval(threshold_on)
        return None if whole is None else whole * (MOST**3 - LEAST**3) / 3

    def trivial(self, prompt: Prompt, link_params: Any) -> jax.Array:
        """Σ_l w_il mean_m g_l(x_m), (N,), for the links that are linear."""
        g = links.get(self.link).apply
        x_D, weights_NxQ = jnp.mean(prompt.x_NxD[:, : self.token_dim], axis=0), prompt.x_NxD[:, self.token_dim :]
        return jax.vmap(lambda w_Q: g(link_params, w_Q[:, None] * x_D[None]))(weights_NxQ)
