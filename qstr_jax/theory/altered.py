"""Transformers whose parameters are altered whenever they are applied, such as without a block of W_QK.

A plugin with the model `block_diagonal`; `partly_given` has another.
"""

from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn

from qstr_jax import models


class Altered(nn.Module):
    """A Transformer that is applied to altered parameters; a subclass says how.

    Attributes:
        module: the `models.Transformer`, whose parameters these are.
    """

    module: nn.Module

    def altered(self, params: dict) -> dict:
        """The parameters, by layer, that the Transformer is applied to."""
        raise NotImplementedError

    def __call__(self, z_NxE: jax.Array, position: Any = None, length: Any = None) -> jax.Array:
        """Never called; its signature tells `models.predict` that the model takes a position and a length."""
        raise NotImplementedError

    def init(self, *arguments: Any, **more: Any) -> Any:
        """First parameters of the Transformer."""
        return self.module.init(*arguments, **more)

    def apply(self, variables: Any, *arguments: Any, **more: Any) -> Any:
        """Applies the Transformer to the altered parameters."""
        return self.module.apply({**variables, 'params': self.altered(variables['params'])}, *arguments, **more)


class BlockDiagonal(Altered):
    """A merged Transformer whose W_QK has no block between tokens and encodings (Proposition 21).

    Attributes:
        token_dim: d.
    """

    token_dim: int = 1

    def altered(self, params: dict) -> dict:
        """The parameters with the blocks between tokens and encodings set to zero."""
        attention = params['attention']
        is_token_E = jnp.arange(attention['qk_HxExE'].shape[-1]) < self.token_dim
        mask_ExE = is_token_E[:, None] == is_token_E[None, :]
        return {**params, 'attention': {**attention, 'qk_HxExE': attention['qk_HxExE'] * mask_ExE[None]}}


@models.register('block_diagonal')
def block_diagonal(task: Any, num_heads: int | None = None, mlp_width: int = 100) -> nn.Module:
    """A Transformer whose scores pair tokens with tokens and encodings with encodings only (Proposition 21).

    Args:
        task: sets the number of heads, and d.
        num_heads: H; None is q.
        mlp_width: m, width of the ReLU layer.
    """
    module = models.build('transformer', task, num_heads=num_heads, mlp_width=mlp_width, attention='merged')
    return BlockDiagonal(module=module, token_dim=task.token_dim)
