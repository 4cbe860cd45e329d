"""The paper's deep transitions (Section 5, arXiv:2503.11272), in one direction."""

import jax
from flax import linen as nn

from qstr_jax.models import deep_cell
from qstr_jax.models.mixers.registered import register
from qstr_jax.settings import checks


@register('deep_cell')
class DeepCell(nn.Module):
    """h ← Π_r(h + f(h, x)), where f is a ReLU MLP of two layers whose last has no bias.

    Attributes:
        state_dim: d_h, numbers of the state.
        hidden_dim: hidden units of f.
        radius: r_h, largest norm of the state; None leaves it free.
        lipschitz: α_N, bound on how far the state moves with the one before; None leaves it free.
    """

    state_dim: int = 64
    hidden_dim: int = 64
    radius: float | None = None
    lipschitz: float | None = None

    @nn.compact
    def __call__(self, x_NxW: jax.Array) -> jax.Array:
        if self.radius is not None:
            checks.positive('deep_cell.radius', self.radius)
        if self.lipschitz is not None:
            checks.number('deep_cell.lipschitz', self.lipschitz, 0)
        cell = deep_cell.DeepCell(
            self.state_dim, (self.hidden_dim,), self.radius, self.lipschitz, initializer='flax', name='cell'
        )
        return nn.Dense(x_NxW.shape[-1], name='out')(cell(x_NxW[None])[0])

    def state_size(self, width: int, seq_len: int) -> int:
        return self.state_dim
