"""The benchmark's sections from a small cell, and its flags; nothing here is timed for its speed."""

import functools
import importlib.util
import json
import pathlib

import jax
import pytest

from experiments.benchmarks import ours
from experiments.benchmarks.ours import Protocol
from qstr_jax import sweeps
from tests import harness, helpers

WIDTHS = {'token_dim': 4, 'ffn_widths': (8, 8)}
TINY = Protocol('ffn', 3, **WIDTHS, max_samples=1280, test_samples=40, threshold=0.9)


def test_a_fresh_cache_is_empty_and_goes():
    before = jax.config.jax_compilation_cache_dir
    with ours.fresh_cache():
        folder = pathlib.Path(jax.config.jax_compilation_cache_dir)
        assert not list(folder.iterdir())
    assert jax.config.jax_compilation_cache_dir == before
    assert not folder.exists()


def test_both_sides_are_told_the_same():
    problem = sweeps.cells_of(ours.sweep_of(TINY))[0].problem
    assert (problem.task.encoding_dim, problem.task.embedding_dim) == (TINY.encoding_dim, TINY.embedding_dim)
    assert (problem.learner.batch_size, problem.learner.threshold) == (TINY.batch_size, TINY.threshold)
    assert problem.module.widths == TINY.ffn_widths


@pytest.mark.slow
def test_our_side_trains_and_is_tested():
    cell = ours.Cell(TINY)
    before = jax.tree.leaves(cell.state_K)[0].copy()
    cell.steps(3)
    cell.tests(2)
    assert cell.first == 3
    assert (jax.tree.leaves(cell.state_K)[0] != before).any()
    samples, reached, seconds, compiling = ours.run(TINY, 2)
    assert len(samples) == len(reached) == 2
    assert all(number % 640 == 0 for number in samples)
    assert 0 < compiling
    assert 0 < seconds


@pytest.mark.slow
@helpers.needs_torch
def test_sections_compare_the_two(tmp_path):
    path = tmp_path / 'benchmark.json'
    narrow = functools.partial(Protocol, **WIDTHS, test_samples=500, learning_rate=3e-3, threshold=0.9)
    flags = '--models=ffn', '--seq_lens=2', '--run_seeds=1', '--milliseconds=20', f'--json={path}'
    done = harness.run_binary('benchmark', *flags, settings={'experiments.benchmarks.ours:Protocol': narrow})
    assert done.returncode == 0, done.stderr
    found = json.loads(path.read_text())['sections']
    (step,), (run,) = found['steps'], found['runs']
    assert step['times PyTorch, steps'] == pytest.approx(step['steps/s, ours'] / step['steps/s, PyTorch'])
    assert run['reached'] == '1, 1'
    assert 'at equal samples' in done.stdout


@pytest.mark.parametrize(
    ('flag', 'message'),
    [
        ('--sections=fast', 'value should be one of <steps|runs>'),
        ('--models=mlp', 'unknown, one of transformer, rnn, ffn'),
        ('--seq_lens=four', 'give numbers above 1'),
        ('--json=.', 'is a folder'),
        ('--speed', 'Unknown command line flag'),
    ],
)
def test_bad_flags_are_one_line(flag, message):
    if importlib.util.find_spec('torch') is None and flag.startswith(('--models', '--seq', '--json')):
        pytest.skip('needs PyTorch: make install EXTRA=benchmark')
    done = harness.run_binary('benchmark', flag)
    assert done.returncode == 1
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith('error: ')
    assert message in line
