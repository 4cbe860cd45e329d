"""mLSTM of xLSTM (Beck et al., arXiv:2405.04517): a matrix memory with an exponential input gate."""

import jax
import jax.numpy as jnp
from flax import linen as nn

from qstr_jax.models import carry
from qstr_jax.models.mixers import matrix_state
from qstr_jax.models.mixers.registered import register

# Cap of a gate's pre-activation, as in xLSTM 7B (arXiv:2503.13427): without it e^{−m} overflows where both gates are
# shut.
GATE_CAP = 15.0


@register('mlstm')
class MLSTM(nn.Module):
    """C ← f C + i k v^T, n ← f n + i k, h = C^T q / max(|n^T q|, e^{−m}), with f = σ(·), i = exp(·), and m their scale.

    C, n and the gates are kept relative to e^m, m ← max(log f + m, log i), so that nothing overflows; the
    pre-activations x of both gates become 15 tanh(x / 15). The outputs of each head are normalised and multiplied by an
    output gate.

    Attributes:
        heads: H.
        head_dim: K = V, width of keys and values.
        output: 'gated' (normalised in each head, then gated), 'normed' (no gate), 'unnormed' (no norm) or 'plain'.
    """

    heads: int = 2
    head_dim: int = 16
    output: matrix_state.Output = 'gated'

    @nn.compact
    def __call__(self, x_NxW: jax.Array) -> jax.Array:
        q, k, v = (matrix_state.heads_of(name, x_NxW, self.heads, self.head_dim) for name in ('query', 'key', 'value'))
        log_i_NxH = self._gate('input', x_NxW, nn.initializers.normal(0.1))
        forget_NxH = self._gate('forget', x_NxW, _forget_bias)
        memory_HxKxV = jnp.zeros((self.heads, self.head_dim, self.head_dim))
        start = (memory_HxKxV, memory_HxKxV[..., 0], jnp.zeros(self.heads))
        inputs = (self.head_dim**-0.5 * q, k, v, log_i_NxH, jax.nn.log_sigmoid(forget_NxH))
        h_NxHxV = carry.scan(self, _step, start, inputs)
        if self.output in matrix_state.NORMED:
            h_NxHxV = nn.LayerNorm(use_bias=False, feature_axes=(-2, -1), name='head_norm')(h_NxHxV)
        if self.output in matrix_state.GATED:
            gate_NxHxV = matrix_state.heads_of('output_gate', x_NxW, self.heads, self.head_dim)
            h_NxHxV = h_NxHxV * jax.nn.sigmoid(gate_NxHxV)
        return matrix_state.merged(h_NxHxV, x_NxW.shape[-1])

    def _gate(self, name: str, x_NxW: jax.Array, bias: nn.initializers.Initializer) -> jax.Array:
        """Pre-activations (N, H), softly capped; at the start they are the biases alone."""
        gate_NxH = nn.Dense(self.heads, kernel_init=nn.initializers.zeros, bias_init=bias, name=f'{name}_gate')(x_NxW)
        return GATE_CAP * jnp.tanh(gate_NxH / GATE_CAP)

    def state_size(self, width: int, seq_len: int) -> int:
        """C, n and m."""
        return self.heads * (self.head_dim**2 + self.head_dim + 1)


def _forget_bias(key: jax.Array, shape: tuple[int, ...], dtype: object = None) -> jax.Array:
    """Biases from 3 to 6 over the heads."""
    return jnp.linspace(3.0, 6.0, shape[0])


def _step(
    state: tuple[jax.Array, jax.Array, jax.Array], one: tuple[jax.Array, ...]
) -> tuple[tuple[jax.Array, jax.Array, jax.Array], jax.Array]:
    memory_HxKxV, norm_HxK, scale_H = state
    q_HxK, k_HxK, v_HxV, log_i_H, log_f_H = one
    new_scale_H = jnp.maximum(log_f_H + scale_H, log_i_H)
    f_Hx1, i_Hx1 = jnp.exp(log_f_H + scale_H - new_scale_H)[:, None], jnp.exp(log_i_H - new_scale_H)[:, None]
    memory_HxKxV = f_Hx1[..., None] * memory_HxKxV + (i_Hx1 * k_HxK)[:, :, None] * v_HxV[:, None, :]
    norm_HxK = f_Hx1 * norm_HxK + i_Hx1 * k_HxK
    size_H = jnp.maximum(jnp.abs(jnp.einsum('hk,hk->h', q_HxK, norm_HxK)), jnp.exp(-new_scale_H)) + 1e-6
    h_HxV = jnp.einsum('hk,hkv->hv', q_HxK, memory_HxKxV) / size_H[:, None]
    return (memory_HxKxV, norm_HxK, new_scale_H), h_HxV
