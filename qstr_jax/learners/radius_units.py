"""Units of norm bounds by name: functions (module, task) → number.

`qstr_jax.theory.construction_norm` adds 'construction', the norm of the proof's network.
"""

from collections.abc import Callable
from typing import Any

from qstr_jax.settings import registry

REGISTRY = registry.Registry('radius unit', 'radius_unit', leading=('module', 'task'), has_settings=False)


def register(name: str) -> Callable[[Callable], Callable]:
    """Decorator that registers a function (module, task) → norm under a name.

    Args:
        name: the name that `--config.radius_unit` uses.
    """

    def add(function: Callable) -> Callable:
        REGISTRY.add(name, function)
        return function

    return add


def norm(name: str, module: Any, task: Any) -> float:
    """The norm that one unit stands for."""
    try:
        unit = REGISTRY.get(name).builder
    except ValueError as error:
        hint = "; 'construction' comes with the plugin qstr_jax.theory.construction_norm"
        raise ValueError(f'{error}{hint if name == "construction" else ""}') from None
    return float(unit(module, task))


@register('absolute')
def absolute(module: Any, task: Any) -> float:
    """1: the radius is the norm itself.

    Args:
        module: not used.
        task: not used.
    """
    return 1.0
