"""Checks that the arguments of a formula are numbers for which it is stated."""


def positive(**values: float) -> None:
    """Checks that all values are positive."""
    for name, value in values.items():
        if not value > 0:
            raise ValueError(f'{name}={value}: must be positive')


def at_least(least: float, **values: float) -> None:
    """Checks that no value is too small."""
    for name, value in values.items():
        if not value >= least:
            raise ValueError(f'{name}={value}: must be at least {least}')
