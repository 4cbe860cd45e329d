"""Settings: presets, axes, and what is refused."""

import json

import pytest

from qstr_jax import sweeps
from qstr_jax.sweeps import sweep as settings_module
from qstr_jax.tasks import links


def test_presets_fill_what_is_left_open_and_nothing_else():
    published, paper = sweeps.Sweep(), sweeps.Sweep(preset='paper')
    assert (published.rnn_cell, published.weight_decay) == ('gru', (0.01,))
    assert (published.test_samples, published.test_task) == (5000, 'simple_qstr')
    assert (paper.rnn_cell, paper.weight_decay) == ('relu', (0.1,))
    assert (paper.test_samples, paper.test_task) == (10_000, 'qstr')
    mine = sweeps.Sweep(preset='paper', **{'rnn.cell': 'lstm'}, weight_decay=0.0)
    assert (mine.rnn_cell, mine.weight_decay) == ('lstm', (0.0,))


def test_axes_take_one_value_or_several():
    assert sweeps.Sweep(models='transformer, ffn').models == ('transformer', 'ffn')
    assert sweeps.Sweep(models=('transformer,ffn',)).models == ('transformer', 'ffn')
    assert sweeps.Sweep(seq_lens=8).seq_lens == (8,)
    assert sweeps.Sweep(learning_rate=[1, 1e-3]).learning_rate == (1.0, 1e-3)


@pytest.mark.parametrize(
    ('name', 'value'),
    [
        ('preset', 'publisht'),
        ('models', ()),
        ('seq_lens', (4, 4)),
        ('num_seeds', 0),
        ('num_seeds', 2.5),
        ('lanes_per_batch', 0),
        ('learning_rate', -1.0),
        ('weight_decay', 'x'),
        ('learners', 'offline'),
        ('budget', 0.0),
    ],
)
def test_bad_values_are_named_in_one_line(name, value):
    with pytest.raises(ValueError, match=name) as caught:
        sweeps.Sweep(**{name: value})
    assert '\n' not in str(caught.value)


def test_json_holds_every_setting():
    link = links.Link('mine', lambda key, q, d: {}, lambda params, x_QxD: x_QxD.sum())
    plain = sweeps.Sweep(link=link).as_json()
    assert json.loads(json.dumps(plain)) == plain
    assert plain['link'] == 'mine'
    fields = {field.name for field in settings_module.dataclasses.fields(sweeps.Sweep)}
    assert set(plain) == fields - set(settings_module.FIXED_ONLY)
    assert set(sweeps.Sweep(learners='adamw').as_json()) == fields
