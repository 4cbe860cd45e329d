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


def takes_decay(name: str) -> bool:
    """Whether an optimiser has a weight decay."""
    return 'weight_decay' in _parameters(function(name))


def build(name: str, learning_rate: Any, weight_decay: Any = None) -> optax.GradientTransformation:
    """An optimiser of optax with its default arguments, except that 'sgd' has a momentum of 0.9."""
    more = {'momentum': MOMENTUM} if name == 'sgd' else {}
    if weight_decay is not None:
        more['weight_decay'] = weight_decay
    return function(name)(learning_rate, **more)


@functools.cache  # A sweep of ten thousand cells asks a million times.
def _parameters(optimizer: Any) -> tuple[str, ...]:
    return tuple(inspect.signature(optimizer).parameters)


def function(name: str) -> Any:
    """What makes the optimiser of a name; raises ValueError unless optax has one."""
    for module in (optax, contrib):
        found = getattr(module, name, None) if not name.startswith('_') and name not in NOT_ONLINE else None
        if inspect.isfunction(found) and next(iter(_parameters(found)), '') == 'learning_rate':
            return found
    raise checks.unknown('optimizer', name, KNOWN)
