"""Sample sizes in the theory's units."""

import types

import pytest

from qstr_jax import sweeps, tasks
from qstr_jax.sweeps.sweep import in_prompts
from tests import small

TASK = tasks.build('qstr', seq_len=5, sparsity=2, token_dim=4, link='sum')


@pytest.mark.parametrize(('unit', 'factor'), [('prompts', 1), ('d', 4), ('qd', 8), ('Nd', 20)])
def test_units(unit, factor):
    assert in_prompts((1, 3), unit, TASK) == (factor, 3 * factor)


@pytest.mark.parametrize(
    ('value', 'unit', 'word'),
    [
        (0, 'prompts', 'positive'),
        (-3, 'prompts', 'positive'),
        (float('nan'), 'prompts', 'finite'),
        (2.5, 'prompts', '2.5 prompts, not a whole number'),
        (0.33, 'Nd', '6.6 prompts, not a whole number \\(Nd = 20\\)'),
        (1, 'N', 'unknown'),
    ],
)
def test_bad_sizes(value, unit, word):
    with pytest.raises(ValueError, match=word):
        in_prompts((value,), unit, TASK)


def test_a_task_without_what_a_unit_is_made_of():
    task = types.SimpleNamespace(name='mine', seq_len=3, token_dim=2)
    assert in_prompts((2,), 'Nd', task) == (12,)
    with pytest.raises(ValueError, match="samples_unit='qd': task mine has no sparsity"):
        in_prompts((2,), 'qd', task)


def capacity(**changes):
    settings = {'learners': 'adamw', 'models': 'ffn', 'task': 'simple_qstr', 'max_samples': None, **changes}
    (cell,) = sweeps.cells_of(small.settings(**settings))
    return cell.problem.learner.max_samples


def test_capacity_is_a_power_of_two_or_the_end_of_a_search():
    assert capacity(num_samples=(3, 100)) == 128
    assert capacity(num_samples=(128,)) == 128
    assert capacity(max_samples=777) == 777
