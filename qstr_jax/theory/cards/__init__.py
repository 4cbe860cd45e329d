"""Cards: one per statement, with measured points, the theorem's lines and a verdict that is computed.

    from qstr_jax.theory import cards
    card = cards.make('lemma11', {'seq_lens': (16, 64)})
    print(card.verdict)

Each card is a module with NAME, `Settings` (a frozen dataclass whose defaults are the full run), `sweeps(settings)`,
what it trains, by name, and `card(settings, rows)`, which makes the card of the rows of these sweeps, by the same
names. What trains nothing is computed there.
"""

import dataclasses
import json
from collections.abc import Iterable, Mapping
from typing import Any

from qstr_jax import checks
from qstr_jax.sweeps import Options, Sweep, run
from qstr_jax.theory.cards import (
    alignment,
    alpha,
    bounds,
    lemma11,
    proposition3,
    proposition8,
    proposition21,
    runs,
    theorem4,
    theorem6,
    theorem7,
    theorem9,
)
from qstr_jax.theory.cards.card import Card, Check, Panel
from qstr_jax.theory.cards.card_json import as_json, from_json

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
    'sweeps',
]

_ORDER = (
    lemma11,
    alignment,
    proposition3,
    proposition21,
    theorem4,
    bounds,
    theorem6,
    theorem7,
    alpha,
    proposition8,
    theorem9,
)
_CARDS: dict[str, Any] = {module.NAME: module for module in _ORDER}


def names() -> tuple[str, ...]:
    """Names of all cards, in the order in which they are made."""
    return tuple(_CARDS)


def check_names(chosen: Iterable[str]) -> None:
    """Checks names of cards.

    Args:
        chosen: the names.

    Raises:
        ValueError: there is no such card; the message lists those that exist.
    """
    for name in chosen:
        if name not in _CARDS:
            raise ValueError(f'cards={name!r}: unknown, one of {", ".join(_CARDS)}')


def settings(name: str, overrides: Mapping[str, Any] | None = None) -> Any:
    """The settings of a card.

    Args:
        name: of the card.
        overrides: settings that differ from the full run.

    Returns:
        The card's `Settings`.

    Raises:
        ValueError: an unknown card or setting, a value of another type than the default, or a size below 1.
    """
    check_names([name])
    kind = _CARDS[name].Settings
    fields = {field.name: field.default for field in dataclasses.fields(kind)}
    overrides = dict(overrides or {})
    for key, value in overrides.items():
        if key not in fields:
            raise ValueError(f'{name}.{key}: unknown, one of {", ".join(fields)}')
        _check_value(f'{name}.{key}', value, fields[key])
    return kind(**overrides)


def plain_settings(name: str, overrides: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """`settings` as they come back from JSON, to compare them with those of a card on disk.

    Args:
        name: of the card.
        overrides: settings that differ from the full run.
    """
    return json.loads(json.dumps(dataclasses.asdict(settings(name, overrides))))


def _check_value(name: str, value: Any, default: Any) -> None:
    """Checks that a value is like its default; tuples must not be empty, and integers must be positive."""
    if isinstance(default, tuple):
        if not isinstance(value, (tuple, list)) or not value:
            raise ValueError(f'{name}={value!r}: must be a tuple with at least one entry')
        for entry in value:
            if not isinstance(entry, type(default[0])):
                raise ValueError(f'{name}={value!r}: entries must be like {default[0]!r}')
            _check_value(name, entry, default[0])
    elif isinstance(default, int) and not isinstance(default, bool):
        checks.integer(name, value)
    elif isinstance(default, float):
        checks.number(name, value, 0)


def sweeps(name: str, overrides: Mapping[str, Any] | None = None) -> dict[str, Sweep]:
    """The sweeps of a card, by what it calls them; none if it trains nothing.

    Args:
        name: of the card.
        overrides: settings that differ from the full run.
    """
    return _CARDS[name].sweeps(settings(name, overrides))


def make(
    name: str, overrides: Mapping[str, Any] | None = None, workdir: Any = None, options: Options | None = None
) -> Card:
    """Makes one card; what it trains is run, or continued, in a results directory.

    Args:
        name: one of `names()`.
        overrides: settings that differ from the full run.
        workdir: the results directory, for cards that train.
        options: how the sweeps are run.

    Raises:
        ValueError: an unknown card or setting, or no directory for a card that trains.
    """
    needed = sweeps(name, overrides)
    if needed and workdir is None:
        raise ValueError(f'{name}: trains networks, so it needs a workdir')
    rows = {what: runs.rows_of(sweep, run(sweep, workdir, options)) for what, sweep in needed.items()}
    return _CARDS[name].card(settings(name, overrides), rows)
