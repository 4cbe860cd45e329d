"""The recurrent cell of the theory: deep transitions, projected onto a ball, with a bounded Lipschitz factor."""

import itertools
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn

from qstr_jax import decompositions
from qstr_jax.models import carry, initializers


def project_ball(h: jax.Array, radius: float) -> jax.Array:
    """Projects onto the ball, Π_r h = min(1, r/‖h‖) h, over the last axis; smooth at 0."""
    square = jnp.sum(h**2, axis=-1, keepdims=True)
    shrunk = radius / jnp.sqrt(jnp.maximum(square, radius**2))
    return h * jnp.where(square > radius**2, shrunk, 1.0)


class DeepCell(nn.Module):
    """The paper's deep transitions h ← Π_r(h + f(h, z)), where f is a ReLU MLP whose last layer has no bias.

    Attributes:
        width: d_h.
        hidden_widths: widths of f's hidden layers, L_h − 1 of them.
        radius: r_h; None leaves the projection Π out.
        lipschitz: α_N, the bound on ‖W_L‖_op ⋯ ‖W_2‖_op ‖W_{1,h}‖_op. The forward pass enforces it by
            W_{1,h} ← W_{1,h} min(1, α_N/product). With 0 the hidden state has no effect on f; None sets no bound.
        initializer: 'flax' or 'pytorch', see `initializers`.
    """

    width: int
    hidden_widths: tuple[int, ...]
    radius: float | None = None
    lipschitz: float | None = None
    initializer: str = 'pytorch'

    @nn.compact
    def __call__(self, z_KxNxE: jax.Array) -> jax.Array:
        """States (K, N, d_h) of K directions; argument as in `gated_cell.GatedCell`, where K is 2."""
        directions = len(z_KxNxE)
        first_width, *_ = widths = (*self.hidden_widths, self.width)
        fan_in = self.width + z_KxNxE.shape[-1]
        w_hidden = self._kernel('hidden_kernel', fan_in, (directions, self.width, first_width))
        w_input = self._kernel('input_kernel', fan_in, (directions, z_KxNxE.shape[-1], first_width))
        bias_0 = self._bias(0, fan_in, (directions, first_width))
        kernels: list[jax.Array] = []
        biases: list[jax.Array | None] = []
        for i, (rows, columns) in enumerate(itertools.pairwise(widths), start=1):
            kernels.append(self._kernel(f'kernel_{i}', rows, (directions, rows, columns)))
            biases.append(self._bias(i, rows, (directions, columns)) if i < len(widths) - 1 else None)
        w_hidden = self._bounded(w_hidden, kernels)
        inputs_of = tuple(z_KxNxE[k] @ w_input[k] + bias_0[k][None] for k in range(directions))

        # Split by direction before the scan: its backward pass would otherwise add up gradients of all directions at
        # every token.
        layers_of = [
            [(kernel[k], 0.0 if bias is None else bias[k]) for kernel, bias in zip(kernels, biases, strict=True)]
            for k in range(directions)
        ]
        w_hidden_of = tuple(w_hidden)

        def step(k: int, h_H: jax.Array, inputs_M: jax.Array) -> jax.Array:
            layer = inputs_M + h_H @ w_hidden_of[k]
            for kernel, bias in layers_of[k]:
                layer = jax.nn.relu(layer) @ kernel + bias
            h_H = h_H + layer
            return h_H if self.radius is None else project_ball(h_H, self.radius)

        def all_directions(state_of: Any, input_of: Any) -> Any:
            state_of = tuple(step(k, *pair) for k, pair in enumerate(zip(state_of, input_of, strict=True)))
            return state_of, state_of

        start_of = (jnp.zeros(self.width, z_KxNxE.dtype),) * directions
        return jnp.stack(carry.scan(self, all_directions, start_of, inputs_of))

    def _kernel(self, name: str, fan_in: int, shape: tuple[int, int, int]) -> Any:
        init = initializers.kernel(self.initializer, fan_in, in_axis=1, batch_axis=(0,))
        return self.param(name, init, shape)

    def _bias(self, layer: int, fan_in: int, shape: tuple[int, int]) -> Any:
        return self.param(f'bias_{layer}', initializers.bias(self.initializer, fan_in), shape)

    def _bounded(self, w_hidden: jax.Array, kernels: list[jax.Array]) -> jax.Array:
        """W_{1,h}, shrunk so that the product of operator norms is at most α_N in each direction."""
        if self.lipschitz is None:
            return w_hidden
        if self.lipschitz == 0:
            return jnp.zeros_like(w_hidden)
        norms = jax.vmap(decompositions.operator_norm)
        product = norms(w_hidden)
        for kernel in kernels:
            product = product * norms(kernel)
        # This is min(1, α/product), written so that gradients stay finite where weights, and so the product, are zero.
        return w_hidden * (self.lipschitz / jnp.maximum(product, self.lipschitz))[:, None, None]
