"""Checks that the arguments of a formula are numbers for which it is stated."""


def positive(**values: float) -> None:
    """Checks that all values are positive.

    Args:
        **values: numbers by name.

    Raises:
        ValueError: one is not.
    """
    for name, value in values.items():
        if not value > 0:
            raise ValueError(f'{name}={value}: must be positive')


def at_least(least: float, **values: float) -> None:
    """Checks that no value is too small.

    Args:
        least: the smallest value allowed.
        **values: numbers by name.

    Raises:
        ValueError: one is smaller, or NaN.
    """
    for name, value in values.items():
        if not value >= least:
            raise ValueError(f'{name}={value}: must be at least {least}')
