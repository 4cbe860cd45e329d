"""Recurrent cells with one matrix product per token: simple (ReLU, tanh), GRU and LSTM, in both directions at once."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import linen as nn

from qstr_jax.models import initializers

# One array per direction, forward and backward.
Pair = tuple[Any, Any]
# What a cell hands from token to token: (h,), or (h, c) for an LSTM; each entry is (d_h,).
Carry = tuple[jax.Array, ...]

# Number of tokens whose loop bodies are joined into one program on a CPU (`sweeps.platforms` has the others), which
# gives fewer and larger fused loops. At N = 33 a training step of a GRU takes 0.8 times as long as with 12, and 0.7
# times the memory; compiling takes 15 s instead of 14 s (2 cores, d_h = 500).
UNROLL = 36


class Gates(NamedTuple):
    """A cell without its matrix products.

    Attributes:
        num_gates: number of blocks of d_h pre-activations.
        update: (carry, projected inputs, recurrent pre-activations) → carry.
    """

    num_gates: int
    update: Callable[[Carry, jax.Array, jax.Array], Carry]


def _simple(activation: Callable[[jax.Array], jax.Array]) -> Callable[[Carry, jax.Array, jax.Array], Carry]:
    """h ← activation(W z + U h + b)."""
    return lambda carry, inputs, recurrent: (activation(inputs + recurrent),)


def _gru(carry: Carry, inputs: jax.Array, recurrent: jax.Array) -> Carry:
    """h ← (1 − z) n + z h with n = tanh(i_n + r (W h + b)_n), as in cuDNN and PyTorch."""
    i_r, i_z, i_n = jnp.split(inputs, 3, axis=-1)
    h_r, h_z, h_n = jnp.split(recurrent, 3, axis=-1)
    reset, keep = jax.nn.sigmoid(i_r + h_r), jax.nn.sigmoid(i_z + h_z)
    new = jnp.tanh(i_n + reset * h_n)
    return ((1 - keep) * new + keep * carry[0],)


def _lstm(carry: Carry, inputs: jax.Array, recurrent: jax.Array) -> Carry:
    """c ← f c + i g, h ← o tanh(c); the gates come in the order i, f, g, o."""
    i, f, g, o = jnp.split(inputs + recurrent, 4, axis=-1)
    memory = jax.nn.sigmoid(f) * carry[1] + jax.nn.sigmoid(i) * jnp.tanh(g)
    return jax.nn.sigmoid(o) * jnp.tanh(memory), memory


GATES = {
    'relu': Gates(num_gates=1, update=_simple(jax.nn.relu)),
    'tanh': Gates(num_gates=1, update=_simple(jnp.tanh)),
    'gru': Gates(num_gates=3, update=_gru),
    'lstm': Gates(num_gates=4, update=_lstm),
}


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 3))
def gated_states(kind: str, inputs_of: Pair, recurrent_of: Pair, unroll: int = UNROLL) -> jax.Array:
    """States of a gated cell in both directions.

    The derivative is the usual one, computed in another order: the products h_{i−1} dW of all tokens are one matrix
    product. A scan's own backward pass makes a thin product per token and adds them up in memory. At N = 12 a GRU's
    training step takes 0.8 times as long this way.
    """
    states_of, _ = _run_gated(kind, inputs_of, recurrent_of, unroll)
    return jnp.stack(states_of)


def _run_gated(kind: str, inputs_of: Pair, recurrent_of: Pair, unroll: int) -> tuple[Pair, Pair]:
    """States of each direction, and the (carry, h W + b) that each state was computed from."""
    gates, start = _setup(kind, inputs_of, recurrent_of)

    def step(carry_of: Any, input_of: Any) -> Any:
        before_of = tuple((carry, carry[0] @ w + b) for carry, (w, b) in zip(carry_of, recurrent_of, strict=True))
        carry_of = tuple(gates.update(c, i, r) for (c, r), i in zip(before_of, input_of, strict=True))
        return carry_of, (tuple(carry[0] for carry in carry_of), before_of)

    return jax.lax.scan(step, (start, start), inputs_of, unroll=min(unroll, len(inputs_of[0])))[1]


def _setup(kind: str, inputs_of: Pair, recurrent_of: Pair) -> tuple[Gates, Carry]:
    """The cell's gates, and the carry before the first token."""
    width, _ = recurrent_of[0][0].shape
    start = (jnp.zeros(width, inputs_of[0].dtype),) * (2 if kind == 'lstm' else 1)
    return GATES[kind], start


@gated_states.defjvp
def _gated_states_jvp(
    kind: str, unroll: int, primals: tuple[Pair, Pair], tangents: tuple[Pair, Pair]
) -> tuple[jax.Array, jax.Array]:
    inputs_of, recurrent_of = primals
    d_inputs_of, d_recurrent_of = tangents
    gates, start = _setup(kind, inputs_of, recurrent_of)

    states_of, before_of = _run_gated(kind, inputs_of, recurrent_of, unroll)
    # h_{i−1} dW + db of all tokens at once.
    d_own_of = tuple(carry[0] @ dw + db[None] for (carry, _), (dw, db) in zip(before_of, d_recurrent_of, strict=True))

    def linear(d_carry_of: Any, points: Any) -> Any:
        after = []
        for k, (before, inputs, d_inputs, d_own) in enumerate(zip(*points, strict=True)):
            d_recurrent = d_carry_of[k][0] @ recurrent_of[k][0] + d_own
            point, tangent = (before[0], inputs, before[1]), (d_carry_of[k], d_inputs, d_recurrent)
            after.append(jax.jvp(gates.update, point, tangent)[1])
        return tuple(after), tuple(d_carry[0] for d_carry in after)

    points = before_of, inputs_of, d_inputs_of, d_own_of
    _, d_states_of = jax.lax.scan(linear, (start, start), points, unroll=min(unroll, len(inputs_of[0])))
    return jnp.stack(states_of), jnp.stack(d_states_of)


class GatedCell(nn.Module):
    """ReLU, tanh, GRU or LSTM transitions of both directions, with two bias vectors as in PyTorch.

    Attributes:
        kind: a key of `GATES`.
        width: d_h.
        initializer: 'flax' or 'pytorch', see `initializers`.
        unroll: tokens whose loop bodies are joined.
    """

    kind: str
    width: int
    initializer: str = 'pytorch'
    unroll: int = UNROLL

    @nn.compact
    def __call__(self, z_2xNxE: jax.Array) -> jax.Array:
        """Runs over one prompt."""
        gates, width, scheme = GATES[self.kind], self.width, self.initializer
        features = gates.num_gates * width
        input_init = initializers.kernel(scheme, width, in_axis=1, batch_axis=(0,))
        hidden_init = initializers.recurrent(scheme, width, gates.num_gates)
        bias_init = initializers.bias(scheme, width)
        w_2xExG = self.param('input_kernel', input_init, (2, z_2xNxE.shape[-1], features))
        w_2xHxG = self.param('hidden_kernel', hidden_init, (2, width, features))
        input_bias_2xG = self.param('input_bias', bias_init, (2, features))
        hidden_bias_2xG = self.param('hidden_bias', bias_init, (2, features))
        inputs_of = tuple(z_2xNxE[k] @ w_2xExG[k] + input_bias_2xG[k][None] for k in range(2))
        recurrent_of = tuple((w_2xHxG[k], hidden_bias_2xG[k]) for k in range(2))
        return gated_states(self.kind, inputs_of, recurrent_of, self.unroll)
