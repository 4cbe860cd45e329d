"""Bidirectional recurrent networks (PAPER.md, section 5).

Both directions run in one `lax.scan`: parameters carry a leading axis of 2 (forward, backward), the backward
direction reads the prompt reversed, and the inputs of all steps are projected before the scan in one product.
Inside the scan each direction has its own arrays: with an axis of directions XLA would move it past the prompts' axis
at every step, which made a GRU's training step 1.2 times as long and its test 1.4 times (2 cores, d_h = 500, N = 12).
"""

import functools
import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from flax import linen as nn

from qstr_jax.models import initializers

CELLS = ('relu', 'tanh', 'gru', 'lstm', 'deep')
STATES = ('inclusive', 'exclusive')
READOUTS = ('linear', 'mlp')

# Tokens whose loop bodies are joined into one program: fewer, larger fused loops. At N = 33 a step of a GRU takes 0.8
# times as long as with 12, and 0.7 times the memory; compiling takes 15 s instead of 14 (2 cores, d_h = 500).
UNROLL = 36


class Gates(NamedTuple):
    """A cell without its matrix products: `count` blocks of d_h pre-activations, and what they do."""

    count: int
    update: object


def _simple(activation):
    return lambda carry, inputs, recurrent: (activation(inputs + recurrent),)


def _gru(carry, inputs, recurrent):
    """h ← (1 − z) n + z h, n = tanh(i_n + r (W h + b)_n), as cuDNN and PyTorch have it."""
    i_r, i_z, i_n = jnp.split(inputs, 3, axis=-1)
    h_r, h_z, h_n = jnp.split(recurrent, 3, axis=-1)
    reset, keep = jax.nn.sigmoid(i_r + h_r), jax.nn.sigmoid(i_z + h_z)
    new = jnp.tanh(i_n + reset * h_n)
    return ((1 - keep) * new + keep * carry[0],)


def _lstm(carry, inputs, recurrent):
    """c ← f c + i g, h ← o tanh(c); gates in the order i, f, g, o."""
    i, f, g, o = jnp.split(inputs + recurrent, 4, axis=-1)
    memory = jax.nn.sigmoid(f) * carry[1] + jax.nn.sigmoid(i) * jnp.tanh(g)
    return jax.nn.sigmoid(o) * jnp.tanh(memory), memory


GATES = {
    'relu': Gates(1, _simple(jax.nn.relu)),
    'tanh': Gates(1, _simple(jnp.tanh)),
    'gru': Gates(3, _gru),
    'lstm': Gates(4, _lstm),
}


def scan_directions(step, start, inputs_of):
    """Runs both directions over their prompts.

    Args:
        step: (direction, carry, inputs of one token) → carry, a tuple whose first entry is the state.
        start: carry that both directions start from.
        inputs_of: inputs of each direction, a leading axis N.

    Returns:
        States (2, N, d_h).
    """

    def both(carry_of, input_of):
        pairs = zip(carry_of, input_of, strict=True)
        carry_of = tuple(step(direction, *pair) for direction, pair in enumerate(pairs))
        return carry_of, tuple(carry[0] for carry in carry_of)

    _, states_of = jax.lax.scan(both, (start, start), inputs_of)
    return jnp.stack(states_of)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def gated_states(kind, inputs_of, recurrent_of):
    """States (2, N, d_h) of gated cells, given the projected inputs (N, G) and (W, b) of each direction's recurrence.

    The derivative is the usual one in another order: h_{i−1} dW is one product for all tokens, where a scan's own
    backward pass makes a thin one per token and adds them up in memory (a GRU's step at N = 12: 0.8 times as long).
    """
    states_of, _ = _run_gated(kind, inputs_of, recurrent_of)
    return jnp.stack(states_of)


def _run_gated(kind, inputs_of, recurrent_of):
    """States of each direction, and the carry and recurrent product (c, h W + b) that each came from."""
    gates, start, unroll = _setup(kind, inputs_of, recurrent_of)

    def step(carry_of, input_of):
        before_of = tuple((carry, carry[0] @ w + b) for carry, (w, b) in zip(carry_of, recurrent_of, strict=True))
        carry_of = tuple(gates.update(c, i, r) for (c, r), i in zip(before_of, input_of, strict=True))
        return carry_of, (tuple(carry[0] for carry in carry_of), before_of)

    return jax.lax.scan(step, (start, start), inputs_of, unroll=unroll)[1]


def _setup(kind, inputs_of, recurrent_of):
    (width, _), length = recurrent_of[0][0].shape, len(inputs_of[0])
    start = (jnp.zeros(width, inputs_of[0].dtype),) * (2 if kind == 'lstm' else 1)
    return GATES[kind], start, min(UNROLL, length)


@gated_states.defjvp
def _gated_states_jvp(kind, primals, tangents):
    inputs_of, recurrent_of = primals
    d_inputs_of, d_recurrent_of = tangents
    gates, start, unroll = _setup(kind, inputs_of, recurrent_of)

    states_of, before_of = _run_gated(kind, inputs_of, recurrent_of)
    # h_{i−1} dW + db of all tokens at once.
    d_own_of = tuple(carry[0] @ dw + db[None] for (carry, _), (dw, db) in zip(before_of, d_recurrent_of, strict=True))

    def linear(d_carry_of, points):
        after = []
        for k, (before, inputs, d_inputs, d_own) in enumerate(zip(*points, strict=True)):
            d_recurrent = d_carry_of[k][0] @ recurrent_of[k][0] + d_own
            point, tangent = (before[0], inputs, before[1]), (d_carry_of[k], d_inputs, d_recurrent)
            after.append(jax.jvp(gates.update, point, tangent)[1])
        return tuple(after), tuple(d_carry[0] for d_carry in after)

    points = before_of, inputs_of, d_inputs_of, d_own_of
    _, d_states_of = jax.lax.scan(linear, (start, start), points, unroll=unroll)
    return jnp.stack(states_of), jnp.stack(d_states_of)


def project_ball(h, radius):
    """Π_r h = min(1, r/‖h‖) h over the last axis; smooth at 0."""
    square = jnp.sum(h**2, axis=-1, keepdims=True)
    return h * (radius / jnp.sqrt(jnp.maximum(square, radius**2)))


class GatedCell(nn.Module):
    """relu, tanh, GRU or LSTM transitions of both directions, with two bias vectors as in PyTorch."""

    kind: str
    width: int
    initializer: str = 'pytorch'

    @nn.compact
    def __call__(self, z_2xNxE):
        """States (2, N, d_h); state i has seen tokens 0..i of its direction."""
        gates, width, scheme = GATES[self.kind], self.width, self.initializer
        features = gates.count * width
        input_init = initializers.recurrent_input(scheme, width)
        hidden_init = initializers.recurrent(scheme, width, gates.count)
        bias_init = initializers.recurrent_bias(scheme, width)
        w_2xExG = self.param('input_kernel', input_init, (2, z_2xNxE.shape[-1], features))
        w_2xHxG = self.param('hidden_kernel', hidden_init, (2, width, features))
        input_bias_2xG = self.param('input_bias', bias_init, (2, features))
        hidden_bias_2xG = self.param('hidden_bias', bias_init, (2, features))
        inputs_of = tuple(z_2xNxE[k] @ w_2xExG[k] + input_bias_2xG[k][None] for k in range(2))
        recurrent_of = tuple((w_2xHxG[k], hidden_bias_2xG[k]) for k in range(2))
        return gated_states(self.kind, inputs_of, recurrent_of)


class DeepCell(nn.Module):
    """The paper's deep transitions h ← Π_r(h + f(h, z)), f a ReLU MLP whose last layer has no bias.

    Attributes:
        width: d_h.
        hidden_widths: widths of f's hidden layers, L_h − 1 of them.
        radius: r_h; None leaves Π out.
        lipschitz: α_N, the bound on ‖W_L‖_op ⋯ ‖W_2‖_op ‖W_{1,h}‖_op, enforced in the forward pass by
            W_{1,h} ← W_{1,h} min(1, α_N/product); 0 cuts the hidden state off; None leaves it free.
        initializer: 'flax' or 'pytorch'.
    """

    width: int
    hidden_widths: tuple[int, ...]
    radius: float | None = None
    lipschitz: float | None = None
    initializer: str = 'pytorch'

    @nn.compact
    def __call__(self, z_2xNxE):
        """States (2, N, d_h); state i has seen tokens 0..i of its direction."""
        first_width, *_ = widths = (*self.hidden_widths, self.width)
        fan_in = self.width + z_2xNxE.shape[-1]
        w_hidden = self._kernel('hidden_kernel', fan_in, (self.width, first_width))
        w_input = self._kernel('input_kernel', fan_in, (z_2xNxE.shape[-1], first_width))
        biases = [self._bias(0, fan_in, widths[0])]
        kernels = []
        for i, (rows, columns) in enumerate(itertools.pairwise(widths), start=1):
            kernels.append(self._kernel(f'kernel_{i}', rows, (rows, columns)))
            biases.append(self._bias(i, rows, columns) if i < len(widths) - 1 else None)
        w_hidden = self._bounded(w_hidden, kernels)
        inputs_of = tuple(z_2xNxE[k] @ w_input[k] + biases[0][k][None] for k in range(2))

        # Taken apart before the scan, or its backward pass would add up gradients of both directions at every token.
        layers_of = [
            [(kernel[k], 0.0 if bias is None else bias[k]) for kernel, bias in zip(kernels, biases[1:], strict=True)]
            for k in range(2)
        ]
        w_hidden_of = w_hidden[0], w_hidden[1]

        def step(k, carry, inputs_M):
            (h_H,) = carry
            layer = inputs_M + h_H @ w_hidden_of[k]
            for kernel, bias in layers_of[k]:
                layer = jax.nn.relu(layer) @ kernel + bias
            h_H = h_H + layer
            return (h_H if self.radius is None else project_ball(h_H, self.radius),)

        start = (jnp.zeros(self.width, z_2xNxE.dtype),)
        return scan_directions(step, start, inputs_of)

    def _kernel(self, name, fan_in, shape):
        init = initializers.kernel(self.initializer, fan_in, in_axis=1, batch_axis=(0,))
        return self.param(name, init, (2, *shape))

    def _bias(self, layer, fan_in, width):
        return self.param(f'bias_{layer}', initializers.bias(self.initializer, fan_in), (2, width))

    def _bounded(self, w_hidden, kernels):
        """W_{1,h}, shrunk so that the product of operator norms is at most α_N in each direction."""
        if self.lipschitz is None:
            return w_hidden
        if self.lipschitz == 0:
            return jnp.zeros_like(w_hidden)
        product = jnp.linalg.norm(w_hidden, ord=2, axis=(1, 2))
        for kernel in kernels:
            product = product * jnp.linalg.norm(kernel, ord=2, axis=(1, 2))
        # min(1, α/product), with finite gradients where weights, and so the product, are zero.
        return w_hidden * (self.lipschitz / jnp.maximum(product, self.lipschitz))[:, None, None]


class Recurrent(nn.Module):
    """Bidirectional RNN: ŷ_i = f_y(h→_i, h←_i, z_i).

    Attributes:
        width: d_h of each direction.
        cell: 'relu', 'tanh', 'gru', 'lstm' or 'deep'.
        states: 'inclusive' (h→_i and h←_i have seen token i, as published) or 'exclusive' (tokens before and
            after i only, as in the theory).
        readout: 'linear' in (h→, h←), as published, or 'mlp', a ReLU network f_y(h→, h←, z) whose last layer
            has no bias.
        readout_widths: hidden widths of f_y; empty is (width,).
        transition_widths: hidden widths of the deep cell's f; empty is (width,).
        radius, lipschitz: see `DeepCell`.
        initializer: 'flax' or 'pytorch'.
    """

    width: int
    cell: str = 'gru'
    states: str = 'inclusive'
    readout: str = 'linear'
    readout_widths: tuple[int, ...] = ()
    transition_widths: tuple[int, ...] = ()
    radius: float | None = None
    lipschitz: float | None = None
    initializer: str = 'pytorch'

    @nn.compact
    def __call__(self, z_NxE, position=None):
        """Predictions at all positions, (N,), or at one, ()."""
        z_2xNxE = jnp.stack([z_NxE, z_NxE[::-1]])
        states_2xNxH = self._cell()(z_2xNxE)
        if self.states == 'exclusive':
            states_2xNxH = jnp.pad(states_2xNxH, ((0, 0), (1, 0), (0, 0)))[:, :-1]
        states_NxF = jnp.concatenate([states_2xNxH[0], states_2xNxH[1, ::-1]], axis=-1)
        if position is not None:
            states_NxF, z_NxE = states_NxF[position][None], z_NxE[position][None]
        prediction_N = self._read_out(states_NxF, z_NxE)
        return prediction_N if position is None else prediction_N[0]

    def _cell(self):
        if self.cell == 'deep':
            widths = self.transition_widths or (self.width,)
            return DeepCell(self.width, widths, self.radius, self.lipschitz, self.initializer, name='cell')
        return GatedCell(self.cell, self.width, self.initializer, name='cell')

    def _read_out(self, states_NxF, z_NxE):
        scheme = self.initializer
        if self.readout == 'linear':
            layer = states_NxF
            return initializers.dense(1, scheme, layer.shape[-1], name='out')(layer)[:, 0]
        layer = jnp.concatenate([states_NxF, z_NxE], axis=-1)
        for i, width in enumerate(self.readout_widths or (self.width,)):
            hidden = initializers.dense(width, scheme, layer.shape[-1], name=f'readout_{i}')
            layer = jax.nn.relu(hidden(layer))
        return initializers.dense(1, scheme, layer.shape[-1], name='out', use_bias=False)(layer)[:, 0]
