"""qSTR with a varying number of relevant tokens. The definition is ours."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from qstr_jax.tasks import links
from qstr_jax.tasks.task import Draw, Prompt, register
from qstr_jax.tasks.variant import Variant


@register('varying_qstr')
@dataclasses.dataclass(frozen=True)
class VaryingQSTR(Variant):
    """qSTR where position i asks for q_i tokens, q_i uniform on {0, …, q}.

    The other entries of t_i are −1 and encoded as 0; the link reads 0 in place of their tokens.
    """

    def draw_indices(self, key: jax.Array, unit_RxQ: jax.Array) -> jax.Array:
        """Indices (N, q), −1 where nothing is asked for."""
        counts_N = jax.random.randint(jax.random.fold_in(key, 0), (self.seq_len,), 0, self.sparsity + 1)
        is_asked_NxQ = jnp.arange(self.sparsity)[None] < counts_N[:, None]
        return jnp.where(is_asked_NxQ, super().draw_indices(key, unit_RxQ), -1)

    def labels(self, x_NxD: jax.Array, t_NxQ: jax.Array, link_params: Any) -> jax.Array:
        """Labels (N,); arguments as in `QSTR.labels`."""
        return super().labels(jnp.pad(x_NxD, ((0, 1), (0, 0))), t_NxQ, link_params)  # row −1 of the padded tokens is 0

    def encode(self, prompt: Prompt, task_draw: Draw) -> jax.Array:
        """Encoded tokens (N, D_e); arguments as in `Task.encode`."""
        z_NxE = super().encode(prompt, task_draw)
        is_asked_NxE = jnp.repeat(prompt.t_NxQ >= 0, task_draw.encodings.omega_NxE.shape[1], axis=1)
        plain = z_NxE.shape[1] - is_asked_NxE.shape[1]
        return z_NxE.at[:, plain:].multiply(is_asked_NxE)

    def no_retrieval(self, threshold_on: str) -> float | None:
        """Half of qSTR's, since q/2 tokens are asked for on average."""
        whole = super().no_retrieval(threshold_on)
        return None if whole is None else whole / 2

    def trivial(self, prompt: Prompt, link_params: Any) -> jax.Array:
        """mean_m g(x_m, …, x_m, 0, …, 0) with q_i tokens that are not 0, (N,), for links that are sums."""
        g = links.get(self.link).apply

        def label(t_Q: jax.Array, x_D: jax.Array) -> jax.Array:
            return g(link_params, jnp.where(t_Q[:, None] >= 0, x_D[None], 0.0))

        labels_NxN = jax.vmap(lambda t_Q: jax.vmap(lambda x_D: label(t_Q, x_D))(prompt.x_NxD))(prompt.t_NxQ)
        return jnp.mean(labels_NxN, axis=1)
