"""Training-set sizes in the theory's units."""

import pytest

from qstr_jax.sweeps import sample_sizes
from tests import small


def task_and(**changes):
    settings = small.settings(learners='adamw', task='simple_qstr', test_task='simple_qstr', **changes)
    return settings, small.cell('ffn', seq_lens=(5,), sparsity=(2,), link='sum').problem.task


@pytest.mark.parametrize(('unit', 'factor'), [('prompts', 1), ('d', 4), ('qd', 8), ('Nd', 20)])
def test_units(unit, factor):
    settings, task = task_and(num_samples=(1, 3), samples_unit=unit)
    assert sample_sizes.sample_sizes(settings, task) == (factor, 3 * factor)


@pytest.mark.parametrize(
    ('changes', 'word'),
    [
        ({'num_samples': 0}, 'positive'),
        ({'num_samples': -3}, 'positive'),
        ({'num_samples': 2.5}, '2.5 prompts is no integer'),
        ({'num_samples': 0.33, 'samples_unit': 'Nd'}, '6.6 prompts is no integer, Nd = 20'),
        ({'num_samples': 1, 'samples_unit': 'N'}, 'unknown'),
    ],
)
def test_bad_sizes(changes, word):
    with pytest.raises(ValueError, match=word):
        sample_sizes.sample_sizes(*task_and(**changes))


def test_capacity_is_a_power_of_two_or_the_end_of_a_search():
    assert sample_sizes.capacity(*task_and(num_samples=(3, 100))) == 128
    assert sample_sizes.capacity(*task_and(num_samples=(128,))) == 128
    assert sample_sizes.capacity(*task_and(max_samples=777)) == 777
