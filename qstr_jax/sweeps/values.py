"""Values of settings: several as a tuple, and one as JSON and tables hold it."""

from typing import Any


def distinct(name: str, value: Any, least: int = 1) -> tuple:
    """A tuple of different values, from one value or several; names may come as one string with commas.

    Args:
        name: for errors.
        value: what was given.
        least: how many there must be.

    Raises:
        ValueError: too few, or a value twice.
    """
    values = value if isinstance(value, (tuple, list)) else (value,)
    parts = [part.split(',') if isinstance(part, str) else [part] for part in values]
    flat = [part.strip() if isinstance(part, str) else part for inner in parts for part in inner]
    found = tuple(part for part in flat if part != '')
    if len(found) < least:
        raise ValueError(f'{name}=(): give at least one')
    if len(set(found)) < len(found):
        raise ValueError(f'{name}={found}: a value is given twice')
    return found


def plain_value(value: Any) -> Any:
    """A setting's value as JSON and tables hold it: things with a name by that, tuples of integers as '120,1000'.

    Args:
        value: of a setting.
    """
    if isinstance(value, tuple):
        return ','.join(map(str, value))
    if isinstance(value, (str, int, float, bool, type(None))):
        return value
    return str(getattr(value, 'name', getattr(value, '__name__', type(value).__name__)))
