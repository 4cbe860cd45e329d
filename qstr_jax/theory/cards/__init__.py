"""Cards: one per statement, with measured points, the theorem's lines and a verdict that is computed.

    from qstr_jax.theory import cards
    card = cards.make('lemma11', {'seq_lens': (16, 64)})
    print(card.verdict)

A module per card has NAME, `Settings` (a frozen dataclass, the defaults are the full run) and `make(settings, bar)`.
"""

import dataclasses
import json

from tqdm import auto as tqdm

from qstr_jax.theory.cards import (
    alignment,
    alpha,
    lemma11,
    proposition3,
    proposition8,
    proposition21,
    theorem6,
    theorem7,
    theorem9,
)
from qstr_jax.theory.cards.card import Card, Check, Panel, as_json, from_json

__all__ = [
    'Card',
    'Check',
    'Panel',
    'as_json',
    'check_names',
    'from_json',
    'make',
    'names',
    'plain_settings',
    'settings',
]

_ORDER = (lemma11, alignment, proposition3, proposition21, theorem6, theorem7, alpha, proposition8, theorem9)
_CARDS = {module.NAME: module for module in _ORDER}


def names():
    """Names of all cards, in the order in which they are made."""
    return tuple(_CARDS)


def check_names(chosen):
    """Raises ValueError for a card that does not exist; the message lists those that do."""
    for name in chosen:
        if name not in _CARDS:
            raise ValueError(f'cards={name!r}: unknown, one of {", ".join(_CARDS)}')


def settings(name, overrides=()):
    """The settings of a card, with overrides (a mapping).

    Raises:
        ValueError: unknown card or setting, a value of another kind than the default, or a size below 1.
    """
    check_names([name])
    kind = _CARDS[name].Settings
    fields = {field.name: field.default for field in dataclasses.fields(kind)}
    for key, value in dict(overrides).items():
        if key not in fields:
            raise ValueError(f'{name}.{key}: unknown, one of {", ".join(fields)}')
        _check_value(f'{name}.{key}', value, fields[key])
    return kind(**dict(overrides))


def plain_settings(name, overrides=()):
    """`settings` as JSON would give them back, to compare with those of a card on disk."""
    return json.loads(json.dumps(dataclasses.asdict(settings(name, overrides))))


def _check_value(name, value, default):
    """Lists must not be empty, and sizes must be positive whole numbers, like their defaults."""
    if isinstance(default, tuple):
        if not isinstance(value, (tuple, list)) or not value:
            raise ValueError(f'{name}={value!r}: must be a tuple with at least one entry')
        for entry in value:
            if not isinstance(entry, type(default[0])):
                raise ValueError(f'{name}={value!r}: entries must be like {default[0]!r}')
            _check_value(name, entry, default[0])
    elif isinstance(default, int) and not isinstance(default, bool):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(f'{name}={value!r}: must be an integer, at least 1')
    elif isinstance(default, float):
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:
            raise ValueError(f'{name}={value!r}: must be a number, at least 0')


def make(name, overrides=(), progress=False):
    """Computes one card.

    Args:
        name: one of `names()`.
        overrides: settings that differ from the full run, a mapping.
        progress: whether to show bars.

    Returns:
        `Card`.
    """

    def bar(items, text, total=None):
        return tqdm.tqdm(items, desc=f'{name}: {text}', total=total, disable=not progress, leave=False)

    return _CARDS[name].make(settings(name, overrides), bar)
