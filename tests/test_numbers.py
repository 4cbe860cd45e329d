"""Numbers in texts: what rows say, and an error where they say nothing."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy.stats import gmean

from qstr_jax.analysis import formats, selection
from qstr_jax.report import numbers
from qstr_jax.storage import files, results
from tests import stored
from tests.helpers import ROOT
from tests.test_analysis import make_rows


@pytest.fixture
def rows(monkeypatch):
    """Made-up rows, N^0.6 with five lanes."""
    made = make_rows(0.6, 10_000, lengths=(4, 6, 8, 12)).assign(task_seed=lambda table: table['seed'])
    made['cell'] = 'N' + made['seq_len'].astype(str)
    made['is_erm'] = [True if seed == 0 else None for seed in made['seed']]
    tables = {'full': made, 'thin': made[made['seed'] < 2], 'bound': made.assign(outcome='censored')}
    tables['mixed'] = made.assign(outcome=made['outcome'].mask(made['seed'] == 4, 'censored'))
    tables['few'] = made.assign(outcome=made['outcome'].mask(made['seed'] > 1, 'censored'))
    monkeypatch.setattr(results, 'load', lambda path, strict: tables[path.name])
    monkeypatch.setattr(results, 'load_curves', lambda path, strict, rows: pd.DataFrame())
    return numbers.Rows('nowhere')


def test_numbers_are_what_the_rows_say(rows):
    made = make_rows(0.6, 10_000, lengths=(4, 6, 8, 12))
    samples = made['samples_to_threshold'][made['seq_len'] == 4].astype(float)
    mean, least, most = np.exp(np.log(samples).mean()) / 1000, samples.min() / 1000, samples.max() / 1000
    at4 = rows('full', seq_len=4)
    assert at4.mean() == f'{mean:.1f}k'
    assert at4.thousands() == f'{mean:.3g} ({least:.3g} – {most:.3g})'
    assert rows('full', seq_len=(4, 6)).mean(by='seq_len').count('k') == 2
    assert (rows('full').mean('sparsity'), at4.lanes(), rows('full').count()) == ('1', '5', 20)
    assert (rows('full').count(is_erm=True), rows('full').count(is_erm=None), rows('full').count(seed=9)) == (4, 16, 0)
    assert at4.median('samples_to_threshold', digits=6) == f'{samples.median():.6g}'
    assert rows('bound', seq_len=4).mean() == '≥ 1M (0 of 5 learn)'
    assert rows('mixed', seq_len=4).mean().endswith('k (4 of 5 learn)')
    assert rows('few', seq_len=4).mean() == '(2 of 5 learn)'
    assert rows('mixed', seq_len=4).largest() == f'{samples[:4].max() / 1000:.1f}k'
    assert rows('mixed', seq_len=4).thousands().endswith('), 4 of 5 learn')
    low, high = re.fullmatch(r'0\.\d\d \[(.+), (.+)\]', rows('full').exponent()).groups()
    assert float(low) < 0.6 < float(high)
    assert rows('full').values('seq_len') == [4, 6, 8, 12]


@pytest.mark.parametrize(
    ('number', 'words'),
    [
        (lambda rows: rows('full', seq_len=5), 'no lanes of full with'),
        (lambda rows: rows('full').mean(), 'several points: choose seq_len'),
        (lambda rows: rows('thin', seq_len=4).mean(), 'rests on 2 lanes, 3 are needed'),
        (lambda rows: rows('thin').exponent(), 'rests on 2 lanes'),
    ],
)
def test_a_number_without_rows_is_an_error(rows, number, words):
    with pytest.raises(ValueError, match=words):
        number(rows)


def test_numbers_of_a_table_beside_the_rows(tmp_path):
    folder = tmp_path / 'figure2'
    folder.mkdir()
    frame = pd.DataFrame({'form': ['a', 'a', 'a', 'b'], 'seed': [0, 1, 2, 0], 'cosine': np.array([0.2, 0.3, 0.4, 1])})
    (folder / 'table.md').write_text(formats.markdown(frame))
    assert numbers.Rows(tmp_path).written('figure2', 'table.md').where(form='a').mean('cosine') == '0.3'


def test_numbers_never_rest_on_what_a_damaged_file_left(tmp_path):
    folder = stored.make(tmp_path / 'sweep')
    path = results.cell_path(folder, 'rows', stored.CELL)
    path.write_bytes(path.read_bytes()[:100])
    rows = numbers.Rows(tmp_path)
    with pytest.raises(files.ResultsError):
        rows('sweep')
    with pytest.raises(files.ResultsError):
        rows.stored('sweep')


def test_a_table_has_a_line_an_architecture_and_counts_failures_as_failures(rows):
    """A mean is of the lanes that get there, with their share; a bound is none, and few lanes are no number."""
    made = rows('full').table
    censored = made['seq_len'].eq(6) & made['seed'].lt(2)
    never = made['seq_len'].eq(8)
    thin = ~(made['seq_len'].eq(12) & made['seed'].gt(1))
    table = made.assign(outcome=made['outcome'].mask(censored | never, 'censored'), max_samples=50_000)[thin]
    lines = numbers.Lanes(rows.root, ('full',), table).samples_table('seq_len').splitlines()
    reached = gmean(made[made['seq_len'].eq(6) & made['seed'].ge(2)]['samples_to_threshold'].astype(float))
    assert lines[0] == '| samples | N = 4 | N = 6 | N = 8 | N = 12 |'
    assert f'{reached / 1000:.3g}' in lines[2]
    assert '(3 of 5 learn) | ≥ 50k (0 of 5 learn) | – |' in lines[2]


def test_the_values_of_a_setting_as_a_range(rows):
    assert (rows('full').extent('seq_len'), rows('full', seq_len=4).extent('seq_len')) == ('4 to 12', '4')


def test_what_validation_chooses_makes_no_further_point():
    """A mean of n* is that of the exponent's lanes, whatever rate was chosen at each N."""
    found = numbers.Rows(ROOT / 'experiments/results')('n_star_models_erm_simple', model='rnn')
    assert found.table['learning_rate'].nunique() == 2
    chosen = selection.select(found.table)
    assert chosen['learning_rate'].nunique() == 2
    means = chosen.groupby('seq_len')['samples_to_threshold'].apply(lambda one: gmean(one.astype(float)))
    assert found.mean(by='seq_len') == ', '.join(f'{mean:.3g}' for mean in means)
