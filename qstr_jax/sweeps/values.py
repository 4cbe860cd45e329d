"""Values of a sweep's arguments: several of them as a tuple."""

from typing import Any


def distinct(name: str, value: Any, least: int = 1) -> tuple:
    """A tuple of distinct values, from one value or several; names may be one string with commas."""
    values = value if isinstance(value, (tuple, list)) else (value,)
    parts = [part.split(',') if isinstance(part, str) else [part] for part in values]
    flat = [part.strip() if isinstance(part, str) else part for inner in parts for part in inner]
    found = tuple(part for part in flat if part != '')
    if len(found) < least:
        raise ValueError(f'{name}=(): give at least one')
    if any(value in found[:i] for i, value in enumerate(found)):
        raise ValueError(f'{name}={found}: a value is given twice')
    return found
