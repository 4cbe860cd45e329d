"""How many lanes one program takes, and how much memory there is for them."""

import logging

import jax
import pytest

from qstr_jax import sweeps
from qstr_jax.sweeps import lane_batches, programs
from tests import harness, helpers, small


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
    assert lane_batches.default_size(module, num_lanes, platform) == size


def test_an_unknown_model_is_told_before_any_is_measured(tmp_path):
    done = harness.run_binary('lanes_per_batch', '--models=ffn,nope', f'--output={tmp_path / "out"}')
    helpers.assert_one_error(done, "models='nope': unknown")
    assert list(tmp_path.iterdir()) == []


def test_a_baseline_in_closed_form_takes_one_lane_anywhere():
    (cell,) = sweeps.cells_of(sweeps.Sweep(models='ridge', seq_lens=3, learners='adamw', num_samples=16))
    assert lane_batches.default_size(cell.problem.module, 5, 'gpu') == 1


def test_available_memory():
    assert 2**20 < lane_batches.available_memory(jax.devices()[0]) < 2**50


class Accelerator:
    """A device that counts its own memory."""

    def memory_stats(self):
        return {'bytes_limit': 1000, 'bytes_in_use': 300}


def test_available_memory_of_an_accelerator():
    assert lane_batches.available_memory(Accelerator()) == 700


def fake_compile(monkeypatch, bytes_per_lane):
    """Makes every program need a given memory; returns the sizes that were compiled."""
    sizes = []

    def compile_programs(problem, size, device):
        sizes.append(size)
        return programs.Programs(None, None, size, device, 1.0, memory_bytes=size * bytes_per_lane, fingerprint='')

    monkeypatch.setattr(programs, 'compile_programs', compile_programs)
    return sizes


def test_an_odd_batch_that_does_not_fit_becomes_two_not_three(monkeypatch):
    sizes = fake_compile(monkeypatch, 2**20)
    assert lane_batches.fitting_programs(None, 45, None, memory_limit=12 * 2**20).size == 12
    assert sizes == [45, 23, 12]


def test_a_batch_that_does_not_fit_is_halved_with_a_warning(monkeypatch, caplog):
    sizes = fake_compile(monkeypatch, 2**20)
    with caplog.at_level(logging.WARNING):
        found = lane_batches.fitting_programs(None, 8, None, memory_limit=3 * 2**20)
    assert (found.size, sizes) == (2, [8, 4, 2])
    assert '8 lanes need 8 MiB of 3 MiB: continuing with lanes_per_batch=4' in caplog.text
    assert 'lanes_per_batch=2' in caplog.text


def test_a_lane_that_does_not_fit_is_a_line(monkeypatch):
    fake_compile(monkeypatch, 2**20)
    with pytest.raises(MemoryError, match='1 lanes need 1 MiB of 0 MiB: use fewer test_samples'):
        lane_batches.fitting_programs(None, 5, None, memory_limit=1)


def test_what_fits_is_not_touched(monkeypatch, caplog):
    sizes = fake_compile(monkeypatch, 1)
    assert lane_batches.fitting_programs(None, 5, jax.devices()[0]).size == 5
    assert sizes == [5]
    assert caplog.text == ''


def limit_memory(monkeypatch, bytes_of):
    """Real programs that say they need `bytes_of(problem, size)`."""
    compile_programs = programs.compile_programs

    def limited(problem, size, device):
        return compile_programs(problem, size, device)._replace(memory_bytes=bytes_of(problem, size))

    monkeypatch.setattr(programs, 'compile_programs', limited)


@pytest.mark.slow
def test_a_sweep_in_little_memory_has_all_lanes(tmp_path, monkeypatch):
    """Three lanes do not fit: the cell is run with smaller batches, and no lane is lost."""
    limit_memory(monkeypatch, lambda problem, size: size * 100)
    sweep = small.settings(models=('ffn',), num_seeds=3, max_samples=400, threshold=1e-9, lanes_per_batch=3)
    rows = sweeps.run(sweep, tmp_path, small.quiet(memory_limit=150))
    assert list(rows['seed']) == [0, 1, 2]
    assert set(rows['lanes_per_batch']) == {1}


@pytest.mark.slow
def test_too_little_memory_for_one_cell_loses_no_other(tmp_path, monkeypatch):
    limit_memory(monkeypatch, lambda problem, size: 100 if problem.task.seq_len == 3 else 1000)
    sweep = small.settings(models=('ffn',), seq_lens=(2, 3), num_seeds=1)
    with pytest.raises(sweeps.SweepError, match=r'1 cells failed .*ffn-qstr-N2'):
        sweeps.run(sweep, tmp_path, small.quiet(memory_limit=150))
    (error,) = (tmp_path / 'errors').iterdir()
    assert 'MemoryError' in error.read_text()
    assert len(list((tmp_path / 'rows').iterdir())) == 1
