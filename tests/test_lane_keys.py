"""Lanes of tables, and their names."""

import pandas as pd
import pytest

from qstr_jax import sweeps
from qstr_jax.storage import lane_keys
from tests import small
from tests.stored import LANES, rows_of


def test_lane_names_are_the_same_from_lanes_and_rows():
    row = rows_of(LANES[:1]).iloc[0]
    assert lane_keys.name_of(LANES[0]) == lane_keys.name_of(row) == 'seed0-task0-lr0.001-wd0.01'
    assert len({lane_keys.name_of(lane) for lane in sweeps.cells_of(small.settings(num_seeds=7))[0].lanes}) == 7


def test_names_from_before_a_setting_stay():
    assert lane_keys.name_of(small.lane(0, stop_after=640)) == 'seed0-task0-lr0.001-wd0.01-stop640'


@pytest.mark.parametrize(
    ('one', 'other'), [(0.001, 0.0010000001), (1234567, 1234568), (1 / 3, 0.333333), (1e-9, 1.0000001e-9)]
)
def test_different_numbers_have_different_names(one, other):
    names = {lane_keys.name_of({'seed': 0, 'learning_rate': value}) for value in (one, other)}
    assert len(names) == 2
    assert all('/' not in name for name in names)


def test_a_table_without_some_lanes(tmp_path):
    rows = rows_of(LANES)
    kept = lane_keys.without(rows, lane_keys.found_in(rows[1:3]))
    assert list(kept['seed']) == [0, 3]


def test_names_of_a_table_are_those_of_its_lines():
    rows = rows_of(LANES)
    rows = pd.concat([rows, rows.assign(radius=0.5), rows.assign(learning_rate=float('nan'))], ignore_index=True)
    assert lane_keys.names_of(rows) == [lane_keys.name_of(row) for row in rows.to_dict('records')]
