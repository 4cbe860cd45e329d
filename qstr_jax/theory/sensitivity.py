"""How strongly networks react to their inputs and states: Lipschitz constants (Theorem 7, Proposition 8)."""

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from qstr_jax.models import recurrent
from qstr_jax.models.deep_cell import DeepCell
from qstr_jax.models.gated_cell import GatedCell


def lipschitz_product(kernels: Sequence[jax.Array]) -> jax.Array | float:
    """Π_l ‖W_l‖_op, an upper bound on the Lipschitz constant of a ReLU net."""
    return math.prod(jnp.linalg.norm(kernel, ord=2, axis=(-2, -1)) for kernel in kernels)  # of both directions


def transition_lipschitz(params: dict) -> jax.Array | float:
    """‖W_L‖_op ⋯ ‖W_2‖_op ‖W_{1,h}‖_op of the deep cell's stored weights; Theorem 7 asks for at most α_N.

    A module with `lipschitz=α` shrinks W_{1,h} in the forward pass, so its effective value is at most α.
    """
    cell = params['params']['cell']
    kernels = [cell[f'kernel_{i}'] for i in range(1, sum(n.startswith('kernel_') for n in cell) + 1)]
    return lipschitz_product([cell['hidden_kernel'], *kernels])


def read_out(params: dict, states_F: jax.Array, z_E: jax.Array) -> jax.Array:
    """f_y(h→, h←, z) of a `models.Recurrent(readout='mlp')`."""
    layer = jnp.concatenate([states_F, z_E])
    *hidden, out = _read_out_layers(params)
    for own in hidden:
        layer = jax.nn.relu(layer @ own['kernel'] + own['bias'])
    return (layer @ out['kernel'])[0]


def _read_out_layers(params: dict) -> list[dict]:
    """The read-out's layers readout_0, readout_1, … and 'out', in order."""
    tree = params['params']
    return [*(tree[f'readout_{i}'] for i in range(sum(name.startswith('readout_') for name in tree))), tree['out']]


def state_sensitivity(params: dict, width: int, state_norm: jax.Array | float) -> jax.Array:
    """L² ‖U‖_op² of a trained RNN, by layer products (Proposition 8; compare `rnn_sizes.proposition8_norm`).

    U is the part of the read-out's first layer that acts on (h→, h←). f_y is (L/r_h)-Lipschitz in U h with
    L/r_h = Π_{l ≥ 2} ‖W_l‖_op (1 for a linear read-out) and ‖h‖ ≤ r_h.
    """
    first, *later = (layer['kernel'] for layer in _read_out_layers(params))
    return (state_norm * lipschitz_product(later) * jnp.linalg.norm(first[: 2 * width], ord=2)) ** 2


def state_sensitivity_sampled(
    params: dict, states_BxF: jax.Array, z_BxE: jax.Array, state_norm: jax.Array | float
) -> jax.Array:
    """A lower bound on L² ‖U‖_op²: the largest r_h² ‖∂f_y/∂(h→, h←)‖² over samples; at most `state_sensitivity`."""
    gradients_BxF = jax.vmap(lambda h, z: jax.grad(read_out, argnums=1)(params, h, z))(states_BxF, z_BxE)
    return state_norm**2 * jnp.max(jnp.sum(gradients_BxF**2, axis=-1))


def recurrent_states(module: Any, params: dict, z_NxE: jax.Array) -> jax.Array:
    """(h→_i, h←_i) as the read-out of an RNN sees them."""

    def is_cell(part: Any, method: str) -> bool:
        return method == '__call__' and isinstance(part, DeepCell | GatedCell)

    _, sown = module.apply(params, z_NxE, capture_intermediates=is_cell, mutable='intermediates')
    states_2xNxH = sown['intermediates']['cell']['__call__'][0]
    return recurrent.side_by_side(states_2xNxH, module.states)
