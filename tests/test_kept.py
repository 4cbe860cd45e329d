"""Parameters that are asked for on a directory that has rows without them: never silently left out, of one run."""

import pandas as pd
import pytest

from qstr_jax import sweeps
from qstr_jax.storage import results
from qstr_jax.sweeps import rows, training
from tests import small

SHORT = {'models': 'ffn', 'max_samples': 160, 'threshold': 1e-9}


def run(workdir, refresh=False, **changes):
    return sweeps.run(small.settings(**{**SHORT, **changes}), workdir, small.quiet(refresh=refresh))


def test_rows_without_parameters_are_a_line_or_run_again(tmp_path, monkeypatch):
    first = run(tmp_path)
    missing = r'^save_params=True: 2 lanes have rows but no parameters in .*, of ffn-.* first: .*--refresh'
    for seeds in 2, 3:  # whether rows would be returned, or added to
        with pytest.raises(results.ResultsError, match=missing):
            run(tmp_path, save_params=True, num_seeds=seeds)
    again = run(tmp_path, save_params=True, refresh=True)
    pd.testing.assert_frame_equal(again, first)
    assert len(list(tmp_path.glob('params/ffn-*/seed*'))) == len(again) == 2
    assert list(tmp_path.glob('replaced/*/rows/ffn-*.parquet'))
    monkeypatch.setattr(training, 'train', lambda *given: pytest.fail('a lane was run again'))
    for refresh in False, True:
        pd.testing.assert_frame_equal(run(tmp_path, save_params=True, refresh=refresh), first)


def test_lanes_of_tuned_values_are_found(tmp_path):
    tuned = {'tune': {'learning_rate': (1e-3, 1e-2), 'num_seeds': 1}, 'learning_rate': None, 'num_seeds': 1}
    run(tmp_path, **tuned)
    with pytest.raises(results.ResultsError, match='save_params=True: 1 lanes have rows'):
        run(tmp_path, save_params=True, **tuned)


def test_parameters_are_of_the_run_that_wrote_the_row(tmp_path, monkeypatch):
    """Another worker, which keeps none, has written a lane while this one trained it."""
    train = training.train

    def train_late(*given):
        done = train(*given)
        monkeypatch.setattr(training, 'train', train)
        run(tmp_path, num_seeds=1)
        return done

    monkeypatch.setattr(training, 'train', train_late)
    found = run(tmp_path, save_params=True, lanes_per_batch=2)
    assert found['lanes_per_batch'].tolist() == [1, 2]
    (cell,) = sweeps.cells_of(small.settings(**SHORT))
    assert [rows.params_path(tmp_path, cell, lane).exists() for lane in cell.lanes] == [False, True]
