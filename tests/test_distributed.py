"""Two or four processes of one `jax.distributed` job, over loopback."""

import signal
import socket
import time

import pytest

from qstr_jax.storage import provenance
from tests import harness

pytestmark = pytest.mark.slow

SWEEP = ['--config=experiments/exhibits/quickstart.py', *harness.arguments(harness.JOB), '--checkpoint_seconds=0']

# For those that nobody kills: of a sitting's time, half goes into saving states.
RARELY = '--checkpoint_seconds=1e6'
# So that there is time to kill one of them.
SLOWLY = {'qstr_jax.sweeps.training:SECONDS_PER_CALL': 0.0}


@pytest.fixture(scope='module')
def start(tmp_path_factory):
    """Starts one process of a job; returns its `harness.Binary`."""
    cache = tmp_path_factory.mktemp('cache')

    def begin(workdir, *arguments):
        arguments = *SWEEP, f'--workdir={workdir}', f'--compilation_cache={cache}', *arguments
        return harness.Binary('sample_complexity', *arguments, settings=SLOWLY)

    return begin


@pytest.fixture(scope='module')
def single(start, tmp_path_factory):
    """Tables of the sweep in one process."""
    workdir = tmp_path_factory.mktemp('single')
    code, *outputs = start(workdir, RARELY).finish()
    assert code == 0, outputs
    return harness.tables(workdir)


def job(start, workdir, *arguments, num_processes=2):
    """The processes of a job."""
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        port = free.getsockname()[1]
    where = f'--coordinator=127.0.0.1:{port}', f'--num_processes={num_processes}'
    return [start(workdir, *where, f'--process_id={i}', *arguments) for i in range(num_processes)]


def finish(processes, code=0):
    """Waits for all, which must end with this exit code; returns what they said."""
    ends = [process.finish() for process in processes]
    assert {end[0] for end in ends} == {code}, ends
    return [output + errors for _, output, errors in ends]


def wait(processes, seconds):
    """Until all have ended, but no longer than this."""
    end = time.monotonic() + seconds
    while any(process.is_running() for process in processes) and time.monotonic() < end:
        time.sleep(0.01)


def wait_until_both_train(processes, workdir):
    while len(list(workdir.glob('checkpoints/*'))) < 2:
        assert all(process.is_running() for process in processes), [process.finish() for process in processes]
        time.sleep(0.01)


def test_four_processes_make_the_same_rows(start, single, tmp_path):
    """Jobs of two that nothing disturbs end the tests below."""
    first, *others = finish(job(start, tmp_path, RARELY, num_processes=4))
    assert harness.tables(tmp_path) == single
    assert set(harness.trained(tmp_path).values()) == {1}
    assert len(harness.trained(tmp_path)) == 8
    assert len(list((tmp_path / 'provenance').iterdir())) == 4  # each had a share
    assert harness.leftovers(tmp_path) == []
    # One draws, when all is there.
    assert first.count('| FFN') == 1
    assert not any('| FFN' in other for other in others)


@pytest.mark.parametrize('victim', [0, 1])
def test_one_is_killed_and_the_job_is_started_again(start, single, tmp_path, victim):
    processes = job(start, tmp_path)
    wait_until_both_train(processes, tmp_path)
    processes[victim].send(signal.SIGKILL)
    wait(processes, seconds=0.5)
    # A scheduler ends the whole job when one of its processes dies.
    if processes[1 - victim].is_running():
        processes[1 - victim].send(signal.SIGTERM)
    wait(processes, seconds=3)
    for process in processes:
        if process.is_running():
            process.send(signal.SIGKILL)
        process.finish()
    assert harness.tables(tmp_path) != single
    finish(job(start, tmp_path, RARELY))
    assert harness.tables(tmp_path) == single
    assert provenance.of_rows(tmp_path)['run'].notna().all()
    assert harness.leftovers(tmp_path) == []


def test_a_signal_to_both_saves_both(start, single, tmp_path):
    processes = job(start, tmp_path)
    wait_until_both_train(processes, tmp_path)
    for process in processes:
        process.send(signal.SIGTERM)
    outputs = finish(processes, code=128 + signal.SIGTERM)
    assert all('stopped by SIGTERM: the running lanes are saved' in output for output in outputs)
    finish(job(start, tmp_path, RARELY))
    assert harness.tables(tmp_path) == single
    assert harness.leftovers(tmp_path) == []
