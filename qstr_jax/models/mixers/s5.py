"""S5 (Smith et al., arXiv:2208.04933): a linear state space model with a diagonal complex matrix."""

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from qstr_jax.models.mixers import diagonal
from qstr_jax.models.mixers.registered import register


@register('s5')
class S5(nn.Module):
    """h ← e^{ΛΔ} h + Λ^{−1} (e^{ΛΔ} − 1) B x, y = 2 Re(C h) + D x, with h, Λ, B, C complex and a step Δ for each state.

    Λ starts with those eigenvalues of the normal part of HiPPO-LegS that have positive imaginary parts; the others are
    their conjugates, hence 2 Re. The output is g ∘ σ(W g) with g = GELU(y).

    Attributes:
        state_dim: complex numbers of the state.
        form: 'parallel', an associative scan, or 'recurrent'; the results agree.
    """

    state_dim: int = 32
    form: diagonal.Form = 'parallel'

    @nn.compact
    def __call__(self, x_NxW: jax.Array) -> jax.Array:
        width = x_NxW.shape[-1]
        rate_F = jnp.exp(self.param('log_rate', lambda key: jnp.log(-_hippo(self.state_dim)[0].real)))
        lambda_F = jax.lax.complex(-rate_F, self.param('frequency', lambda key: _hippo(self.state_dim)[0].imag))
        step_F = jnp.exp(self.param('log_step', _log_steps, (self.state_dim,)))
        decay_F = jnp.exp(lambda_F * step_F)
        b_WxF = self._complex('b', (width, self.state_dim)) * ((decay_F - 1) / lambda_F)[None]
        c_FxW = self._complex('c', (self.state_dim, width))
        inputs_NxF = jax.lax.complex(x_NxW @ b_WxF.real, x_NxW @ b_WxF.imag)
        h_NxF = diagonal.run(self, jnp.broadcast_to(decay_F[None], inputs_NxF.shape), inputs_NxF, self.form)
        skip_W = self.param('skip', nn.initializers.normal(1.0), (width,))
        y_NxW = 2 * (h_NxF.real @ c_FxW.real - h_NxF.imag @ c_FxW.imag) + skip_W[None] * x_NxW
        g_NxW = jax.nn.gelu(y_NxW)
        return g_NxW * jax.nn.sigmoid(nn.Dense(width, name='gate')(g_NxW))

    def _complex(self, name: str, shape: tuple[int, int]) -> jax.Array:
        """A complex matrix: drawn real on the whole space, then written in the basis of HiPPO's eigenvectors."""
        init = nn.initializers.lecun_normal()

        def draw(key: jax.Array) -> jax.Array:
            vectors_GxF = _hippo(self.state_dim)[1]
            if name == 'b':
                kernel = init(key, (shape[0], 2 * self.state_dim)) @ jnp.asarray(vectors_GxF.conj())
            else:
                kernel = jnp.asarray(vectors_GxF.T) @ init(key, (2 * self.state_dim, shape[1]))
            return jnp.stack([kernel.real, kernel.imag])

        parts = self.param(name, draw)
        return jax.lax.complex(parts[0], parts[1])

    def state_size(self, width: int, seq_len: int) -> int:
        """Real and imaginary parts."""
        return 2 * self.state_dim


def _hippo(num_states: int) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues (F,) and eigenvectors (2F, F) of HiPPO-LegS's normal part, one of each conjugate pair."""
    root_G = np.sqrt(np.arange(2 * num_states) + 0.5)
    skew_GxG = np.tril(root_G[:, None] * root_G[None, :], -1)
    skew_GxG = skew_GxG.T - skew_GxG
    values_G, vectors_GxG = np.linalg.eigh(-1j * skew_GxG)
    values_F, vectors_GxF = -0.5 + 1j * values_G[num_states:], vectors_GxG[:, num_states:]
    return values_F.astype(np.complex64), vectors_GxF.astype(np.complex64)


def _log_steps(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """Steps log-uniform in 0.001 … 0.1."""
    return jax.random.uniform(key, shape, minval=jnp.log(1e-3), maxval=jnp.log(1e-1))
