"""Training one lane batch: fillers, calls, stops."""

import jax
import numpy as np
import pytest

from qstr_jax import sweeps
from qstr_jax.learners import lanes
from qstr_jax.sweeps import programs, training
from tests import small

LANES = sweeps.cells_of(small.settings(num_seeds=3))[0].lanes


@pytest.fixture(scope='module')
def cell():
    return small.cell('ffn', max_samples=400, threshold=1e-9)


@pytest.fixture(scope='module')
def compiled(cell):
    """For three lanes."""
    return programs.compile_programs(cell.problem, 3, jax.devices()[0])


def test_fillers_never_start_and_change_nothing(cell, compiled):
    """Two lanes in a program for three end as they do beside a third."""
    _, whole_K = training.train(compiled, cell.problem, LANES)
    _, part_K = training.train(compiled, cell.problem, LANES[:2])
    assert list(np.asarray(part_K.checks)) == [5, 5, 0]
    assert int(part_K.outcome[2]) == lanes.CENSORED
    for a, b in zip(jax.tree.leaves(whole_K), jax.tree.leaves(part_K), strict=True):
        np.testing.assert_array_equal(np.asarray(a)[:2], np.asarray(b)[:2])


def test_on_call_may_stop_the_training(cell, compiled):
    def stop(state_K):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        training.train(compiled, cell.problem, LANES, on_call=stop)


def test_calls_grow_until_they_take_their_time(cell, compiled, monkeypatch):
    monkeypatch.setattr(training, 'SECONDS_PER_CALL', 1e9)
    seen = []
    training.train(compiled, cell.problem, LANES, on_call=lambda state_K: seen.append(int(np.max(state_K.checks))))
    assert seen == [1, 5]
