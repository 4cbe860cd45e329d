"""Training-set sizes in the theory's units: n as a multiple of d, q d or N d."""

UNITS = ('prompts', 'd', 'qd', 'Nd')


def unit(name, task):
    """Prompts in one unit.

    Raises:
        ValueError: an unknown unit.
    """
    if name not in UNITS:
        raise ValueError(f'samples_unit={name!r}: unknown, one of {", ".join(UNITS)}')
    d = task.token_dim
    return {'prompts': 1, 'd': d, 'qd': task.sparsity * d, 'Nd': task.seq_len * d}[name]


def sample_sizes(settings, task):
    """All n of a cell, in prompts.

    Raises:
        ValueError: an n is not positive, or no integer.
    """
    return tuple(_prompts('num_samples', value, settings.samples_unit, task) for value in settings.num_samples)


def _prompts(name, value, unit_name, task):
    size = unit(unit_name, task)
    exact = value * size
    if isinstance(value, bool) or not value > 0:
        raise ValueError(f'{name}={value!r}: must be positive')
    if abs(exact - round(exact)) > 1e-6 * exact:
        raise ValueError(
            f'{name}={value!r}: {value:g} {unit_name} = {exact:g} prompts is no integer, {unit_name} = {size}'
        )
    return round(exact)


def capacity(settings, task):
    """n_max, the prompts that a lane keeps: of a search `max_samples`, else the next power of two.

    Powers of two, so that more values of n seldom make another program.
    """
    if not settings.num_samples:
        return settings.max_samples
    return 1 << (max(sample_sizes(settings, task)) - 1).bit_length()
