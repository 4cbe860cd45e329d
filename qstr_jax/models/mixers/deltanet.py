"""DeltaNet (Yang et al., arXiv:2406.06484) and Gated DeltaNet (Yang et al., arXiv:2412.06464)."""

from typing import Literal

import jax
import jax.numpy as jnp
from flax import linen as nn

from qstr_jax.models.mixers import matrix_state
from qstr_jax.models.mixers.registered import register


@register('deltanet')
class DeltaNet(nn.Module):
    """A matrix memory in which a key's new value replaces its old one, by a share β.

    Keys and queries are of length one, after SiLU; β = σ(w^T x). The outputs of each head are normalised.

    Attributes:
        heads: H.
        head_dim: K = V, width of keys and values.
        form: 'parallel' products of (N, N) matrices, or a 'recurrent' loop over tokens; the results agree.
    """

    heads: int = 2
    head_dim: int = 16
    form: Literal['parallel', 'recurrent'] = 'parallel'

    @nn.compact
    def __call__(self, x_NxW: jax.Array) -> jax.Array:
        inputs = delta_inputs(x_NxW, self.heads, self.head_dim)
        return read_out(matrix_state.run(self, inputs, self.form), x_NxW)

    def state_size(self, width: int, seq_len: int) -> int:
        return matrix_state.state_size(self.heads, self.head_dim, self.head_dim)


def delta_inputs(x_NxW: jax.Array, heads: int, head_dim: int) -> matrix_state.Inputs:
    """Queries, keys, values and β; called inside a compact module."""
    shape = (heads, head_dim)
    q, k, v = (nn.DenseGeneral(shape, use_bias=False, name=name)(x_NxW) for name in ('query', 'key', 'value'))
    beta_NxH = jax.nn.sigmoid(nn.Dense(heads, use_bias=False, name='beta')(x_NxW))
    q, k, v = jax.nn.silu(q), jax.nn.silu(k), jax.nn.silu(v)
    scale = head_dim**-0.5
    return matrix_state.Inputs(scale * matrix_state.unit(q), matrix_state.unit(k), v, None, beta_NxH)


def read_out(o_NxHxV: jax.Array, x_NxW: jax.Array) -> jax.Array:
    """Normalised heads, projected to the width of x."""
    o_NxHxV = nn.RMSNorm(name='head_norm')(o_NxHxV)
    return nn.DenseGeneral(x_NxW.shape[-1], axis=(-2, -1), use_bias=False, name='out')(o_NxHxV)


@register('gated_deltanet')
class GatedDeltaNet(nn.Module):
    """DeltaNet whose memory also decays: g = −e^{a} softplus(w^T x + b), as Mamba-2's.

    Attributes:
        heads: H.
        head_dim: K = V, width of keys and values.
        form: 'parallel' products of (N, N) matrices, or a 'recurrent' loop over tokens; the results agree.
    """

    heads: int = 2
    head_dim: int = 16
    form: Literal['parallel', 'recurrent'] = 'parallel'

    @nn.compact
    def __call__(self, x_NxW: jax.Array) -> jax.Array:
        inputs = delta_inputs(x_NxW, self.heads, self.head_dim)
        inputs = inputs._replace(g=log_decay(self, x_NxW, self.heads))
        o_NxHxV = nn.RMSNorm(name='head_norm')(matrix_state.run(self, inputs, self.form))
        gate_NxHxV = nn.DenseGeneral((self.heads, self.head_dim), use_bias=False, name='gate')(x_NxW)
        out = nn.DenseGeneral(x_NxW.shape[-1], axis=(-2, -1), use_bias=False, name='out')
        return out(o_NxHxV * jax.nn.silu(gate_NxHxV))

    def state_size(self, width: int, seq_len: int) -> int:
        return matrix_state.state_size(self.heads, self.head_dim, self.head_dim)


def log_decay(module: nn.Module, x_NxW: jax.Array, heads: int) -> jax.Array:
    """−e^{a} softplus(w^T x + b) (N, H): e^a from U(1, 16), and softplus(b) log-uniform in 0.001 … 0.1."""

    def log_rate(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
        return jnp.log(jax.random.uniform(key, shape, minval=1.0, maxval=16.0))

    def bias(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
        step = jnp.exp(jax.random.uniform(key, shape, minval=jnp.log(1e-3), maxval=jnp.log(1e-1)))
        return step + jnp.log(-jnp.expm1(-step))  # the inverse of softplus

    rate_H = jnp.exp(module.param('log_rate', log_rate, (heads,)))
    bias_H = module.param('step_bias', bias, (heads,))
    step_NxH = jax.nn.softplus(nn.Dense(heads, use_bias=False, name='step')(x_NxW) + bias_H[None])
    return -rate_H[None] * step_NxH
