"""The optimisers of optax by name; learning rate and weight decay may be traced."""

import functools
import inspect
from typing import Any

import optax
from optax import contrib

from qstr_jax.settings import checks

# Momentum of 'sgd'.
MOMENTUM = 0.9
# The names that errors list; any other optimiser of optax with a learning rate works too.
KNOWN = ('adamw', 'sgd', 'adam', 'lion', 'muon', 'nadamw', 'adagrad', 'rmsprop', 'lamb', 'lars', 'radam')
# Optimisers that need more than gradients.
NOT_ONLINE = ('lbfgs', 'polyak_sgd', 'optimistic_gradient_descent', 'optimistic_adam_v2', 'noisy_sgd')


def check(name: str) -> None:
    """Raises ValueError unless optax has an optimiser of this name."""
    _function(name)


def takes_decay(name: str) -> bool:
    """Whether an optimiser has a weight decay."""
    return 'weight_decay' in _parameters(_function(name))


def build(name: str, learning_rate: Any, weight_decay: Any = None) -> optax.GradientTransformation:
    """An optimiser of optax with its default arguments, except that 'sgd' has a momentum of 0.9."""
    function = _function(name)
    more = {'momentum': MOMENTUM} if name == 'sgd' else {}
    if weight_decay is not None:
        more['weight_decay'] = weight_decay
    return function(learning_rate, **more)


@functools.cache  # A sweep of ten thousand cells asks a million times.
def _parameters(function: Any) -> tuple[str, ...]:
    return tuple(inspect.signature(function).parameters)


def _function(name: str) -> Any:
    for place in (optax, contrib):
        function = getattr(place, name, None) if isinstance(name, str) and not name.startswith('_') else None
        if inspect.isfunction(function) and name not in NOT_ONLINE:
            if next(iter(_parameters(function)), '') == 'learning_rate':
                return function
    raise checks.unknown('optimizer', name, KNOWN)
