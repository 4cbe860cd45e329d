"""A real Ray cluster of three nodes here: nodes and drivers die, and the rows are those of one process."""

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import time

import pytest

from qstr_jax.storage import provenance, results
from tests import harness, helpers

pytest.importorskip('ray', reason='needs Ray: make install EXTRA=ray')
from ray import cluster_utils

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif('QSTR_JAX_ALL_TESTS' not in os.environ, reason='Ray takes two minutes: QSTR_JAX_ALL_TESTS=1'),
]

# Six lane batches of one cell, which each worker compiles once, so that both nodes are at work when one of them dies.
SETTINGS = {**harness.JOB, 'seq_lens': (2,), 'num_seeds': 6, 'max_samples': 3200, 'probes': ('param_norm',)}
# For drivers that nobody kills: of their workers' time, half goes into saving states.
RARELY = '--checkpoint_seconds=1e6'
# The rate of two models is tuned: two searches side by side, with steps beyond the rates that are given.
TUNED = {
    **harness.JOB, 'models': ('ffn', 'transformer'), 'seq_lens': (2,), 'num_seeds': 2, 'transformer.mlp_width': 8,
    'threshold': 0.8, 'max_samples': 4800, 'task_per_lane': True, 'tune.learning_rate': (1e-2, 3e-2),
    'tune.num_seeds': 2,
}  # fmt: skip
# A config whose results are not drawn, which takes longer than they do.
UNDRAWN = """
from experiments.exhibits.quickstart import get_config

def draw(workdir, config):
    print('drawn')
"""


@pytest.fixture(scope='module')
def cluster():
    """A head without room for workers, and two nodes with room for one each."""
    started = cluster_utils.Cluster(initialize_head=True, head_node_args={'num_cpus': 0})
    for _ in range(2):
        started.add_node(num_cpus=1)
    yield started
    started.shutdown()


@pytest.fixture(scope='module')
def shared(tmp_path_factory):
    """Arguments of all runs here: a config whose results are not drawn, and a folder of compiled programs."""
    folder = tmp_path_factory.mktemp('shared')
    (folder / 'config.py').write_text(UNDRAWN)
    return f'--config={folder / "config.py"}', f'--compilation_cache={folder / "programs"}'


def in_one_process(shared, workdir, settings):
    """Tables of a sweep in one process, which compiles for one device."""
    arguments = harness.arguments(settings)
    done = harness.run_binary('sample_complexity', *shared, f'--workdir={workdir}', '--num_devices=1', *arguments)
    assert done.returncode == 0, done.stderr
    return tables(workdir)


def tables(workdir):
    """All tables of a sweep, with those of the lanes that chose its settings."""
    selected = harness.tables(workdir / results.SELECTION)
    return {**harness.tables(workdir), **{f'{results.SELECTION}/{name}': data for name, data in selected.items()}}


class Driver:
    """The driver, a Python of its own as users have it; `checks` has how far each lane batch was saved."""

    def __init__(self, cluster, shared, workdir, settings, *more):
        command = [sys.executable, '-m', 'experiments.launch', '--executor=ray', f'--address={cluster.address}']
        command += ['--cpus=1', '--poll_seconds=0.1', '--checkpoint_seconds=0', f'--workdir={workdir}', *shared, *more]
        environment = {**os.environ, 'XLA_FLAGS': helpers.QUICK_FLAGS}
        streams = {'stdout': subprocess.PIPE, 'stderr': subprocess.PIPE}
        self._process = subprocess.Popen(
            [*command, *harness.arguments(settings)], cwd=helpers.ROOT, env=environment, text=True, **streams
        )
        self._workdir, self.checks = workdir, {}

    def follow(self, is_there=lambda: False):
        """Waits until something is there or for its end, and looks at checkpoints: no batch may go back."""
        while not (found := is_there()) and self._process.poll() is None:
            for folder in self._workdir.glob('checkpoints/*'):
                numbers = [int(path.name) for path in folder.glob('[0-9]*') if path.name.isdigit()]
                before = self.checks.setdefault(folder.name, 0)
                self.checks[folder.name] = max(numbers, default=before)
                assert self.checks[folder.name] >= before
            time.sleep(0.02)
        return found

    def kill(self):
        self._process.kill()
        self._process.communicate()  # which waits for the end of its children too

    def finish(self):
        return *self._process.communicate(), self._process.returncode


def node_at_work(cluster, beats):
    """A node with a worker that tells what it does; None if there is none."""
    for path in beats:
        with contextlib.suppress(FileNotFoundError):  # its batch is done
            status = pathlib.Path(f'/proc/{json.loads(path.read_text())["pid"]}/stat').read_text()
            parent = int(status.rpartition(')')[2].split()[1])
            return next((node for node in cluster.list_all_nodes() if raylet(node) == parent), None)
    return None


def raylet(node):
    """The process of a node that starts workers."""
    return node.all_processes['raylet'][0].process.pid


def test_a_killed_driver_goes_on_and_a_killed_node_is_done_without(cluster, shared, tmp_path):
    first = Driver(cluster, shared, tmp_path, SETTINGS, '--num_workers=1')
    first.follow(lambda: max(first.checks.values(), default=0) > 8)
    first.kill()
    beats = set(tmp_path.glob('progress/*'))
    second = Driver(cluster, shared, tmp_path, SETTINGS)
    second.checks.update(first.checks)
    second.follow(lambda: second.checks != first.checks)
    node = second.follow(lambda: node_at_work(cluster, set(tmp_path.glob('progress/*')) - beats))
    cluster.remove_node(node, allow_graceful=False)
    second.follow()
    output, errors, code = second.finish()
    assert code == 0, errors
    assert 'its worker is gone, another goes on' in errors
    assert output.splitlines()[-1] == 'drawn'
    assert tables(tmp_path) == in_one_process(shared, tmp_path / 'single', SETTINGS)
    assert harness.leftovers(tmp_path) == []
    assert provenance.of_rows(tmp_path)['run'].notna().all()
    cluster.add_node(num_cpus=1)


def test_what_fails_by_itself_is_a_line_and_a_tuned_sweep_goes_on(cluster, shared, tmp_path):
    """One of two models needs more memory than there is said to be."""
    single = in_one_process(shared, tmp_path / 'single', TUNED)
    workdir = tmp_path / 'sweep'
    _, errors, code = Driver(cluster, shared, workdir, TUNED, RARELY, '--memory_limit_gb=4e-5').finish()
    assert code == 1, errors
    *_, before, line = errors.splitlines()
    assert before == 'error: batches that failed: 1'
    assert line.startswith('transformer-qstr-N2')
    assert 'MemoryError: 1 lanes need' in line
    assert 'Traceback' not in errors
    assert tables(workdir) == {name: single[name] for name in single if '/ffn-' in name}
    killed = Driver(cluster, shared, workdir, TUNED, '--num_workers=1')
    assert killed.follow(lambda: list((workdir / results.SELECTION / 'rows').glob('transformer-*')))
    killed.kill()
    output, errors, code = Driver(cluster, shared, workdir, TUNED, RARELY, '--num_workers=1').finish()
    assert code == 0, errors
    assert output.splitlines()[-1] == 'drawn'
    assert tables(workdir) == single
