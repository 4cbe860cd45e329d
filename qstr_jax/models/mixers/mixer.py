"""What a mixer is, and mixers by name. A mixer maps a sequence (N, W) to a sequence (N, W).

    @mixers.register('average')
    class Average(nn.Module):
        '''Each token gets the mean of the tokens so far.'''

        @nn.compact
        def __call__(self, x_NxW):
            return jnp.cumsum(x_NxW, axis=0) / jnp.arange(1, len(x_NxW) + 1)[:, None]

        def state_size(self, width, seq_len):
            return width

The fields of the module are its settings. A mixer sees no later tokens, and `Backbone` runs it in both directions where
that is asked for. One that can see all tokens by itself has a field `causal`, which is not a setting, and an argument
`length`, the number of tokens before padding, or None. `state_size(width, seq_len)` says how many numbers it carries.
"""

from typing import Any, TypeVar, cast

from flax import linen as nn

from qstr_jax.settings import Schema, checks, schema_of

Kind = TypeVar('Kind', bound=type[nn.Module])
# Fields of a module that are not settings.
_OTHERS = ('parent', 'name', 'causal')
_MIXERS: dict[str, Any] = {}

# A class and its settings as sorted pairs: hashable, as arguments of compiled programs must be.
Spec = tuple[type[nn.Module], tuple[tuple[str, Any], ...]]


def add(name: str, kind: Kind) -> None:
    """Keeps a mixer under its name; `mixers.register` also makes an architecture of it."""
    _MIXERS[name] = kind


def names() -> tuple[str, ...]:
    """Names of all mixers."""
    return tuple(_MIXERS)


def schema(kind: type[nn.Module]) -> Schema:
    """The settings of a mixer."""
    return Schema({name: setting for name, setting in schema_of(cast(Any, kind)).items() if name not in _OTHERS})


def spec(name: str, **settings: Any) -> Spec:
    """A mixer with settings.

    Raises:
        ValueError: an unknown name or setting, a value of the wrong type, or a size below 1 (below 0 where 0 is off).
    """
    if name not in _MIXERS:
        raise checks.unknown('mixers', name, names())
    kind = _MIXERS[name]
    known = schema(kind)
    values = known.checked(settings, name)
    for key, value in values.items():
        if known[key].type is int:
            may_be_zero = key in getattr(kind, 'may_be_zero', ())
            checks.integer(f'{name}.{key}', value, min(0 if may_be_zero else 1, known[key].default))
    return kind, tuple(sorted(values.items()))


def parsed(text: str) -> Spec:
    """A mixer with settings from its text, such as 'deltanet' or 'deltanet:heads=4:head_dim=8'.

    Raises:
        ValueError: as `spec`, or a part without '='.
    """
    name, *parts = text.split(':')
    settings = {}
    for part in parts:
        key, equals, value = part.partition('=')
        if not equals:
            raise ValueError(f'mixers={text!r}: write settings as {name}:NAME=VALUE')
        try:
            settings[key] = checks.literal(value)
        except ValueError:
            settings[key] = value
    return spec(name, **settings)
