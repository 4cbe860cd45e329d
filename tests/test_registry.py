"""What may be registered under which names."""

import dataclasses

import pytest

from qstr_jax import models, tasks


@pytest.mark.parametrize('name', ['seed', 'cell', 'folder', 'model', 'outcome', 'samples_to_threshold', 'test_loss'])
def test_no_setting_takes_the_name_of_a_column_of_all_rows(name, own_entries):
    fields = [(name, int, 3)]
    task = dataclasses.make_dataclass('Task', fields, bases=(tasks.QSTR,), frozen=True)
    with pytest.raises(ValueError, match=f'no setting may be called {name!r}'):
        tasks.register('odd')(task)


def test_a_models_setting_may_since_its_column_has_the_models_name(own_entries):
    models.register('odd')(lambda task, seed=3: None)
