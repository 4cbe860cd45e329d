"""Probes that are asked for on a finished directory: computed from kept parameters, or missing in one line."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from qstr_jax import sweeps, tasks
from qstr_jax.models import probes
from qstr_jax.settings import registry
from qstr_jax.storage import files, results
from tests import helpers, small

SHORT = {'models': 'ffn', 'max_samples': 160, 'threshold': 1e-9}


@pytest.fixture
def define():
    """Registers a probe `mine`, in the place of an earlier one."""

    def add(function):
        registry._ENTRIES.pop('mine', None)
        function.__name__ = 'mine'
        probes.register(function)

    yield add
    del registry._ENTRIES['mine']


def run(workdir, refresh=False, **changes):
    return sweeps.run(small.settings(**{**SHORT, **changes}), workdir, small.quiet(refresh=refresh))


@pytest.mark.parametrize(
    'column', ['test_loss', 'num_samples', 'seed', 'cell', 'learning_rate', 'seq_len', 'param_norm']
)
def test_a_probe_cannot_have_the_name_of_another_column(define, tmp_path, column):
    define(lambda params, task_draw, problem: {column: jnp.float32(7)})
    with pytest.raises(ValueError, match=rf"^probes='mine': returns '{column}', which is a .*: name it otherwise$"):
        run(tmp_path / 'results', probes=('param_norm', 'mine'))
    assert not (tmp_path / 'results').exists()


def test_probes_of_a_finished_directory_are_computed_from_kept_parameters(tmp_path, monkeypatch):
    at_once = run(tmp_path / 'at_once', probes='param_norm', save_params=True)
    before = run(tmp_path / 'later', save_params=True)
    monkeypatch.setattr('qstr_jax.sweeps.training.train', lambda *args: pytest.fail('a lane was run again'))
    later = run(tmp_path / 'later', probes='param_norm')
    np.testing.assert_allclose(later['param_norm'], at_once['param_norm'], rtol=1e-5)
    assert later['probes'].tolist() == at_once['probes'].tolist()
    pd.testing.assert_frame_equal(later[before.columns], before)


def test_probes_of_a_finished_directory_without_parameters_are_missing_in_a_line(tmp_path):
    first = run(tmp_path)
    missing = r"^probes='param_norm': the rows of ffn-.* lack them \(no parameters at .*--refresh.*another directory$"
    for seeds in 2, 3:  # whether rows would be returned, or added to
        with pytest.raises(results.ResultsError, match=missing):
            run(tmp_path, probes='param_norm', num_seeds=seeds)
    pd.testing.assert_frame_equal(results.load(tmp_path), first)
    again = run(tmp_path, probes='param_norm', refresh=True)
    assert again['param_norm'].notna().all()
    assert again['test_loss'].tolist() == first['test_loss'].tolist()
    assert list(tmp_path.glob('replaced/*/rows/ffn-*.parquet'))


def test_a_probe_that_was_edited_or_set_otherwise_is_computed_again(define, tmp_path):
    define(lambda params, task_draw, problem, scale=1.0: {'mine': jnp.float32(scale)})
    assert set(run(tmp_path, probes='mine', save_params=True)['mine']) == {1.0}
    settings = {'probes': 'mine', 'mine.scale': 2.0}
    assert set(run(tmp_path, **settings)['mine']) == {2.0}
    define(lambda params, task_draw, problem, scale=1.0: {'mine': jnp.float32(scale + 1)})
    assert set(run(tmp_path, **settings)['mine']) == {3.0}


def test_columns_from_before_there_were_fingerprints_are_taken_as_they_are(define, tmp_path):
    define(lambda params, task_draw, problem: {'mine': jnp.float32(jnp.nan)})
    first = run(tmp_path, probes='mine').drop(columns='probes')
    (path,) = tmp_path.glob('rows/*.parquet')
    files.write_table(path, files.read_table(path).drop(columns='probes'), path.stem)
    pd.testing.assert_frame_equal(run(tmp_path, probes='mine'), first)


@pytest.mark.parametrize(('task', 'made'), [('qstr', True), ('mqar', False), ('modular_sum', False)])
def test_attention_is_judged_only_where_tokens_ask_for_tokens(task, made):
    """Elsewhere these shares would be 0 for any weights."""
    cell = sweeps.cells_of(sweeps.Sweep('transformer', task, seq_lens=4))[0]
    draw = helpers.draw(tasks.task_key(0, cell.problem.task), cell.problem.task)
    params = cell.problem.module.init(jax.random.key(0), jnp.zeros((4, cell.problem.task.embedding_dim)))
    assert bool(probes.retrieval_share(params, draw, cell.problem)) is made
    assert bool(probes.retrieval_mass(params, draw, cell.problem)) is (task != 'modular_sum')


def test_a_probe_that_makes_nothing_of_a_model_is_not_missing(tmp_path):
    first = run(tmp_path)
    pd.testing.assert_frame_equal(run(tmp_path, probes='retrieval_mass'), first)
