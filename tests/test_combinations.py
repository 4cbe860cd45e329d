"""Groups of rows with a figure each, and what the figures and their files are called."""

import pandas as pd
import pytest

from qstr_jax.analysis import combinations
from tests import helpers

ROWS = pd.DataFrame(
    [
        {'model': model, 'task': 'qstr', 'seq_len': n, 'sparsity': q, 'threshold': 0.7, 'samples_to_threshold': 9.0}
        for model in ('ffn', 'rnn')
        for n in (4, 8)
        for q in (1, 2)
    ]
)


def test_a_group_for_each_setting_that_the_figure_does_not_show():
    groups = combinations.combinations(ROWS, ('seq_len',), ('model',))
    assert [point for point, _ in groups] == [{'sparsity': 1}, {'sparsity': 2}]
    assert all(len(rows) == 4 for _, rows in groups)
    assert combinations.suffix(groups[1][0]) == '_q2'


def test_a_title_takes_its_values_from_the_rows():
    text = 'N = {seq_len}, q = {sparsity}: samples to test MSE {threshold}'
    assert combinations.title(text, ROWS) == 'N = 4, 8, q = 1, 2: samples to test MSE 0.7'
    assert combinations.title(text, ROWS.assign(threshold=0.3)).endswith('MSE 0.3')


def test_a_title_names_the_combination_once():
    (point, rows), _ = combinations.combinations(ROWS, ('seq_len',), ('model',))
    assert combinations.title('Mine', rows, point) == 'Mine, q = 1'
    assert combinations.title('Mine, q = {sparsity}', rows, point) == 'Mine, q = 1'
    assert combinations.title('', rows, point) == 'q = 1'


@pytest.mark.parametrize(
    ('task', 'sparsities', 'name'),
    [('qstr', (1,), '1STR'), ('simple_qstr', (3,), 'simple-3STR'), ('qstr', (1, 2), 'qSTR'), ('mine', (2,), 'mine')],
)
def test_a_title_names_the_task_of_the_rows(task, sparsities, name):
    rows = ROWS.head(2).assign(task=task, sparsity=[sparsities[0], sparsities[-1]])
    assert combinations.title('{task}: samples', rows) == f'{name}: samples'


def test_braces_around_no_column_stay():
    assert combinations.title('the set {a, b}, {c}', ROWS) == 'the set {a, b}, {c}'


def test_small_print_follows_from_the_rows():
    """Also where seeds, test prompts or widths are others than the config's, and without the RNN."""
    texts = ('{num_seeds} seeds, {test_samples} test prompts', '{rnn_cell} of width {rnn_width}', 'as it is')
    rows = pd.concat([ROWS.assign(seed=seed, test_samples=2000) for seed in range(4)])
    rows.loc[rows['model'] == 'rnn', ['rnn_cell', 'rnn_width']] = ['gru', 64.0]
    assert combinations.notes(texts, rows) == ('4 seeds, 2,000 test prompts', 'GRU of width 64', 'as it is')
    ffn = rows[rows['model'] == 'ffn']
    assert combinations.notes(texts, ffn) == ('4 seeds, 2,000 test prompts', 'as it is')
    assert combinations.notes(texts, ffn.drop(columns=['rnn_cell', 'rnn_width'])) == combinations.notes(texts, ffn)
    assert combinations.notes('one text', rows) == ('one text',)


def test_the_notes_of_configs_type_no_setting_that_a_flag_changes():
    config = helpers.config_module('quickstart').get_config()
    rows = pd.DataFrame([{'seed': 7, 'test_samples': 300, 'rnn_cell': 'lstm', 'rnn_width': 12}])
    assert '; '.join(combinations.notes(config.notes, rows)).startswith(
        'seeds: 1 (published: 5); test prompts: 300 (published: 5,000); LSTM of width 12 (published: 500)'
    )
