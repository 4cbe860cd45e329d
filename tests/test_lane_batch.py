"""One lane batch: how many lanes, how much memory, fillers, stops."""

import logging

import jax
import numpy as np
import pytest

from qstr_jax import learners, sweeps
from qstr_jax.learners import outcomes
from qstr_jax.sweeps import lane_batch, lanes_per_batch, training
from tests import small

LANES = sweeps.cells_of(small.settings(num_seeds=3))[0].lanes


@pytest.fixture(scope='module')
def cell():
    return small.cell('ffn', max_samples=400, threshold=1e-9)


@pytest.fixture(scope='module')
def programs(cell):
    """For three lanes, on the second device."""
    return programs.compile_programs(cell.problem, 3, jax.devices()[1])


@pytest.mark.parametrize(
    ('model', 'width', 'platform', 'num_lanes', 'size'),
    [
        ('rnn', 500, 'cpu', 5, 1),
        ('transformer', 500, 'cpu', 5, 1),
        ('rnn', 500, 'gpu', 5, 5),
        ('transformer', 500, 'tpu', 100, 50),
    ],
)
def test_default_size(model, width, platform, num_lanes, size):
    module = small.cell(model, **{'rnn.width': width}).problem.module
    assert lanes_per_batch.default_size(module, num_lanes, platform) == size


@pytest.mark.parametrize('model', ['transformer', 'rnn', 'ffn'])
def test_fewer_passes_start_from_the_same_bits(model, monkeypatch):
    """`INIT_LEVEL` of users against XLA's own level."""
    problem = small.cell(model).problem
    lanes_K = programs.lane_arrays(LANES)
    starts = []
    for level in 2, 3:
        monkeypatch.setattr(programs, 'INIT_LEVEL', level)
        options = programs.init_options('cpu')
        assert options == {'xla_backend_optimization_level': level}
        starts.append(learners.init.lower(lanes_K, problem).compile(compiler_options=options)(lanes_K))
    labels = [data.test_prompts.y_N for data, _ in starts]
    np.testing.assert_allclose(*labels, rtol=1e-4, atol=1e-6)
    # A unit vector is divided by a sum, which CPUs with wide registers add up in another order.
    links = [data.task_draw.link['u_K'] for data, _ in starts]
    np.testing.assert_allclose(*links, rtol=3e-7)
    drawn = [
        (
            data.task_draw._replace(link=None),
            data.test_prompts._replace(y_N=None),
            jax.random.key_data(data.train_key),
            state,
        )
        for data, state in starts
    ]
    jax.tree.map(np.testing.assert_array_equal, *drawn)


def test_a_level_for_all_programs_is_kept(monkeypatch):
    monkeypatch.setenv('XLA_FLAGS', '--xla_backend_optimization_level=2')
    assert programs.init_options('cpu') is None
    assert programs.init_options('gpu') is None


def test_available_memory():
    assert 2**20 < lanes_per_batch.available_memory(jax.devices()[0]) < 2**50


class Accelerator:
    """A device that counts its own memory."""

    def memory_stats(self):
        return {'bytes_limit': 1000, 'bytes_in_use': 300}


def test_available_memory_of_an_accelerator():
    assert lanes_per_batch.available_memory(Accelerator()) == 700


def fake_compile(monkeypatch, bytes_per_lane):
    """Makes every program need a given memory; returns the sizes that were compiled."""
    sizes = []

    def compile_programs(problem, size, device):
        sizes.append(size)
        return lane_batch.Programs(None, None, size, device, 1.0, size * bytes_per_lane)

    monkeypatch.setattr(lane_batch, 'compile_programs', compile_programs)
    return sizes


def test_a_batch_that_does_not_fit_is_halved_with_a_warning(monkeypatch, caplog):
    sizes = fake_compile(monkeypatch, 2**20)
    with caplog.at_level(logging.WARNING):
        programs = lanes_per_batch.fitting_programs(None, 8, None, memory_limit=3 * 2**20)
    assert (programs.size, sizes) == (2, [8, 4, 2])
    assert '8 lanes need 8 MiB of 3 MiB: going on with lanes_per_batch=4' in caplog.text
    assert 'lanes_per_batch=2' in caplog.text


def test_a_lane_that_does_not_fit_is_a_line(monkeypatch):
    fake_compile(monkeypatch, 2**20)
    with pytest.raises(MemoryError, match='1 lanes need 1 MiB of 0 MiB: take fewer test_samples'):
        lanes_per_batch.fitting_programs(None, 5, None, memory_limit=1)


def test_what_fits_is_not_touched(monkeypatch, caplog):
    assert fake_compile(monkeypatch, 1) == []
    assert lanes_per_batch.fitting_programs(None, 5, jax.devices()[0]).size == 5
    assert caplog.text == ''


def test_a_sweep_in_little_memory_has_all_lanes(cell, programs, tmp_path, monkeypatch):
    """Three lanes do not fit: the cell is run with smaller batches, and no lane is lost."""
    compile_programs = programs.compile_programs

    def limited(problem, size, device):
        found = compile_programs(problem, size, device)
        return found._replace(memory_bytes=size * 100)

    monkeypatch.setattr(lane_batch, 'compile_programs', limited)
    sweep = small.settings(models=('ffn',), num_seeds=3, max_samples=400, threshold=1e-9)
    rows = sweeps.run(sweep, tmp_path, small.quiet(memory_limit=150, num_devices=1))
    assert list(rows['seed']) == [0, 1, 2]
    assert set(rows['lanes_per_batch']) == {1}


def test_too_little_memory_for_one_cell_loses_no_other(tmp_path, monkeypatch):
    compile_programs = programs.compile_programs

    def limited(problem, size, device):
        found = compile_programs(problem, size, device)
        return found._replace(memory_bytes=100 if problem.task.seq_len == 3 else 1000)

    monkeypatch.setattr(lane_batch, 'compile_programs', limited)
    sweep = small.settings(models=('ffn',), seq_lens=(2, 3), num_seeds=1)
    with pytest.raises(sweeps.SweepError, match=r'1 cells failed .*ffn-qstr-N2'):
        sweeps.run(sweep, tmp_path, small.quiet(memory_limit=150, num_devices=1))
    (error,) = (tmp_path / 'errors').iterdir()
    assert 'MemoryError' in error.read_text()
    assert len(list((tmp_path / 'rows').iterdir())) == 1


def test_memory_is_known_and_grows_with_the_lanes(cell, programs):
    one = programs.compile_programs(cell.problem, 1, jax.devices()[0])
    params = sum(leaf.size * 4 for leaf in jax.tree.leaves(programs.abstract_state(cell.problem, 1).params))
    assert programs.memory_bytes > 1.5 * one.memory_bytes > 3 * params
    assert programs.compile_seconds > 0


def test_all_is_on_the_chosen_device(cell, programs):
    data_K, state_K = training.train(programs, cell.problem, LANES)
    devices = {leaf.devices().pop() for leaf in jax.tree.leaves((data_K, state_K)) if hasattr(leaf, 'devices')}
    assert devices == {jax.devices()[1]}


def test_fillers_never_start_and_change_nothing(cell, programs):
    """Two lanes in a program for three end as they do beside a third."""
    _, whole_K = training.train(programs, cell.problem, LANES)
    _, part_K = training.train(programs, cell.problem, LANES[:2])
    assert list(np.asarray(part_K.checks)) == [5, 5, 0]
    assert int(part_K.outcome[2]) == outcomes.CENSORED
    for a, b in zip(jax.tree.leaves(whole_K), jax.tree.leaves(part_K), strict=True):
        np.testing.assert_array_equal(np.asarray(a)[:2], np.asarray(b)[:2])


def test_on_call_may_stop_the_training(cell, programs):
    def stop(state_K):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        training.train(programs, cell.problem, LANES, on_call=stop)


def test_calls_grow_until_they_take_their_time(cell, programs, monkeypatch):
    monkeypatch.setattr(lane_batch, 'SECONDS_PER_CALL', 1e9)
    seen = []
    training.train(programs, cell.problem, LANES, on_call=lambda state_K: seen.append(int(np.max(state_K.checks))))
    assert seen == [1, 5]


def test_the_abstract_state_is_the_states_shape(cell, programs):
    _, _, state_K = training.start(programs, LANES)
    for abstract, leaf in zip(
        jax.tree.leaves(programs.abstract_state(cell.problem, 3)), jax.tree.leaves(state_K), strict=True
    ):
        assert (abstract.shape, abstract.dtype) == (leaf.shape, leaf.dtype)
