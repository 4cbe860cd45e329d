"""Two processes of one `jax.distributed` job, over loopback."""

import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

import pytest

from tests import harness, helpers

pytestmark = pytest.mark.slow

ROOT = pathlib.Path(__file__).parent.parent
SWEEP = [
    'experiments.sample_complexity',
    '--config=experiments/configs/quickstart.py',
    '--config.models=transformer,ffn',
    '--config.seq_lens=3',
    '--config.num_seeds=4',
    '--config.lanes_per_batch=1',
    '--config.token_dim=4',
    '--config.mlp_width=8',
    '--config.ffn_widths=8,8',
    '--config.batch_size=16',
    '--config.check_every=5',
    '--config.max_samples=4000',
    '--config.threshold=0.01',
    '--config.test_samples=40',
    '--checkpoint_seconds=0',
]


@pytest.fixture(scope='module')
def start(tmp_path_factory):
    """Starts one process of a job of `count`; returns its Popen."""
    cache = tmp_path_factory.mktemp('cache')
    environment = {**os.environ, 'XLA_FLAGS': helpers.QUICK_FLAGS, 'JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS': '0'}
    # So that there is time to kill one of them.
    main = 'from qstr_jax.sweeps import lane_batch; training.SECONDS_PER_CALL = 0.0; import runpy, sys; ' + (
        'runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)'
    )

    def begin(workdir, *arguments):
        command = [sys.executable, '-c', main, *SWEEP, f'--workdir={workdir}', f'--compilation_cache={cache}']
        pipes = {'stdout': subprocess.PIPE, 'stderr': subprocess.STDOUT}
        return subprocess.Popen([*command, *arguments], cwd=ROOT, env=environment, text=True, **pipes)

    return begin


@pytest.fixture(scope='module')
def single(start, tmp_path_factory):
    """Tables of the sweep in one process."""
    workdir = tmp_path_factory.mktemp('single')
    process = start(workdir)
    output, _ = process.communicate(timeout=600)
    assert process.returncode == 0, output
    return harness.tables(workdir)


def job(start, workdir):
    """Both processes of a job."""
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        port = free.getsockname()[1]
    where = f'--coordinator=127.0.0.1:{port}', '--num_processes=2'
    return [start(workdir, *where, f'--process_id={i}') for i in range(2)]


def finish(processes):
    """Waits for both, which must end well; returns what they said."""
    outputs = [process.communicate(timeout=600)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    return outputs


def test_two_processes_make_the_same_rows(start, single, tmp_path):
    first, second = finish(job(start, tmp_path))
    assert harness.tables(tmp_path) == single
    assert set(harness.trained(tmp_path).values()) == {1}
    assert len(harness.trained(tmp_path)) == 8
    assert len(list((tmp_path / 'provenance').iterdir())) == 2  # both had a share
    assert harness.leftovers(tmp_path) == []
    # One draws, when all is there.
    assert '| Transformer' in first
    assert '| Transformer' not in second
    assert first.count('| Transformer') == 1


@pytest.mark.parametrize('victim', [0, 1])
def test_one_is_killed_and_the_job_is_started_again(start, single, tmp_path, victim):
    processes = job(start, tmp_path)
    while len(list(tmp_path.glob('checkpoints/*'))) < 2:
        assert all(process.poll() is None for process in processes)
        time.sleep(0.01)
    processes[victim].kill()
    time.sleep(0.5)
    # A scheduler ends the whole job when one of its processes dies.
    processes[1 - victim].send_signal(signal.SIGTERM)
    time.sleep(3)
    for process in processes:
        process.kill()
        process.communicate()
    assert harness.tables(tmp_path) != single
    finish(job(start, tmp_path))
    assert harness.tables(tmp_path) == single
    assert set(harness.trained(tmp_path).values()) == {1}
    assert harness.leftovers(tmp_path) == []


def test_a_signal_to_both_saves_both(start, single, tmp_path):
    processes = job(start, tmp_path)
    while len(list(tmp_path.glob('checkpoints/*'))) < 2:
        assert all(process.poll() is None for process in processes)
        time.sleep(0.01)
    for process in processes:
        process.send_signal(signal.SIGTERM)
    outputs = [process.communicate(timeout=120)[0] for process in processes]
    assert [process.returncode for process in processes] == [128 + signal.SIGTERM] * 2, outputs
    assert all('stopped by SIGTERM: the running lanes are saved' in output for output in outputs)
    finish(job(start, tmp_path))
    assert harness.tables(tmp_path) == single
    assert harness.leftovers(tmp_path) == []
