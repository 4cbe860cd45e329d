"""Units of norm budgets: functions (module, task) → number that a sweep can name.

`qstr_jax.theory.construction_norm` adds 'construction', the norm of the proof's network.
"""

_REGISTRY = {}


def register(name, unit):
    """Makes a unit available under a name; the same name once more replaces it."""
    _REGISTRY[name] = unit


def get(name):
    """The unit of a name.

    Raises:
        ValueError: unknown name.
    """
    if name not in _REGISTRY:
        raise ValueError(
            f'budget_unit={name!r}: unknown, one of {", ".join(_REGISTRY)} '
            "('construction' comes with the plugin qstr_jax.theory.construction_norm)"
        )
    return _REGISTRY[name]


register('absolute', lambda module, task: 1.0)
