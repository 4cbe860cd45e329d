"""The paper's architectures and the baselines by name; arguments are settings, with the published defaults."""

from typing import Any, Literal

from flax import linen as nn

from qstr_jax.models.baselines import LeastSquares, Ridge, Zero
from qstr_jax.models.feedforward import Feedforward
from qstr_jax.models.recurrent import Recurrent
from qstr_jax.models.registered import register
from qstr_jax.models.transformer import Transformer
from qstr_jax.settings import checks

Initializer = Literal['pytorch', 'flax']


@register('transformer')
def transformer(
    task: Any,
    num_heads: int | None = None,
    mlp_width: int = 100,
    attention: Literal['separate', 'merged'] = 'separate',
    initializer: Initializer = 'pytorch',
    softmax_1: bool = False,
) -> nn.Module:
    """One layer of attention, then one ReLU layer; no residual, no layer norm.

    Args:
        task: sets the published number of heads.
        num_heads: H; None is q.
        mlp_width: m, width of the ReLU layer.
        attention: 'separate' has W_Q, W_K, W_V and an output projection, 'merged' W_QK alone, as in the theory.
        initializer: whose initial weights.
        softmax_1: attention weights exp(s_j)/(1 + Σ_k exp(s_k)), so that a head can look at nothing.
    """
    num_heads = task.sparsity if num_heads is None else num_heads
    checks.integer('transformer.num_heads', num_heads)
    checks.integer('transformer.mlp_width', mlp_width)
    return Transformer(
        num_heads=num_heads,
        mlp_width=mlp_width,
        attention=attention,
        initializer=initializer,
        num_outputs=task.num_outputs,
        softmax_1=softmax_1,
    )


@register('rnn')
def rnn(
    task: Any,
    width: int | None = None,
    cell: Literal['gru', 'lstm', 'relu', 'tanh', 'deep'] = 'gru',
    states: Literal['inclusive', 'exclusive'] = 'inclusive',
    readout: Literal['linear', 'mlp'] = 'linear',
    readout_widths: tuple[int, ...] = (),
    transition_widths: tuple[int, ...] = (),
    radius: float | None = None,
    lipschitz: float | None = None,
    initializer: Initializer = 'pytorch',
) -> nn.Module:
    """A bidirectional recurrent network.

    Args:
        task: sets the published width.
        width: d_h of each direction; None is 500 q.
        cell: how a state follows from the one before; 'deep' is the theory's.
        states: 'inclusive' states have seen their own token, 'exclusive' ones have not, as in the theory.
        readout: 'linear' in the states, or 'mlp', a ReLU network of states and token.
        readout_widths: hidden widths of 'mlp'; none is (width,).
        transition_widths: hidden widths of the deep cell; none is (width,).
        radius: r_h, largest norm of the deep cell's state; None leaves it free.
        lipschitz: α_N, bound on how far the deep cell's state moves with the one before; None leaves it free.
        initializer: whose initial weights.
    """
    width = 500 * task.sparsity if width is None else width
    checks.integer('rnn.width', width)
    _check_widths('rnn.readout_widths', readout_widths)
    _check_widths('rnn.transition_widths', transition_widths)
    _check_deep_cell(cell, transition_widths, radius, lipschitz)
    if readout_widths and readout != 'mlp':
        raise ValueError(f"rnn.readout_widths={readout_widths}: only rnn.readout='mlp' has them, not {readout!r}")
    return Recurrent(
        width=width,
        cell=cell,
        states=states,
        readout=readout,
        readout_widths=readout_widths,
        transition_widths=transition_widths,
        radius=radius,
        lipschitz=lipschitz,
        initializer=initializer,
        num_outputs=task.num_outputs,
    )


def _check_widths(name: str, widths: tuple[int, ...]) -> None:
    for one in widths:
        checks.integer(name, one)


def _check_deep_cell(
    cell: str, transition_widths: tuple[int, ...], radius: float | None, lipschitz: float | None
) -> None:
    """Checks the settings that only the deep cell has."""
    for name, value in (('radius', radius), ('lipschitz', lipschitz), ('transition_widths', transition_widths or None)):
        if value is not None and cell != 'deep':
            raise ValueError(f"rnn.{name}={value}: only rnn.cell='deep' has it, not {cell!r}")
    if radius is not None:
        checks.positive('rnn.radius', radius)
    if lipschitz is not None:
        checks.number('rnn.lipschitz', lipschitz, 0)


@register('ffn')
def ffn(
    task: Any,
    widths: tuple[int, ...] = (),
    form: Literal['flat', 'theorem6'] = 'flat',
    initializer: Initializer = 'pytorch',
) -> nn.Module:
    """A ReLU network of the whole prompt.

    Args:
        task: sets the published widths.
        widths: of the hidden layers; none is (N d q, 1000).
        form: 'flat' reads the encoded prompt, 'theorem6' is f(T, W x) with a layer W of the tokens alone.
        initializer: whose initial weights.
    """
    widths = widths or (task.seq_len * task.token_dim * task.sparsity, 1000)
    _check_widths('ffn.widths', widths)
    return Feedforward(
        widths=widths,
        token_dim=task.token_dim,
        form=form,
        initializer=initializer,
        num_outputs=task.num_outputs,
    )


@register('zero')
def zero(task: Any) -> nn.Module:
    """ŷ = 0: its error is the variance of the label, or with C classes log C."""
    return Zero(num_outputs=task.num_outputs)


# Tasks with t in the prompt whose labels depend on more than the tokens at t.
_NOT_OF_TOKENS_AT_T = ('hops', 'varying_qstr', 'weighted_qstr')


@register('least_squares')
def least_squares(task: Any) -> nn.Module:
    """Least squares by a learner that knows t."""
    _check_is_linear('least_squares', task)
    if task.embedding_dim != task.token_dim + (task.sparsity + 1) * task.encoding_dim:
        raise ValueError(f"models='least_squares': knows t, and task={task.name!r} gives none; leave it out")
    if task.name in _NOT_OF_TOKENS_AT_T:
        raise ValueError(
            f"models='least_squares': is linear in the tokens at t, and the labels of task={task.name!r} are not; "
            'leave it out'
        )
    return LeastSquares(token_dim=task.token_dim, sparsity=task.sparsity)


@register('ridge')
def ridge(task: Any) -> nn.Module:
    """Ridge regression on the flattened prompt."""
    _check_is_linear('ridge', task)
    return Ridge()


def _check_is_linear(name: str, task: Any) -> None:
    """Raises ValueError for a task whose label is not a single number."""
    if task.num_outputs > 1:
        raise ValueError(
            f'models={name!r}: has one output, and task={task.name!r} asks for num_outputs={task.num_outputs}; '
            'leave it out'
        )
