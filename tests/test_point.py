"""What a cell's rows say of it, and what its id is made of."""

import dataclasses

import pytest

from qstr_jax import columns, learners, models, sweeps
from qstr_jax.learners import online
from qstr_jax.settings import registry, traced
from qstr_jax.storage import results
from qstr_jax.sweeps import claims, lane_batches
from tests import small


@pytest.fixture
def unregister():
    """What a test registers and declares is gone afterwards."""
    places = registry._ENTRIES, columns._TABLE
    before = [dict(place) for place in places]
    yield
    for place, content in zip(places, before, strict=True):
        place.clear()
        place.update(content)


@pytest.mark.parametrize(
    ('model', 'settings'),
    [
        ('transformer', {'num_heads': 1}),  # q
        ('transformer', {'transformer.attention': 'separate', 'transformer.initializer': 'pytorch'}),
        ('rnn', {'rnn.cell': 'gru', 'rnn.states': 'inclusive', 'rnn.readout': 'linear'}),
        ('ffn', {'ffn.form': 'flat'}),
        ('ffn', {'link': 'linear', 'indices': 'uniform', 'sparsity': 1, 'encoding_dim': 5}),
        ('ffn', {'optimizer': 'adamw', 'risk': 'averaged', 'screen': True}),
        ('ffn', {'test_task': 'qstr', 'preset': 'standard', 'lanes_per_batch': 2, 'num_seeds': 7}),
        ('ffn', {'rnn.width': 99, 'transformer.mlp_width': 3}),  # of other models
    ],
)
def test_a_setting_given_at_its_default_renames_nothing(model, settings):
    settings = {'transformer.num_heads' if name == 'num_heads' else name: value for name, value in settings.items()}
    plain = sweeps.Sweep(models=('transformer', 'rnn', 'ffn'), seq_lens=3)
    given = plain.replace(**settings)
    ids = [{cell.model: cell.id for cell in sweeps.cells_of(sweep)}[model] for sweep in (plain, given)]
    assert ids[0] == ids[1]


def test_the_same_widths_from_the_task_and_by_hand_are_one_cell():
    sweep = sweeps.Sweep(models=('rnn', 'ffn'), seq_lens=3, sparsity=2, link='sum')
    by_hand = sweep.replace(**{'rnn.width': 1000, 'ffn.widths': (3 * 10 * 2, 1000)})
    assert [cell.id for cell in sweeps.cells_of(sweep)] == [cell.id for cell in sweeps.cells_of(by_hand)]


def test_a_new_setting_with_a_default_renames_nothing(unregister):
    """An architecture, before and after it gets another setting."""

    def before(task, width: int = 8):
        return models.Feedforward(widths=(width,), token_dim=task.token_dim)

    def after(task, width: int = 8, form: str = 'flat'):
        return models.Feedforward(widths=(width,), token_dim=task.token_dim, form=form)

    ids = []
    for builder in before, after:
        registry._ENTRIES.pop('growing', None)
        models.register('growing')(builder)
        ids.append([cell.id for cell in sweeps.cells_of(small.settings(models=('growing',), axes=WIDTHS))])
    assert ids[0] == ids[1]
    assert len(set(ids[0])) == 2


WIDTHS = {'growing.width': (8, 16)}


def test_settings_that_are_only_together_the_default_are_needed_together(unregister):
    """Each of two settings may be left out beside the other, but not both."""

    @models.register('redundant')
    def _redundant(task, deep: bool = False, large: bool = False):
        return models.Feedforward(widths=(64,) if deep or large else (8,), token_dim=task.token_dim)

    def ids(**settings):
        return [cell.id for cell in sweeps.cells_of(small.settings(models=('redundant',), redundant=settings))]

    assert ids(deep=True, large=True) != ids()
    assert ids(deep=True, large=True) == ids(large=True)


def test_columns_of_a_plugin_have_role_and_type(unregister):
    @models.register('wavelets')
    def _wavelets(task, scales: int = 3, decay: float | None = None, family: str = 'haar', widths: tuple = (8,)):
        return models.Feedforward(widths=widths, token_dim=task.token_dim)

    (cell,) = sweeps.cells_of(small.settings(models=('wavelets',)))
    found = dict(cell.columns)
    assert [found[f'wavelets_{name}'] for name in ('scales', 'decay', 'family', 'widths')] == [3, None, 'haar', '8']
    types = {name: columns.get(f'wavelets_{name}').type for name in ('scales', 'decay', 'family', 'widths')}
    assert types == {'scales': 'int', 'decay': 'float', 'family': 'str', 'widths': 'str'}
    assert {columns.get(f'wavelets_{name}').role for name in types} == {'model'}


def test_lanes_of_a_plugins_traced_setting_are_told_apart(unregister, tmp_path):
    """A learner with a number of its own that lanes differ in: each lane is trained once, and has its own row."""

    @learners.register('scaled')
    @dataclasses.dataclass(frozen=True)
    class Scaled(online.Online):
        """Online training with a scaled learning rate.

        Attributes:
            factor: of the learning rate.
        """

        factor: float = traced(1.0)

        def lane_settings(self):
            return (*super().lane_settings(), 'factor')

        def transform(self, lane):
            return super().transform(lane._replace(learning_rate=lane.learning_rate * lane.factor))

    sweep = small.settings(models=('ffn',), learners=('scaled',), num_seeds=1, axes={'factor': (1.0, 0.5)})
    rows = sweeps.run(sweep, tmp_path, small.quiet())
    assert columns.get('factor').role == 'lane'
    assert list(rows['factor']) == [0.5, 1.0]
    (cell,) = sweeps.cells_of(sweep)
    assert all(claims.missing(tmp_path, batch) == () for batch in lane_batches.cut([cell], lambda cell: 2))
    more = sweeps.run(sweep.replace(factor=(0.25, 0.5)), tmp_path, small.quiet())
    assert list(more['factor']) == [0.25, 0.5, 1.0]
    assert results.load_curves(tmp_path)['factor'].nunique() == 3
