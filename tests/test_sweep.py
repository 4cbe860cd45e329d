"""A sweep: presets, scopes, axes, and what is refused."""

import json
import re

import pytest

from qstr_jax import columns, sweeps
from qstr_jax.tasks import links
from tests import small


def problem_of(**settings):
    return sweeps.cells_of(sweeps.Sweep(seq_lens=3, **settings))[0].problem


def test_presets_fill_what_is_left_open_and_nothing_else():
    published, paper = problem_of(models='rnn', preset='published'), problem_of(models='rnn', preset='paper')
    assert (published.module.cell, published.learner.test_samples, published.test_task.name) == (
        'gru', 5000, 'simple_qstr',
    )  # fmt: skip
    assert (paper.module.cell, paper.learner.test_samples, paper.test_task.name) == ('relu', 10_000, 'qstr')
    cells = sweeps.cells_of(sweeps.Sweep(models='rnn', seq_lens=3, preset='paper', rnn={'cell': 'lstm'}))
    assert cells[0].problem.module.cell == 'lstm'
    assert cells[0].lanes[0].weight_decay == 0.1
    mine = sweeps.cells_of(sweeps.Sweep(models='rnn', seq_lens=3, preset='paper', weight_decay=0.0))
    assert mine[0].lanes[0].weight_decay == 0.0


def test_names_take_one_value_or_several():
    assert sweeps.Sweep(models='transformer, ffn').models == ('transformer', 'ffn')
    assert sweeps.Sweep(models=('transformer,ffn',)).models == ('transformer', 'ffn')


@pytest.mark.parametrize(
    'given',
    [
        {'rnn': {'width': (8, 16)}},
        {'rnn.width': (8, 16)},
        {'axes': {'rnn.width': (8, 16)}},
        {'rnn': {'width': [8, 16]}},
    ],
)
def test_a_setting_is_given_by_scope_or_as_an_axis(given):
    cells = sweeps.cells_of(sweeps.Sweep(models='rnn', seq_lens=3, **given))
    assert [cell.problem.module.width for cell in cells] == [8, 16]


def test_the_name_of_a_thing_comes_before_its_kind():
    sweep = sweeps.Sweep(seq_lens=3, model={'initializer': 'flax'}, rnn={'initializer': 'pytorch'})
    schemes = {cell.model: cell.problem.module.initializer for cell in sweeps.cells_of(sweep)}
    assert schemes == {'transformer': 'flax', 'rnn': 'pytorch', 'ffn': 'flax'}


def test_a_tuple_setting_is_one_value_and_a_tuple_of_tuples_an_axis():
    def widths(value):
        sweep = sweeps.Sweep(models='ffn', seq_lens=3, ffn={'widths': value})
        return [cell.problem.module.widths for cell in sweeps.cells_of(sweep)]

    assert widths((8, 4)) == [(8, 4)]
    assert widths(((8,), (4, 4))) == [(8,), (4, 4)]


def test_thresholds_are_numbers_and_their_order_makes_no_cell():
    def thresholds(value):
        cells = sweeps.cells_of(sweeps.Sweep(models='ffn', seq_lens=3, threshold=0.1, thresholds=value))
        return [dict(cell.columns).get('thresholds') for cell in cells]

    assert thresholds(1) == ['1.0']
    assert thresholds((0.7, 0.5)) == ['0.7,0.5']
    assert thresholds([(0.5, 0.7), (0.7, 0.5), (0.7,)]) == ['0.7,0.5', '0.7']
    assert thresholds(()) == thresholds(None) == [None]
    with pytest.raises(ValueError, match='numbers with commas'):
        thresholds('0.7,half')


def test_task_and_learner_settings_have_short_names():
    short = sweeps.Sweep(models='ffn', seq_lens=(3, 4), token_dim=5, threshold=0.5)
    long = sweeps.Sweep(models='ffn', task={'seq_len': (3, 4), 'token_dim': 5}, learner={'threshold': 0.5})
    assert sweeps.cells_of(short) == sweeps.cells_of(long)


def range_of(count):
    return tuple(range(10_000, 10_000 + count))


@pytest.mark.parametrize(
    ('name', 'value', 'word'),
    [
        ('preset', 'publisht', 'preset'),
        ('models', (), 'models'),
        ('models', 'transformr', "did you mean 'transformer'"),
        ('seq_lens', (4, 4), 'seq_len'),
        ('num_seeds', 0, 'num_seeds'),
        ('num_seeds', 2.5, 'num_seeds'),
        ('lanes_per_batch', 0, 'lanes_per_batch'),
        ('lanes_per_batch', 10**9, 'at most 4096'),
        ('tune', 3, 'give a mapping'),
        ('axes', 3, 'give a mapping'),
        ('weight_decay', 'x', 'weight_decay'),
        ('learners', 'offline', 'learners'),
        ('threshold', float('inf'), 'threshold'),
        ('treshold', 0.5, "did you mean 'threshold'"),
        ('rnn', {'widht': 8}, 'did you mean rnn.width'),
        ('rnn', {'width': 'wide'}, 'rnn.width'),
        ('rnm', {'width': 8}, "did you mean 'rnn'"),
        ('optimizer', 'sdg', "did you mean 'sgd'"),
        ('risk', 'pointwize', "did you mean 'pointwise'"),
        ('max_steps', 5, 'ignored'),
        ('num_samples', 5, 'ignore'),
        ('num_seeds', 10**7, '10000000 seeds and the axes make 30,000,000 lanes: at most 100,000'),
        ('num_seeds', 10**20, 'at most'),
        ('axes', {'rnn.width': range_of(200), 'rnn.cell': ('gru', 'lstm'), 'max_samples': range_of(100)}, 'cells'),
        ('axes', {'models': ('rnn', 'ffn')}, 'models: cannot be an axis'),
        ('seq_lens', {}, 'give one value'),
        ('seq_lens', 10**20, 'at most'),
        ('encoding_dim', 10**12, 'at most'),
        ('learning_rate', 1e300, 'float32'),
        ('learning_rate', 1e-50, 'would be 0 in float32'),
        ('threshold', 1e-300, 'float32'),
        ('max_samples', 10**18, 'at most'),
        ('task_per_lane', 'no', 'task_per_lane'),
    ],
)
def test_bad_values_are_named_in_one_line(name, value, word):
    with pytest.raises(ValueError, match=word) as caught:
        sweeps.cells_of(sweeps.Sweep(**{name: value}))
    assert '\n' not in str(caught.value)


@pytest.mark.parametrize(
    ('given', 'line'),
    [
        ({'model': 'ffn'}, "model='ffn': has settings, not names; did you mean models='ffn'?"),
        ({'learner': 'online'}, "did you mean learners='online'?"),
        ({'axes': {'model': ('ffn', 'rnn')}}, "did you mean models=('ffn', 'rnn')?"),
        ({'rnn': 64}, 'rnn=64: give its settings by name, as rnn={…}; --describe=rnn lists them'),
        ({'ffn': {'learning_rate': 0.1}}, 'ffn has no such setting; it is of the learner, give learning_rate'),
        ({'task': {'width': 8}}, 'task has no such setting; it is of rnn, give rnn.width'),
        ({'ffn': {'width': 8}}, 'did you mean ffn.widths?'),
        (
            {'task': 'mqar', 'link': 'hermite2'},
            "link='hermite2': task mqar has no such setting; tasks that have it: qstr,",
        ),
        ({'task': {'name': 'modular_sum', 'token_dim': 4}}, 'task.token_dim=4: task modular_sum has no such setting'),
        ({'online': {'radius': 2.0}}, 'learner online has no such setting; learners that have it: '),
    ],
)
def test_what_is_given_to_another_thing_is_told_where_it_belongs(given, line):
    with pytest.raises(ValueError, match=re.escape(line)):
        sweeps.Sweep(**given)


@pytest.mark.parametrize('given', [{'task_per_lane': True, 'task_seed': 3}, {'samples_unit': 'Nd'}], ids=str)
def test_an_argument_that_would_be_ignored_is_an_error(given):
    with pytest.raises(ValueError, match='would be ignored'):
        sweeps.Sweep(learners='constrained', **given)


@pytest.mark.parametrize(
    ('given', 'line'),
    [
        ({'rnn': {'width': 64}}, "rnn.width=64: would be ignored, since the sweep has no model 'rnn'"),
        ({'axes': {'rnn.width': (64, 128)}}, 'rnn.width=(64, 128): would be ignored'),
        ({'constrained': {'radius': 2.0}}, "the sweep has no learner 'constrained'"),
        ({'closed_form': {'weight_decay': 0.1}}, 'would be ignored by closed_form'),
        ({'mqar': {'vocab_size': 2}}, "the sweep has no task 'mqar'"),
    ],
    ids=str,
)
def test_a_setting_of_what_a_sweep_does_not_have_is_an_error(given, line):
    sweep = sweeps.Sweep(models='ffn', seq_lens=3, **given)
    with pytest.raises(ValueError, match=re.escape(line)):
        sweeps.cells_of(sweep)


def test_settings_of_a_link_that_is_not_chosen_are_an_error(monkeypatch, own_entries):
    monkeypatch.setattr(columns, '_TABLE', dict(columns._TABLE))
    links.register('scaled')(lambda own=1.0: links.get('linear'))
    sweep = sweeps.Sweep('ffn', seq_lens=3, link='scaled', scaled={'own': 2.0})
    assert len(sweeps.cells_of(sweep)) == len(sweeps.cells_of(sweep.replace(link='linear'))) == 1
    with pytest.raises(ValueError, match="would be ignored, since the sweep has no link 'scaled'"):
        sweeps.cells_of(sweeps.Sweep('ffn', seq_lens=3, scaled={'own': 2.0}))


def test_what_a_replaced_model_had_is_left_out():
    sweep = sweeps.Sweep(('ffn', 'rnn'), seq_lens=3, rnn={'width': 8}, ffn={'widths': (8,)})
    assert sweep.replace(models='ffn') == sweeps.Sweep('ffn', seq_lens=3, ffn={'widths': (8,)})
    with pytest.raises(ValueError, match='would be ignored'):
        sweeps.cells_of(sweep.replace(models='ffn', rnn={'width': 9}))


def test_one_setting_given_twice_is_an_error():
    with pytest.raises(ValueError, match='twice'):
        sweeps.Sweep(threshold=0.5, learner={'threshold': 0.6})
    with pytest.raises(ValueError, match='axis'):
        sweeps.Sweep(threshold=0.5, axes={'threshold': (0.5, 0.6)})


def test_json_holds_every_setting():
    link = links.Link('mine', lambda key, q, d: {}, lambda params, x_QxD: x_QxD.sum())
    plain = sweeps.Sweep(link=link, ffn={'widths': (8, 4)}, learning_rate=(1e-3, 1e-2)).as_json()
    assert json.loads(json.dumps(plain)) == plain
    assert plain['settings'] == {'task.link': ['mine'], 'ffn.widths': [[8, 4]], 'learner.learning_rate': [1e-3, 1e-2]}


def test_replace_changes_what_it_names():
    sweep = small.settings(models='ffn')
    changed = sweep.replace(threshold=0.3, num_seeds=7)
    assert changed.num_seeds == 7
    assert sweeps.cells_of(changed)[0].problem.learner.threshold == 0.3
    assert sweeps.cells_of(changed.replace(threshold=0.9, num_seeds=2)) == sweeps.cells_of(sweep)
    assert sweep.test_task == 'simple_qstr'  # by the preset 'published'
    assert sweep.replace(preset='paper').test_task == 'qstr'
    assert sweeps.Sweep(test_task='simple_qstr').replace(preset='paper').test_task == 'simple_qstr'


@pytest.mark.parametrize('before', [{'online': {'learning_rate': 1e-3}}, {'learning_rate': 1e-3}], ids=str)
def test_what_is_replaced_is_not_what_was_given_under_its_own_name(before):
    sweep = sweeps.Sweep(models='ffn', seq_lens=3, **before).replace(learning_rate=1e-2)
    assert {lane.learning_rate for lane in sweeps.cells_of(sweep)[0].lanes} == {1e-2}


def test_a_replaced_task_replaces_its_settings():
    sweep = sweeps.Sweep('ffn', seq_lens=3, token_dim=4).replace(task={'token_dim': 5})
    assert sweeps.cells_of(sweep)[0].problem.task.token_dim == 5


def test_replaced_axes_stand_beside_what_was_given():
    sweep = small.settings(models='ffn', axes={'weight_decay': (0.0, 0.1)})
    changed = sweep.replace(axes={'weight_decay': 0.2, 'batch_size': (8, 16)})
    cells = sweeps.cells_of(changed)
    assert [cell.problem.learner.batch_size for cell in cells] == [8, 16]
    assert {lane.weight_decay for cell in cells for lane in cell.lanes} == {0.2}
    assert {cell.problem.learner.threshold for cell in cells} == {0.9}
