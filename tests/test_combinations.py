"""Groups of rows with a figure each, and what the figures and their files are called."""

import pandas as pd
import pytest

from qstr_jax.analysis import combinations

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
