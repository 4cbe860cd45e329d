"""Cards as JSON, and back."""

import dataclasses
import math
from typing import Any

import numpy as np
import pandas as pd

from qstr_jax.theory.cards import card


def as_json(made: card.Card) -> dict[str, Any]:
    """A card as a dict that JSON can hold; `from_json` reads it.

    Args:
        made: the card.
    """
    columns = {name: getattr(made, name).astype(object).to_dict('list') for name in ('points', 'lines')}
    columns = {name: {c: [_plain(v) for v in values] for c, values in table.items()} for name, table in columns.items()}
    return {
        'statement': made.statement,
        'claim': made.claim,
        'setting': made.setting,
        'verdict': made.verdict,
        'holds': made.holds,
        'checks': [{name: _plain(v) for name, v in dataclasses.asdict(check).items()} for check in made.checks],
        'finding': made.finding,
        'panels': [panel._asdict() for panel in made.panels],
        **columns,
    }


def from_json(name: str, entry: dict[str, Any]) -> card.Card:
    """The card of an entry that `as_json` made. Its verdict is computed again from the checks.

    Args:
        name: the card's name.
        entry: the entry.
    """
    tables = {key: pd.DataFrame(entry[key]) for key in ('points', 'lines')}
    for table in tables.values():
        for column in table.columns.intersection(['x', 'y', 'error']):
            table[column] = pd.to_numeric(table[column])
    return card.Card(
        name=name,
        statement=entry['statement'],
        claim=entry['claim'],
        setting=entry['setting'],
        panels=tuple(card.Panel(**panel) for panel in entry['panels']),
        points=tables['points'],
        lines=tables['lines'],
        checks=tuple(map(_check_from, entry['checks'])),
        finding=entry['finding'],
    )


def _check_from(entry: dict[str, Any]) -> card.Check:
    """A check of its JSON, where null stands for NaN."""
    fields: dict[str, Any] = {name: math.nan if value is None else value for name, value in entry.items()}
    return card.Check(**fields)


def _plain(value: Any) -> Any:
    """A value for JSON: None for NaN and infinities, Python's numbers for numpy's."""
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and not math.isfinite(value) else value
