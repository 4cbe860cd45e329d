"""What may be registered under which names."""

import dataclasses
import re
from typing import ClassVar

import pytest

from qstr_jax import learners, models, tasks
from qstr_jax.models import probes
from qstr_jax.tasks import encoders


@pytest.mark.parametrize('name', ['seed', 'cell', 'folder', 'model', 'outcome', 'samples_to_threshold', 'test_loss'])
def test_no_setting_takes_the_name_of_a_column_of_all_rows(name, own_entries):
    fields = [(name, int, 3)]
    task = dataclasses.make_dataclass('Task', fields, bases=(tasks.QSTR,), frozen=True)
    with pytest.raises(ValueError, match=f'no setting may be called {name!r}'):
        tasks.register('odd')(task)


def test_a_models_setting_may_since_its_column_has_the_models_name(own_entries):
    models.register('odd')(lambda task, seed=3: None)


class Wider(tasks.QSTR):
    reach: int = 1


class Clipped(learners.Online):
    clip: float = 1.0


@dataclasses.dataclass(frozen=True)
class Further(Wider):
    steps: int = 1


@pytest.mark.parametrize(
    ('register', 'kind', 'setting'),
    [
        (tasks.register, Wider, 'Wider.reach'),
        (learners.register, Clipped, 'Clipped.clip'),
        (tasks.register, Further, 'Wider.reach'),
    ],
)
def test_fields_of_a_class_that_is_no_dataclass_are_refused_since_they_would_be_lost(register, kind, setting):
    with pytest.raises(ValueError, match=f'^{setting}: would be no setting; put @dataclasses.dataclass') as error:
        register('odd')(kind)
    assert '\n' not in str(error.value)


def test_a_subclass_without_fields_of_its_own_needs_no_decorator(own_entries):
    class Plain(tasks.QSTR):
        shared: ClassVar[bool] = True

        def labels(self, x_NxD, t_NxQ, link_params):
            return x_NxD[t_NxQ[:, 0], 0]

    tasks.register('plain')(Plain)


def without(width=8):
    return width


def only_by_name(*, task, width=8):
    return width


@pytest.mark.parametrize(
    ('register', 'builder', 'line'),
    [
        (models.register('odd'), without, 'without: is called with task, so write def without(task, width=8)'),
        (models.register('odd'), only_by_name, 'so write def only_by_name(task, width=8)'),
        (models.register('odd'), models.Feedforward, 'Feedforward: is a class: register a function (task, settings'),
        (encoders.register('odd'), without, 'so write def without(key, task, width=8)'),
        (probes.register, without, 'so write def without(params, task_draw, problem, width=8)'),
    ],
)
def test_a_builder_without_the_arguments_that_it_is_called_with_is_told_the_right_ones(register, builder, line):
    with pytest.raises(ValueError, match=re.escape(line)):
        register(builder)


def test_a_learner_may_leave_out_what_has_a_default_in_the_protocol(own_entries):
    @learners.register('bare')
    @dataclasses.dataclass(frozen=True)
    class Bare:
        batch_size: int = 7

    bare = Bare()
    assert (bare.batch_size, bare.test_samples, bare.risk, bare.threshold_on) == (7, 0, 'averaged', 'loss')
    assert bare.precision is None
    assert bare.is_search is None
    assert [field.name for field in dataclasses.fields(Bare)] == ['batch_size']
