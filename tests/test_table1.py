"""Table 1, measured: exponents beside claims, on made-up lanes whose law is known."""

import numpy as np
import pandas as pd
import pytest

from qstr_jax import columns
from qstr_jax.analysis import answers, erms, growth, table1, verdicts
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


def line(table, model, task='qstr', kind='fixed'):
    place = (kind, model, task)
    (found,) = [row for _, row in table.iterrows() if (row['evidence'], row['architecture'], row['task']) == place]
    return found


def online(rows, model='ffn'):
    return line(table1.measure(rows), model, kind='online')


def searches(model, learner, law, risk='pointwise', **changes):
    """Rows of searches for n* whose lanes minimise the training risk."""
    own = {'is_search': True, 'sample_size': 0, 'validation_loss': 0.1, 'train_risk': 0.001, 'converged': True}
    changes = own | changes
    rows = lanes(model, law=law, learner=learner, risk=risk, **changes)
    return rows.assign(validation_samples_to_threshold=rows['samples_to_threshold'])


@pytest.mark.parametrize(
    ('model', 'learner', 'law', 'agrees'),
    [
        ('transformer', 'constrained', lambda n: 9000.0, 'slower than N'),
        ('transformer', 'constrained', lambda n: 9000 * n**0.3, 'no'),
        ('transformer', 'constrained', lambda n: 9000 * n**-0.5, 'yes'),
        ('transformer', 'constrained', lambda n: 9000 * np.log(n) ** 1.5, 'yes'),
        ('transformer', 'constrained', lambda n: 90.0 * n, 'no'),
        ('ffn', 'stationary', lambda n: 90.0 * n**1.5, 'yes'),
        ('ffn', 'stationary', lambda n: 90.0 * n**0.6, 'no'),
        ('ffn', 'min_norm', lambda n: 90.0 * n, 'open'),
        ('rnn', 'min_norm', lambda n: 90.0 * n**0.7, 'yes'),
        ('rnn', 'min_norm', lambda n: 9000.0, 'open'),
    ],
)
def test_a_known_law_of_n_star_gets_its_verdict(model, learner, law, agrees):
    row = line(table1.measure(searches(model, learner, law)), model)
    assert row['agrees'] == agrees
    assert row['N'] == LENGTHS
    assert row['low'] <= row['exponent'] <= row['high']


def answer(rows, model='transformer', task='qSTR'):
    table = answers.answers(table1.measure(rows))
    assert len(table) == 6
    (found,) = table[table['architecture'].str.lower().eq(model) & table['task'].eq(task)].to_dict('records')
    return found


@pytest.mark.parametrize(
    ('law', 'verdict'),
    [(lambda n: 90.0 * n, 'no'), (lambda n: 9000 * n**-0.5, 'yes'), (lambda n: 9000.0, 'slower than N')],
)
def test_the_answer_is_the_verdict_of_the_theorems_own_learner(law, verdict):
    rows = pd.concat([
        searches('transformer', 'constrained', law),
        searches('transformer', 'adamw', lambda n: 90.0 * n),
        lanes('transformer', law=lambda n: 90.0 * n**2),
    ])  # fmt: skip
    found = answer(rows)
    assert found['verdict'].split(':')[0] == verdict
    assert found['measured'].endswith('d = 10, constrained')
    assert (': of the ERMs that its optimiser finds' in found['verdict']) == (verdict != 'no')
    assert 'adamw' not in found['measured']
    assert answer(rows, task='simple-qSTR')['verdict'] == 'not measured'


def test_an_answer_says_that_bounds_are_in_it():
    rows = searches('transformer', 'constrained', lambda n: 9000 * n**-0.5, is_erm=True, miss_is_erm=True)
    assert 'bounds' not in answer(rows)['measured']
    rows['miss_is_erm'] = rows['seq_len'] < 64
    assert answer(rows)['measured'].endswith('constrained (all lanes, 4 as bounds)')


def test_a_no_of_one_radius_counts_before_a_yes_of_another():
    laws = {1.0: lambda n: 9000 * n**-0.5, 2.0: lambda n: 90.0 * n}
    rows = [searches('transformer', 'constrained', law, radius=radius) for radius, law in laws.items()]
    assert answer(pd.concat(rows))['verdict'] == 'no'


def test_of_lines_as_long_the_one_with_more_bounds_is_shown():
    own = {'encoding_factor': 3.0, 'is_erm': True}
    short = searches('transformer', 'constrained', lambda n: 9000.0, radius=0.5, **own)
    short = short[short['seq_len'] < max(LENGTHS)]
    long = searches('transformer', 'constrained', lambda n: 9000.0, radius=1.0, **own)
    long['miss_is_erm'] = long['seq_len'] < max(LENGTHS)
    assert 'constrained, R = 1, d_e = ⌊3 ln N⌋' in answer(pd.concat([short, long]))['measured']


def worst(law, **changes):
    rows = searches('transformer', 'worst_erm', law, **changes)
    # n* of the search is no bound; the largest n with an ERM that errs is one.
    return rows.assign(erring_samples=rows['samples_to_threshold'], samples_to_threshold=10**6)


@pytest.mark.parametrize(('power', 'verdict'), [(1.0, 'no'), (0.0, 'open'), (-0.5, 'open')])
def test_a_lower_bound_contradicts_an_upper_one_or_says_nothing(power, verdict):
    row = line(table1.measure(worst(lambda n: 900 * n**power)), 'transformer', kind='worst')
    assert row['agrees'] == verdict
    assert row['exponent'] == pytest.approx(power, abs=0.05)


def test_of_several_tries_the_largest_n_with_an_erm_that_errs_counts():
    weak, strong = worst(lambda n: 100.0 * n, hinge=0.1), worst(lambda n: 4000.0, hinge=0.3, max_samples=102_400)
    none = worst(lambda n: 1.0, hinge=1.0).assign(erring_samples=0, outcome='censored_below')
    row = line(table1.measure(pd.concat([weak, strong, none])), 'transformer', kind='worst')
    highest = np.maximum(4000.0, 100.0 * np.array(LENGTHS))
    assert row['exponent'] == pytest.approx(np.polyfit(np.log(LENGTHS), np.log(highest), 1)[0], abs=0.05)
    assert 'without' not in row['note']


def test_more_steps_count_only_where_every_n_had_them():
    """They find larger n, so an exponent would be that of the steps."""
    few, many = worst(lambda n: 800.0, max_steps=40), worst(lambda n: 4000.0, max_steps=160)
    for lengths, expected in (LENGTHS, many), (LENGTHS[1:], few):
        rows = pd.concat([few, many[many['seq_len'].isin(lengths)]], ignore_index=True)
        assert sorted(erms.worst(rows)['erring_samples']) == sorted(expected['erring_samples'])


def test_a_larger_ball_has_the_erms_of_a_smaller_one():
    small, large = worst(lambda n: 100.0 * n, radius=1.0), worst(lambda n: 800.0, radius=2.0)
    found = erms.worst(pd.concat([large, small], ignore_index=True)).set_index(['radius', 'seq_len', 'seed'])
    large = large.assign(radius=2.0).set_index(['seq_len', 'seed'])['erring_samples']
    assert (found.loc[2.0, 'num_samples'] == np.maximum(found.loc[1.0, 'num_samples'], large)).all()
    assert (found.loc[1.0, 'num_samples'] == small.set_index(['seq_len', 'seed'])['erring_samples']).all()


@pytest.mark.parametrize(
    ('model', 'learner', 'changes', 'word'),
    [
        ('transformer', 'adamw', {}, 'Theorem 4 is about constrained'),
        ('transformer', 'constrained', {'risk': 'averaged'}, 'point-wise risk'),
        ('transformer', 'constrained', {'train_risk': 0.8, 'is_erm': True}, 'do not minimise'),
        ('ffn', 'stationary', {'converged': False}, 'no stationary point'),
        ('ffn', 'stationary', {'span_residual': 0.1}, 'no stationary point'),
    ],
)
def test_what_no_theorem_is_about_gets_no_verdict(model, learner, changes, word):
    row = line(table1.measure(searches(model, learner, lambda n: 90.0 * n**1.5, **changes)), model)
    assert row['agrees'] == 'open'
    assert word in row['note']


def test_theorem_6_needs_the_span_and_neither_a_gradient_nor_a_risk_of_zero():
    rows = searches('ffn', 'stationary', lambda n: 90.0 * n**1.5, converged=False, span_residual=1e-6, train_risk=0.8)
    below = rows.assign(token_dim=10_000)
    assert line(table1.measure(below), 'ffn')['agrees'] == 'yes'
    assert answer(below, 'ffn')['verdict'] == 'yes: no gradient is 0'
    assert answer(below.assign(converged=rows['seed'] == 0), 'ffn')['verdict'].endswith('5 gradients of 20 are 0')
    assert answer(rows, 'ffn')['verdict'] == 'open: 20 of 20 lanes end at no stationary point'  # their span is whole


def test_fits_of_least_norm_that_miss_their_risk_are_no_erms():
    rows = searches('rnn', 'min_norm', lambda n: 90.0 * n**0.7)
    bad = rows['seed'] == 0
    rows.loc[bad, 'samples_to_threshold'] = 40 * rows['seq_len']
    row = line(table1.measure(rows.assign(converged=~bad)), 'rnn')
    assert row['exponent'] == pytest.approx(0.7, abs=0.05)
    assert row['agrees'] == 'yes'
    assert f'without {bad.sum()} of {len(rows)} lanes, which are no ERMs' in row['note']
    assert 'not checked' not in row['note']


def test_rows_that_are_no_erms_leave_the_line_with_a_reference_or_by_their_own_risk():
    rows = searches('transformer', 'constrained', lambda n: 9000 * n**-0.5)
    bad = rows['seed'] == 0
    rows.loc[bad, 'samples_to_threshold'] = 40 * rows['seq_len']
    rows.loc[bad, 'train_risk'] = 0.8
    for some in (rows, rows.assign(is_erm=~bad)):
        row = line(table1.measure(some), 'transformer')
        assert row['exponent'] == pytest.approx(-0.5, abs=0.05)
        assert row['agrees'] == 'yes'
        assert f'without {bad.sum()} of {len(rows)} lanes, which are no ERMs' in row['note']
    assert line(table1.measure(rows.assign(train_risk=2e-3)), 'transformer')['agrees'] == 'not measured'


def test_a_rule_for_d_e_makes_a_line_beside_a_fixed_d_e_of_the_same_directory():
    by_rule = searches('transformer', 'constrained', lambda n: 90.0 * n, encoding_factor=3.0)
    by_rule['encoding_dim'] = (3 * np.log(by_rule['seq_len'])).astype(int)
    wide = searches('transformer', 'constrained', lambda n: 90.0 * n**2, encoding_factor=np.nan, num_starts=2)
    table = table1.measure(pd.concat([by_rule, wide.assign(encoding_dim=75)], ignore_index=True))
    mine = table[table['lanes'] != '–'].set_index('learner')
    assert mine['exponent'].to_dict() == pytest.approx({
        'constrained, point-wise risk, d_e = ⌊3 ln N⌋': 1, 'constrained, point-wise risk, d_e = 75, best of 2 starts': 2
    }, abs=0.02)  # fmt: skip


def test_a_line_that_decides_nothing_stands_beside_the_one_that_does():
    flat = searches('transformer', 'constrained', lambda n: 9000.0, encoding_factor=3.0, encoding_coherence=0.6)
    uneven = searches(
        'transformer',
        'constrained',
        lambda n: 900 * n**0.8 * (3 if LENGTHS.index(n) % 2 else 1),
        encoding_factor=np.nan,
    )
    found = answer(pd.concat([uneven.assign(encoding_dim=75, encoding_coherence=0.4), flat], ignore_index=True))
    decided, beside = found['measured'].split('; ')
    assert 'd_e = ⌊3 ln N⌋' in decided
    assert beside.endswith('d_e = 75 (open)')
    assert found['verdict'].startswith('slower than N: ')
    assert found['verdict'].endswith('at coherence up to 0.60 (Assumption 3: 0.5)')
    assert 'coherence' not in answer(flat.assign(encoding_coherence=0.5))['verdict']


def test_the_line_that_decides_nothing_is_of_the_ball_of_the_one_that_does():
    flat = searches('transformer', 'constrained', lambda n: 9000.0, encoding_factor=3.0, radius=1.0)
    uneven = searches(
        'transformer', 'constrained', lambda n: 900 * n**0.8 * (3 if n in LENGTHS[1::2] else 1), encoding_factor=np.nan
    ).assign(encoding_dim=75)  # fmt: skip
    of_ball = uneven[uneven['seq_len'] > min(LENGTHS)].assign(radius=1.0)
    for other in 0.5, 2.0:  # which has one N more
        found = answer(pd.concat([flat, of_ball, uneven.assign(radius=other)], ignore_index=True))['measured']
        assert found.count('R = 1, ') == 2
        assert f'R = {other:g}, ' not in found


def test_online_training_gets_no_verdict_and_blocks_are_kept_apart():
    tuned = lanes('ffn', law=lambda n: 90.0 * n**1.5).assign(tuned='learning_rate')
    tuned['learning_rate'] = 1 / tuned['seq_len']
    rows = pd.concat([lanes('ffn'), tuned, searches('ffn', 'stationary', lambda n: 90.0 * n**2)], ignore_index=True)
    table = table1.measure(rows)
    mine = table[(table['architecture'] == 'ffn') & (table['task'] == 'qstr')]
    assert mine['evidence'].tolist() == ['online', 'tuned', 'fixed']
    assert mine['agrees'].tolist() == ['–', '–', 'yes']
    assert mine['learner'].tolist() == [
        'adamw, learning rate 0.001',
        'adamw, learning rate tuned',
        'stationary, point-wise risk',
    ]
    assert mine['exponent'].tolist() == pytest.approx([1, 1.5, 2], abs=0.02)
    assert (table['agrees'][table['evidence'] != 'fixed'] == '–').all()
    assert table1.markdown(table).count('n grows as') == 3


def test_exponent_and_power_of_the_log_are_those_of_the_law():
    table = table1.measure(lanes('ffn', law=lambda n: 90.0 * n**1.5, noise=0))
    assert line(table, 'ffn', kind='online')['exponent'] == pytest.approx(1.5, abs=0.01)
    table = table1.measure(lanes('transformer', law=lambda n: 1e5 * np.log(n) ** 2, noise=0))
    assert line(table, 'transformer', kind='online')['log_power'] == pytest.approx(2, abs=0.01)


def test_all_six_statements_have_a_line_whatever_the_rows():
    for rows in (pd.DataFrame(), lanes('rnn', 'simple_qstr')):
        table = table1.measure(rows).query('evidence == "fixed"')
        assert set(zip(table['architecture'], table['task'], strict=True)) == set(verdicts.STATEMENTS)
        assert (table['agrees'] == 'not measured').all()


def test_hyperparameters_of_searches_are_those_that_validation_chose():
    good = searches('ffn', 'stationary', lambda n: 90.0 * n)
    bad = searches('ffn', 'stationary', lambda n: 900.0 * n, learning_rate=0.1)
    assert line(table1.measure(pd.concat([good, bad], ignore_index=True)), 'ffn')['exponent'] == pytest.approx(
        1, abs=0.02
    )


def test_lengths_with_few_lanes_are_in_no_line():
    rows = lanes('ffn')
    thin = rows[(rows['seq_len'] != 8) | (rows['seed'] < 2)]
    found = line(table1.measure(thin), 'ffn', kind='online')
    assert found['N'] == (4, 16, 32, 64)
    assert 'without N = 8: fewer than 3 lanes' in found['note']


@pytest.mark.parametrize('num_ERMs', [2, 3])
def test_lengths_with_few_ERMs_are_in_no_line(num_ERMs):
    rows = searches('transformer', 'constrained', lambda n: 90.0 * n)
    found = line(table1.measure(rows.assign(is_erm=(rows['seq_len'] != 8) | (rows['seed'] < num_ERMs))), 'transformer')
    assert (8 in found['N']) == (num_ERMs == 3)
    assert ('without N = 8: fewer than 3 lanes' in found['note']) == (num_ERMs == 2)


def test_lanes_that_share_a_draw_do_not_count():
    table = table1.measure(lanes('ffn', own=False))
    assert (table['evidence'] == 'fixed').all()
    both = pd.concat([lanes('ffn', own=False).assign(folder='a'), lanes('ffn', num_seeds=3).assign(folder='b')])
    assert online(both)['lanes'] == '3'


def test_risks_are_curves_of_their_own():
    table = table1.measure(pd.concat([lanes('transformer'), lanes('transformer', risk='pointwise')]))
    learners = table['learner'][table['evidence'] == 'online'].tolist()
    assert learners == ['adamw, learning rate 0.001', 'adamw, learning rate 0.001, point-wise risk']


def test_a_task_that_grows_in_more_than_n_shows_no_growth_in_n():
    rows = lanes('ffn')
    assert online(rows.assign(num_pairs=2))['exponent'] == online(rows)['exponent']
    assert not (table1.measure(rows.assign(num_pairs=rows['seq_len'] // 4))['evidence'] == 'online').any()


def test_a_lane_that_two_directories_hold_counts_once():
    rows = lanes('ffn')
    twice = pd.concat([rows.assign(folder='a', screen=True), rows.assign(folder='b', screen=False)])
    assert online(twice)['exponent'] == online(rows)['exponent']


def test_lanes_of_a_study_at_one_length_are_no_part_of_the_curve():
    rows = lanes('ffn')
    study = lanes('ffn', lengths=(8,), law=lambda n: 9e4 * n).assign(folder='study')
    study = study.assign(seed=study['seed'] + 9, task_seed=study['task_seed'] + 9)
    assert online(pd.concat([rows.assign(folder='curve'), study]))['exponent'] == online(rows)['exponent']


@pytest.mark.parametrize(
    ('rows', 'word'),
    [
        (lanes('ffn', lengths=(2, 4, 8), link='linear'), 'only 2 N, 3 needed'),
        (lanes('ffn', outcome='censored'), 'threshold not reached'),
        (lanes('ffn', num_seeds=2), 'fewer than 3 lanes'),
        (lanes('ffn', threshold=0.99), 'no retrieval needed'),
    ],
)
def test_no_exponent_is_said_in_words(rows, word):
    row = online(rows)
    assert word in row['note']
    assert np.isnan(row['exponent'])


def test_two_lengths_are_a_line_only_where_a_claim_is_about_them():
    table = table1.measure(pd.concat([
        lanes('ffn', lengths=(4, 8)), searches('ffn', 'stationary', lambda n: 90.0 * n, lengths=(4, 8)),
    ]))  # fmt: skip
    assert (table['evidence'] == 'fixed').all()
    assert 'only 2 N' in line(table, 'ffn')['note']


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
    assert online(both, 'rnn')['N'] == LENGTHS


def test_rarer_tests_at_longer_prompts_go_on_the_curve_and_beside_others_make_one_of_their_own():
    short, long = lanes('ffn', lengths=(4, 8), check_every=4), lanes('ffn', lengths=(16, 32), check_every=10)
    assert online(pd.concat([short, long]))['N'] == (4, 8, 16, 32)
    table = table1.measure(pd.concat([lanes('ffn', check_every=every) for every in (4, 10)]))
    assert [N for kind, N in zip(table['evidence'], table['N'], strict=True) if kind == 'online'] == [LENGTHS] * 2


def test_a_sweep_over_widths_is_not_averaged_into_a_curve():
    rows = pd.concat([lanes('ffn'), lanes('ffn', lengths=(4,), ffn_width=99), lanes('ffn', lengths=(4,), ffn_width=7)])
    assert online(rows)['N'] == LENGTHS[1:]
    folders = np.where(rows['ffn_width'].isin((7, 99)), 'study', 'curve')
    assert online(rows.assign(folder=folders))['N'] == LENGTHS


def test_lengths_that_need_no_retrieval_are_left_out():
    row = online(lanes('ffn', lengths=(2, 3, *LENGTHS)))
    assert row['N'] == LENGTHS
    assert 'without N = 2, 3: no retrieval needed' in row['note']


def test_the_tables_can_be_printed():
    table = table1.measure(pd.concat([lanes('ffn'), searches('mamba', 'adamw', lambda n: 90.0 * n)]))
    text = table1.markdown(table)
    assert text.count('|\n') == 6 + 6 + len(table)  # Three heads and three rules, and six answers.
    assert 'claims nothing' in text
    latex = table1.latex(table)
    assert latex.count(r'\\') == 2 + len(table)
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


def test_a_place_without_results_is_one_line(tmp_path):
    helpers.assert_one_error(harness.run_binary('table1', '--workdir=nowhere'), 'nowhere')
    helpers.assert_one_error(harness.run_binary('table1', f'--workdir={tmp_path}'), str(tmp_path), 'no rows')


def test_growth_tells_both_laws_of_every_curve():
    rows = pd.concat([
        lanes('ffn', law=lambda n: 90.0 * n**1.5, noise=0.01),
        lanes('transformer', law=lambda n: 900 * np.log(n) ** 1.5, noise=0.01),
        lanes('rnn', lengths=(4, 8)),
    ])  # fmt: skip
    table = growth.growth(rows).set_index('curve')
    assert table.loc['FFN', 'exponent'] == pytest.approx(1.5, abs=0.01)
    assert table.loc['FFN', 'law'] == 'N^a'
    assert table.loc['FFN', 'local_slopes'] == '1.50, 1.50, 1.50, 1.50'
    assert table.loc['Transformer', 'log_power'] == pytest.approx(1.5, abs=0.01)
    assert table.loc['Transformer', 'law'] == '(log N)^1.5'
    assert np.isnan(table.loc['RNN', 'exponent'])
    assert table.loc['RNN', 'N'] == '4, 8'


def test_a_tuned_lane_counts_at_the_threshold_that_it_was_tuned_for():
    tuned = {'tuned': 'learning_rate', 'crossings': '0.9:500 0.7:1000', 'learning_rate': 0.03}
    table = table1.measure(pd.concat([lanes('ffn'), lanes('ffn', **tuned)], ignore_index=True))
    found = table[table['architecture'] == 'ffn']
    assert list(found.loc[found['evidence'] == 'tuned', 'loss']) == [0.7]
    assert list(found.loc[found['evidence'] == 'online', 'loss']) == [0.7]


def test_directories_that_were_tuned_in_other_ways_are_lines_of_their_own_and_share_no_lane():
    one, other = (
        lanes('ffn', law=law, noise=0, folder=folder, tuned='learning_rate', learning_rate=rate)
        for folder, law, rate in (('a', lambda n: 100.0 * n, 0.01), ('b', lambda n: 100.0 * n**2, 0.03))
    )
    table = table1.measure(pd.concat([one, other], ignore_index=True))
    assert line(table, 'ffn', kind='tuned')['exponent'] == pytest.approx(1)
    table = table1.measure(pd.concat([one, other.assign(tuned='batch_size learning_rate')], ignore_index=True))
    assert sorted(table['exponent'].dropna()) == pytest.approx([1, 2])


def test_repeats_of_one_draw_beside_own_draws_do_not_count():
    own = lanes('ffn', num_seeds=5)
    repeats = own.assign(task_seed=0, samples_to_threshold=1)
    found = line(
        table1.measure(pd.concat([own, repeats[repeats['seed'] > 0]], ignore_index=True)), 'ffn', kind='online'
    )
    assert found['lanes'] == '4'  # draw 0 has five lanes
    assert found['exponent'] == pytest.approx(1, abs=0.05)
