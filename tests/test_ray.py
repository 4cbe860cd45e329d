"""A real Ray cluster of three nodes here: nodes and drivers die, and the rows are those of one process."""

import os
import signal
import subprocess
import sys
import time

import pytest

from qstr_jax.storage import provenance
from tests import harness, helpers

pytest.importorskip('ray', reason="needs Ray: pip install 'qstr_jax[ray]'")
from ray import cluster_utils

pytestmark = pytest.mark.slow

CONFIG = '--config=experiments/exhibits/quickstart.py'
# Eight lane batches, so that both nodes are at work when one of them dies.
SETTINGS = harness.arguments({**harness.JOB, 'max_samples': 3200, 'probes': ('param_norm',)})


@pytest.fixture(scope='module')
def cache(tmp_path_factory):
    return f'--compilation_cache={tmp_path_factory.mktemp("cache")}'


@pytest.fixture(scope='module')
def single(cache, tmp_path_factory):
    """Tables of one process."""
    workdir = tmp_path_factory.mktemp('single')
    done = harness.run_binary('sample_complexity', CONFIG, cache, f'--workdir={workdir}', *SETTINGS)
    assert done.returncode == 0, done.stderr
    return harness.tables(workdir)


@pytest.fixture(scope='module')
def cluster():
    """A head without room for workers, and two nodes with room for one each."""
    started = cluster_utils.Cluster(initialize_head=True, head_node_args={'num_cpus': 0})
    for _ in range(2):
        started.add_node(num_cpus=1)
    yield started
    started.shutdown()


def start(cluster, cache, workdir, *more):
    """Starts the driver, a Python of its own as users have it."""
    command = [sys.executable, '-m', 'experiments.launch', CONFIG, '--executor=ray', f'--address={cluster.address}']
    command += ['--cpus=1', '--poll_seconds=0.1', '--checkpoint_seconds=0', cache, f'--workdir={workdir}', *SETTINGS]
    environment = {**os.environ, 'XLA_FLAGS': helpers.QUICK_FLAGS}
    streams = {'stdout': subprocess.PIPE, 'stderr': subprocess.PIPE}
    return subprocess.Popen([*command, *more], cwd=helpers.ROOT, env=environment, text=True, **streams)


def wait_for_checkpoint(process, workdir):
    while not list(workdir.glob('checkpoints/*/*/_CHECKPOINT_METADATA')):
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)


def test_a_killed_driver_goes_on_and_a_killed_node_is_done_without(cluster, cache, single, tmp_path):
    first = start(cluster, cache, tmp_path)
    wait_for_checkpoint(first, tmp_path)
    first.send_signal(signal.SIGKILL)
    first.communicate()
    assert harness.tables(tmp_path) != single
    second = start(cluster, cache, tmp_path)
    while len(harness.tables(tmp_path)) < 2:
        assert second.poll() is None, second.communicate()
        time.sleep(0.02)
    cluster.remove_node(cluster.list_all_nodes()[-1], allow_graceful=False)
    _, errors = second.communicate()
    assert second.returncode == 0, errors
    assert 'its worker is gone, another goes on' in errors
    assert harness.tables(tmp_path) == single
    assert harness.leftovers(tmp_path) == []
    assert provenance.of_rows(tmp_path)['run'].notna().all()
    assert (tmp_path / 'table.md').exists()
    cluster.add_node(num_cpus=1)


def test_a_batch_that_fails_by_itself_is_a_line_and_the_others_go_on(cluster, cache, single, tmp_path):
    """One of two cells needs more memory than there is said to be."""
    process = start(cluster, cache, tmp_path, '--memory_limit_gb=3.4e-5')
    _, errors = process.communicate()
    assert process.returncode == 1, errors
    assert 'error: 4 batches failed\n' in errors
    failed = [line for line in errors.splitlines()[-4:]]
    assert all(line.startswith('ffn-qstr-N3') and 'MemoryError: 1 lanes need' in line for line in failed), errors
    assert 'Traceback' not in errors
    found = harness.tables(tmp_path)
    assert found == {name: single[name] for name in single if '-N2-' in name}
