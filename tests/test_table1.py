"""Table 1, measured: exponents beside claims, on made-up lanes whose law is known."""

import numpy as np
import pandas as pd
import pytest

from qstr_jax import columns
from qstr_jax.analysis import claims, growth, table1
from tests import harness, helpers

LENGTHS = (4, 8, 16, 32, 64)


def lanes(model, task='qstr', law=lambda n: 1000.0 * n, lengths=LENGTHS, num_seeds=4, own=True, noise=0.05, **changes):
    """Rows of lanes whose samples follow a law, spread evenly about it."""
    around = np.linspace(-1, 1, num_seeds) if num_seeds > 1 else np.zeros(1)
    rows = [
        {
            'model': model, 'task': task, 'sparsity': 1, 'seq_len': n, 'threshold': 0.7, 'link': 'linear',
            'risk': 'averaged', 'learner': 'online', 'optimizer': 'adamw', 'learning_rate': 1e-3, 'weight_decay': 0.01,
            'token_dim': 10, 'encoding_scale': 'unscaled', 'encoding_dim': int(5 * np.log(n)),
            'seed': seed, 'task_seed': seed if own else 0, 'outcome': 'reached', 'max_samples': 10**9,
            'samples_to_threshold': round(law(n) * (1 + noise * around[seed])), f'{model}_width': 10 * n, **changes,
        }
        for n in lengths
        for seed in range(num_seeds)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def line(table, model, task='qstr'):
    (found,) = [row for _, row in table.iterrows() if (row['architecture'], row['task']) == (model, task)]
    return found


@pytest.mark.parametrize(
    ('model', 'law', 'agrees'),
    [
        ('transformer', lambda n: 9000.0, 'yes'),
        ('transformer', lambda n: 9000 * np.log(n) ** 1.5, 'yes'),
        ('transformer', lambda n: 90.0 * n, 'no'),
        ('ffn', lambda n: 90.0 * n**1.5, 'yes'),
        ('ffn', lambda n: 90.0 * n**0.6, 'no'),
        ('ffn', lambda n: 90.0 * n, 'open'),
        ('rnn', lambda n: 90.0 * n**0.7, 'yes'),
        ('rnn', lambda n: 9000.0, 'open'),
    ],
)
def test_a_known_law_gets_its_verdict(model, law, agrees):
    row = line(table1.measure(lanes(model, law=law)), model)
    assert row['agrees'] == agrees
    assert row['N'] == LENGTHS
    assert row['low'] <= row['exponent'] <= row['high']


def test_exponent_and_power_of_the_log_are_those_of_the_law():
    table = table1.measure(lanes('ffn', law=lambda n: 90.0 * n**1.5, noise=0))
    assert line(table, 'ffn')['exponent'] == pytest.approx(1.5, abs=0.01)
    table = table1.measure(lanes('transformer', law=lambda n: 1e5 * np.log(n) ** 2, noise=0))
    assert line(table, 'transformer')['log_power'] == pytest.approx(2, abs=0.01)


def test_all_six_claims_have_a_line_whatever_the_rows():
    for rows in (pd.DataFrame(), lanes('rnn', 'simple_qstr')):
        table = table1.measure(rows)
        assert set(zip(table['architecture'], table['task'], strict=True)) == set(claims.CLAIMS)
    assert (table1.measure(pd.DataFrame())['note'] == 'no rows').all()


def test_only_the_online_learner_counts():
    rows = pd.concat([lanes('ffn'), lanes('rnn', learner='constrained', outcome='fitted')])
    assert line(table1.measure(rows), 'rnn')['agrees'] == 'not measured'
    assert line(table1.measure(rows), 'ffn')['agrees'] == 'open'


def test_lanes_that_share_a_draw_do_not_count():
    table = table1.measure(lanes('ffn', own=False))
    assert line(table, 'ffn')['agrees'] == 'not measured'
    assert 'share one' in line(table, 'ffn')['note']
    both = pd.concat([lanes('ffn', own=False).assign(folder='a'), lanes('ffn', num_seeds=3).assign(folder='b')])
    assert line(table1.measure(both), 'ffn')['lanes'] == '3'


def test_risks_are_curves_of_their_own():
    table = table1.measure(pd.concat([lanes('transformer'), lanes('transformer', risk='pointwise')]))
    notes = table['note'][(table['architecture'] == 'transformer') & (table['task'] == 'qstr')].tolist()
    assert ['by the point-wise risk' in note for note in notes] == [False, True]


def test_a_lane_that_two_directories_hold_counts_once():
    rows = lanes('ffn')
    twice = pd.concat([rows.assign(folder='a', screen=True), rows.assign(folder='b', screen=False)])
    assert line(table1.measure(twice), 'ffn')['exponent'] == line(table1.measure(rows), 'ffn')['exponent']


@pytest.mark.parametrize(
    ('rows', 'word'),
    [
        (lanes('ffn', lengths=(4, 8)), 'only 2 N, 3 needed'),
        (lanes('ffn', lengths=(4,)), 'only one N'),
        (lanes('ffn', outcome='censored'), 'threshold not reached'),
        (lanes('ffn', num_seeds=1), 'no interval'),
    ],
)
def test_no_exponent_is_said_in_words(rows, word):
    row = line(table1.measure(rows), 'ffn')
    assert word in row['note']
    assert row['agrees'] in ('not measured', 'open')


def test_a_setting_may_have_any_name(monkeypatch):
    """A plugin's setting is no helper column of the table, whatever it is called."""
    near = lanes('ffn', lengths=(4, 8, 16), num_seeds=9).assign(folder='near')
    far = lanes('ffn').assign(folder='far')
    rows = pd.concat([near, far], ignore_index=True)
    table = table1.measure(rows)
    monkeypatch.setitem(columns._TABLE, 'reach', columns.Column('reach', 'task', 'int'))
    pd.testing.assert_frame_equal(table1.measure(rows), table)


def test_a_width_is_the_same_number_as_a_float():
    """As where the rows of another architecture, which has no such width, stood beside it."""
    rows = lanes('rnn')
    first, second = rows[rows['seq_len'] < 64], rows[rows['seq_len'] != 32]
    both = pd.concat([first.assign(folder='a', seed=first['seed'] + 10), second.assign(folder='b')], ignore_index=True)
    widths = [500.0 if folder == 'a' else 500 for folder in both['folder']]
    both['rnn_width'] = pd.Series(widths, dtype=object)
    (line,) = table1.measure(both).query('architecture == "rnn" and agrees != "not measured"').to_dict('records')
    assert line['N'] == LENGTHS


def test_a_sweep_over_widths_is_not_averaged_into_a_curve():
    rows = pd.concat([lanes('ffn'), lanes('ffn', lengths=(4,), ffn_width=99), lanes('ffn', lengths=(4,), ffn_width=7)])
    assert line(table1.measure(rows), 'ffn')['N'] == LENGTHS[1:]
    folders = np.where(rows['ffn_width'].isin((7, 99)), 'study', 'curve')
    assert line(table1.measure(rows.assign(folder=folders)), 'ffn')['N'] == LENGTHS


def test_lengths_that_need_no_retrieval_are_left_out():
    table = table1.measure(lanes('ffn', lengths=(2, 3, *LENGTHS)))
    assert line(table, 'ffn')['N'] == LENGTHS
    assert 'without N = 2, 3: 1 − 1/N ≤ 0.7 needs no retrieval' in line(table, 'ffn')['note']
    assert line(table1.measure(lanes('ffn', threshold=0.99)), 'ffn')['agrees'] == 'not measured'


def test_the_tables_can_be_printed():
    table = table1.measure(pd.concat([lanes('ffn'), lanes('mamba')]))
    text = table1.markdown(table)
    assert len(text.splitlines()) == 2 + len(table)
    assert 'claims nothing' in text
    latex = table1.latex(table)
    assert latex.count('&') == (len(table) + 1) * 8
    assert latex.isascii()


def test_the_committed_table_is_that_of_the_committed_rows(tmp_path):
    """As a user of `make table1` makes it, to the byte; the parquet file to the number."""
    committed = helpers.ROOT / 'experiments/results/table1'
    done = harness.run_binary('table1', '--workdir=experiments/results', f'--output={tmp_path}')
    assert done.returncode == 0, done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in committed.iterdir()}
    assert done.stdout.strip() == (committed / 'table1.md').read_text().strip()
    for name in 'table1.md', 'table1.tex':
        assert (tmp_path / name).read_text() == (committed / name).read_text()
    made, kept = (pd.read_parquet(folder / 'table1.parquet') for folder in (tmp_path, committed))
    pd.testing.assert_frame_equal(made, kept, rtol=1e-9)


def test_a_place_without_results_is_one_line():
    helpers.assert_one_error(harness.run_binary('table1', '--workdir=nowhere'), 'nowhere')


def test_growth_tells_both_laws_of_every_curve():
    rows = pd.concat([
        lanes('ffn', law=lambda n: 90.0 * n**1.5, noise=0.01),
        lanes('transformer', law=lambda n: 900 * np.log(n) ** 1.5, noise=0.01),
        lanes('rnn', lengths=(4, 8)),
    ])  # fmt: skip
    table = growth.growth(rows).set_index('curve')
    assert table.loc['FFN', 'exponent'] == pytest.approx(1.5, abs=0.01)
    assert table.loc['FFN', 'power_is_better'] == 1
    assert table.loc['Transformer', 'log_power'] == pytest.approx(1.5, abs=0.01)
    assert table.loc['Transformer', 'power_is_better'] == 0
    assert np.isnan(table.loc['RNN', 'exponent'])
    assert table.loc['RNN', 'N'] == '4, 8'
