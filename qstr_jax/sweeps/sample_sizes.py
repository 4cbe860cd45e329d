"""Sample sizes in the units of the theory: n as a multiple of d, q d or N d."""

from typing import Any

from qstr_jax.settings import checks

UNITS = ('prompts', 'd', 'qd', 'Nd')


def unit(name: str, task: Any) -> int:
    """Prompts in one unit."""
    checks.choice('samples_unit', name, UNITS)
    if name == 'prompts':
        return 1
    d = task.token_dim
    return {'d': d, 'qd': task.sparsity * d, 'Nd': task.seq_len * d}[name]


def in_prompts(values: tuple[float, ...], unit_name: str, task: Any) -> tuple[int, ...]:
    """Sample sizes in prompts."""
    return tuple(_prompts(value, unit_name, task) for value in values)


def _prompts(value: float, unit_name: str, task: Any) -> int:
    size = unit(unit_name, task)
    checks.positive('num_samples', value)
    exact = value * size
    if exact > checks.MOST:
        raise ValueError(f'num_samples={value!r}: {exact:g} prompts, must be at most {checks.MOST:,}')
    if abs(exact - round(exact)) > 1e-6 * exact:
        raise ValueError(
            f'num_samples={value!r}: {value:g} {unit_name} = {exact:g} prompts, not a whole number '
            f'({unit_name} = {size})'
        )
    return round(exact)
