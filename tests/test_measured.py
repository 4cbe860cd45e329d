"""Lanes as arrays: what is computed for many curves at once is what each gives alone."""

import numpy as np
import pandas as pd
import pytest

from qstr_jax import analysis
from qstr_jax.analysis import exponents, measured, summary
from tests.test_analysis import make_rows


@pytest.fixture
def rows():
    """Curves of three models, in no order: one reaches its budget, one diverges, one stops short as a fit."""
    parts = [
        make_rows(0.8, 100.0, model='rnn', budget=600, rng=1),
        make_rows(0.4, 100.0, model='ffn', rng=2).assign(is_erm=lambda own: own['seed'] > 0),
        make_rows(1.1, 100.0, model='transformer', rng=3).assign(check_every=50, batch_size=2),
    ]
    found = pd.concat(parts).sample(frac=1, random_state=0)
    found.loc[(found['model'] == 'ffn') & (found['seed'] == 2) & (found['seq_len'] < 6), 'outcome'] = 'diverged'
    return found


@pytest.mark.parametrize('x', ['seq_len', 'seed', 'link'])
def test_exponents_of_many_curves_are_those_of_each_alone(rows, x):
    rows = rows.assign(link=np.where(rows['seq_len'] < 6, 'linear', 'norm2'))
    curves = analysis.split_curves(rows, x)
    found = exponents.fits(curves, rows, x)
    assert list(map(repr, found)) == [repr(exponents.fit(curve.lanes, x)) for curve in curves]
    assert x != 'seq_len' or all(one.value is not None for one in found)


def test_points_of_many_are_those_of_each_alone(rows):
    table = analysis.summarize(rows, ['model', 'seq_len']).set_index(['model', 'seq_len'])
    for point, lanes in rows.groupby(['model', 'seq_len']):
        alone = pd.Series(summary.point_of(measured.measured(lanes)), dtype=object)
        pd.testing.assert_series_equal(table.loc[point].astype(object), alone, check_names=False)


def test_some_lanes_as_arrays_are_those_lines_of_the_table(rows):
    places = np.array([7, 2, 30])
    some, alone = measured.measured(rows, 'seq_len').at(places), measured.measured(rows.iloc[places], 'seq_len')
    for name, values in vars(some).items():
        np.testing.assert_array_equal(values, getattr(alone, name))
    assert len(some) == 3


def test_curves_know_their_lines(rows):
    for curve in analysis.split_curves(rows.assign(gap=1.0), 'seq_len'):
        pd.testing.assert_frame_equal(rows.iloc[curve.places], curve.lanes.drop(columns='gap'))
