"""A model whose parameters are altered whenever it is applied, such as one without a block of W_QK."""

import dataclasses
from typing import Any

import jax


@dataclasses.dataclass(frozen=True)
class Altered:
    """A Transformer that is applied to altered parameters; a subclass says how.

    Attributes:
        module: the `models.Transformer`.
    """

    module: Any

    def altered(self, params: dict) -> dict:
        """The parameters that the Transformer is applied to.

        Args:
            params: its own, by layer.
        """
        raise NotImplementedError

    def init(self, key: jax.Array, z_NxE: jax.Array) -> dict:
        """First parameters of the Transformer.

        Args:
            key: typed key.
            z_NxE: an encoded prompt, (N, D_e).
        """
        return self.module.init(key, z_NxE)

    def __call__(self, z_NxE: jax.Array, position: Any = None) -> jax.Array:
        """Not called; its arguments tell `models.predict` that there can be a position."""
        raise NotImplementedError

    def apply(self, params: dict, z_NxE: jax.Array, position: Any = None) -> jax.Array:
        """Predictions with the altered parameters.

        Args:
            params: of the Transformer, {'params': …}.
            z_NxE: the encoded prompt, (N, D_e).
            position: index of the position, or None for all.

        Returns:
            (N,), or () at one position.
        """
        return self.module.apply({'params': self.altered(params['params'])}, z_NxE, position=position)
