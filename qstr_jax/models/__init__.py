"""Models: one encoded prompt z (N, D_e) in, N predictions out; batches and lanes come by `vmap`.

`register` adds an architecture under a name that sweeps can use. A model is any Linen module whose
`__call__(z_NxE)` returns (N,); one that also takes `position` answers for one position without the others.
"""

import inspect

from qstr_jax.models import attention, feedforward, initializers, recurrent
from qstr_jax.models.baselines import LeastSquares, Ridge, Zero
from qstr_jax.models.feedforward import Feedforward
from qstr_jax.models.recurrent import Recurrent
from qstr_jax.models.transformer import Transformer

__all__ = [
    'Feedforward',
    'LeastSquares',
    'Recurrent',
    'Ridge',
    'Transformer',
    'Zero',
    'build',
    'is_closed_form',
    'names',
    'predict',
    'register',
]

_REGISTRY = {}


def register(name):
    """Decorator that registers a builder (task, settings) → Linen module under `name`.

    Raises:
        ValueError: the name is taken.
    """

    def add(builder):
        # The same function once more is a notebook cell that was run again.
        known = _REGISTRY.get(name, builder)
        if (known.__module__, known.__qualname__) != (builder.__module__, builder.__qualname__):
            raise ValueError(f'model {name!r} exists already: choose another name')
        _REGISTRY[name] = builder
        return builder

    return add


def names():
    """Names that `build` knows."""
    return tuple(_REGISTRY)


def build(name, task, settings):
    """Module of one architecture for one task.

    Args:
        name: a registered name.
        task: `tasks.Task`.
        settings: any object with the attributes that the builder reads, see `sweeps.Settings`.

    Raises:
        ValueError: unknown name or an impossible setting.
    """
    if name not in _REGISTRY:
        raise ValueError(f'models={name!r}: unknown, one of {", ".join(_REGISTRY)}')
    return _REGISTRY[name](task, settings)


def predict(module, params, z_NxE, position=None):
    """Predictions (N,), or () at `position`, by the shortest way that the module offers."""
    if position is None:
        return module.apply(params, z_NxE)
    if 'position' in inspect.signature(type(module).__call__).parameters:
        return module.apply(params, z_NxE, position=position)
    return module.apply(params, z_NxE)[position]


def is_closed_form(module):
    """Whether a module is a baseline that is fitted in closed form, see `baselines`."""
    return hasattr(module, 'closed_form')


def _check_positive(**sizes):
    for name, size in sizes.items():
        for value in size if isinstance(size, tuple) else (size,):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f'{name}={size!r}: must be an integer, at least 1')


def _check_choice(**choices):
    for name, (value, known) in choices.items():
        if value not in known:
            raise ValueError(f'{name}={value!r}: unknown, one of {", ".join(known)}')


@register('transformer')
def _transformer(task, settings):
    num_heads = task.sparsity if settings.num_heads is None else settings.num_heads
    _check_positive(num_heads=num_heads, mlp_width=settings.mlp_width)
    _check_choice(attention=(settings.attention, attention.FORMS))
    initializers.check(settings.initializer)
    return Transformer(num_heads, settings.mlp_width, settings.attention, initializer=settings.initializer)


@register('rnn')
def _rnn(task, settings):
    width = 500 * task.sparsity if settings.rnn_width is None else settings.rnn_width
    _check_positive(
        rnn_width=width,
        rnn_readout_widths=settings.rnn_readout_widths,
        rnn_transition_widths=settings.rnn_transition_widths,
    )
    _check_choice(
        rnn_cell=(settings.rnn_cell, recurrent.CELLS),
        rnn_states=(settings.rnn_states, recurrent.STATES),
        rnn_readout=(settings.rnn_readout, recurrent.READOUTS),
    )
    for name in 'rnn_radius', 'rnn_lipschitz':
        value = getattr(settings, name)
        if value is not None and settings.rnn_cell != 'deep':
            raise ValueError(f"{name}={value}: only rnn_cell='deep' has it, not {settings.rnn_cell!r}")
    if settings.rnn_radius is not None and not settings.rnn_radius > 0:
        raise ValueError(f'rnn_radius={settings.rnn_radius}: must be positive')
    if settings.rnn_lipschitz is not None and not settings.rnn_lipschitz >= 0:
        raise ValueError(f'rnn_lipschitz={settings.rnn_lipschitz}: must be at least 0')
    initializers.check(settings.initializer)
    return Recurrent(
        width,
        settings.rnn_cell,
        settings.rnn_states,
        settings.rnn_readout,
        settings.rnn_readout_widths,
        settings.rnn_transition_widths,
        settings.rnn_radius,
        settings.rnn_lipschitz,
        settings.initializer,
    )


@register('ffn')
def _ffn(task, settings):
    published = (task.seq_len * task.token_dim * task.sparsity, 1000)
    widths = settings.ffn_widths or published
    _check_positive(ffn_widths=widths)
    _check_choice(ffn_form=(settings.ffn_form, feedforward.FORMS))
    initializers.check(settings.initializer)
    return Feedforward(widths, task.token_dim, settings.ffn_form, settings.initializer)


@register('zero')
def _zero(task, settings):
    return Zero()


@register('least_squares')
def _least_squares(task, settings):
    return LeastSquares(task.token_dim, task.sparsity)


@register('ridge')
def _ridge(task, settings):
    return Ridge()
