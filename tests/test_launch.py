"""The launcher, with submitit's local executor: jobs are processes of this machine. `test_ray.py` has Ray."""

import dataclasses
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
import types

import pytest

from experiments import launch
from qstr_jax import signals, sweeps
from qstr_jax.launchers import batch_queue, batch_worker, ray, request, submitit_jobs
from qstr_jax.storage import results
from qstr_jax.sweeps import worker
from tests import harness, helpers

CONFIG = '--config=experiments/exhibits/quickstart.py'
TINY = [
    '--config.models=transformer,ffn',
    '--config.seq_lens=3',
    '--config.num_seeds=2',
    '--config.token_dim=4',
    '--config.transformer.mlp_width=8',
    '--config.ffn.widths=8,8',
    '--config.batch_size=16',
    '--config.check_every=5',
    '--config.max_samples=800',
    '--config.test_samples=40',
]
LOCAL = ['--executor=local', '--poll_seconds=0.2']


@pytest.fixture(scope='module')
def cache(tmp_path_factory):
    """Argument of all binaries here: they share their programs."""
    return f'--compilation_cache={tmp_path_factory.mktemp("cache")}'


@pytest.fixture
def jobs_compile_quickly(monkeypatch):
    """Jobs are new Pythons, which find the flags in their environment."""
    monkeypatch.setenv('XLA_FLAGS', helpers.QUICK_FLAGS)


@pytest.fixture(scope='module')
def single(cache, tmp_path_factory):
    """The sweep in one process."""
    workdir = tmp_path_factory.mktemp('single')
    done = harness.run_binary('sample_complexity', CONFIG, cache, f'--workdir={workdir}', *TINY)
    assert done.returncode == 0, done.stderr
    assert len(harness.tables(workdir)) == 4
    return workdir


@pytest.mark.slow
@pytest.mark.usefixtures('jobs_compile_quickly')
def test_two_shards_make_the_same_rows_and_the_figure(cache, single, tmp_path):
    workdir = tmp_path / 'sweep'
    done = harness.run_binary('launch', CONFIG, cache, *LOCAL, f'--workdir={workdir}', '--num_shards=2', *TINY)
    assert done.returncode == 0, done.stderr
    assert '2 jobs (' in done.stdout
    assert '| Transformer' in done.stdout
    assert harness.tables(workdir) == harness.tables(single)
    assert set(harness.trained(workdir).values()) == {1}
    assert (workdir / 'table.md').read_text() == (single / 'table.md').read_text()
    assert (workdir / 'figure.png').read_bytes() == (single / 'figure.png').read_bytes()
    # What submitit pickles stays out of the results.
    assert list((tmp_path / 'sweep-logs').glob('*.pkl'))
    assert not list(workdir.rglob('*.pkl'))


@pytest.mark.slow
@pytest.mark.usefixtures('jobs_compile_quickly')
def test_failed_shards_are_reported_with_the_end_of_their_logs(cache, tmp_path):
    """One cell's tables cannot be written, which one of two shards finds out."""
    workdir = tmp_path / 'sweep'
    # An axis given twice has both values: the first run gets its own.
    others = 'models=', 'seq_lens=', 'transformer.'
    settings = [setting for setting in TINY if not any(name in setting for name in others)]
    settings += ['--config.models=ffn']
    arguments = CONFIG, cache, f'--workdir={workdir}', *settings
    first = harness.run_binary('sample_complexity', *arguments, '--config.seq_lens=2')
    assert first.returncode == 0, first.stderr
    (table,) = (workdir / 'rows').iterdir()
    table.write_bytes(b'PAR1')
    more = '--config.seq_lens=2,3', '--num_shards=2', f'--log_dir={tmp_path / "logs"}'
    done = harness.run_binary('launch', *arguments, *LOCAL, *more)
    assert done.returncode == 1
    lines = done.stderr.strip().splitlines()
    (start,) = [i for i, line in enumerate(lines) if line == 'error: 1 of 2 shards failed']
    head, *tail = lines[start + 1 :]
    assert 'shard 1: exit code 1; ' in head
    assert str(tmp_path / 'logs') in head
    assert tail[-1].strip() == f'error: {table} is damaged' + tail[-1].partition('is damaged')[2]
    assert 'Traceback' not in done.stderr
    assert len(results.load(workdir)) == 2  # the other shard's


def running(marker):
    """Processes with `marker` in their command."""
    found = []
    for path in pathlib.Path('/proc').glob('[0-9]*/cmdline'):
        try:
            if marker in path.read_bytes().decode(errors='replace'):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


@pytest.mark.slow
@pytest.mark.usefixtures('jobs_compile_quickly')
def test_a_preempted_job_saves_its_state_and_is_queued_again(cache, single, tmp_path):
    """Sends what Slurm sends before it takes a machine away."""
    workdir = tmp_path / 'sweep'
    process = harness.Binary('launch', CONFIG, cache, *LOCAL, f'--workdir={workdir}', *TINY)
    while not list(workdir.glob('progress/*')):
        assert process.is_running(), process.finish()
        time.sleep(0.05)
    (job,) = running(f'submitit.core._submit\0{tmp_path / "sweep-logs"}')
    os.kill(job, signal.SIGUSR2)
    code, _, errors = process.finish()
    assert code == 0, errors
    (log,) = (tmp_path / 'sweep-logs').glob('*.err')
    assert 'Caught signal SIGUSR2' in log.read_text()
    assert harness.tables(workdir) == harness.tables(single)
    assert set(harness.trained(workdir).values()) == {1}


@pytest.mark.slow
def test_an_error_of_the_launcher_is_the_last_line_of_its_process(tmp_path):
    done = harness.run_binary('launch', CONFIG, *LOCAL, f'--workdir={tmp_path / "sweep"}', '--config.num_sedes=2')
    helpers.assert_one_error(done, 'num_sedes')
    assert os.listdir(tmp_path) == []


@pytest.mark.usefixtures('_as_before')
@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        (['--executor=slurm'], "error: executor='slurm' cannot be used here"),
        (['--executor=pigeon'], 'error: flag --executor=pigeon: value should be one of <slurm|local|ray>'),
        (['--log_dir=DIR/logs'], "error: log_dir='DIR/logs': must lie outside the results directory DIR"),
        (['--config.models=mamba'], "error: models='mamba': unknown; did you mean 'mamba3'"),
        (['--config.num_sedes=2'], 'num_sedes'),
        (['--shards=2'], "Unknown command line flag 'shards'"),
        (['more'], "error: unknown argument 'more'"),
        (['--executor=ray', '--num_shards=3'], 'error: --num_shards: --executor=ray does not use it, leave it out'),
        (['--executor=ray', '--gpus=nan'], 'error: --gpus=nan: must be a finite number'),
        (['--executor=ray', '--mem_gb=-1'], 'error: flag --mem_gb=-1: -1.0 is not a non-negative number'),
        (['--gpus=0.5'], 'error: gpus=0.5, tpus=0: parts of GPUs and TPUs need --executor=ray'),
    ],
)
def test_bad_input_is_a_line_and_starts_nothing(tmp_path, arguments, message):
    workdir = str(tmp_path / 'sweep')
    arguments = [CONFIG, *LOCAL, f'--workdir={workdir}', *(a.replace('DIR', workdir) for a in arguments)]
    helpers.assert_one_line(helpers.end_of(launch, *arguments), message.replace('DIR', workdir))
    assert os.listdir(tmp_path) == []


def test_job_files_need_a_folder_here(tmp_path):
    with pytest.raises(ValueError, match='give --log_dir'):
        submitit_jobs.log_dir('gs://bucket/x', None)
    assert submitit_jobs.log_dir('gs://bucket/x', str(tmp_path)) == tmp_path


def test_no_way_leads_job_files_into_the_results(tmp_path):
    (tmp_path / 'base').mkdir()
    (tmp_path / 'link').symlink_to(tmp_path / 'results')
    for chosen in tmp_path / 'base/../results/logs', tmp_path / 'link/logs':
        with pytest.raises(ValueError, match='must lie outside the results directory'):
            submitit_jobs.log_dir(str(tmp_path / 'results'), str(chosen))


def test_a_log_dir_that_is_a_file_is_named(tmp_path):
    (tmp_path / 'logs').write_text('')
    with pytest.raises(results.ResultsError, match=r'^--log_dir=.*must be a directory'):
        submitit_jobs.submit('local', [], tmp_path / 'logs', request.Request([]))


def test_slurm_queues_a_job_again_as_often_as_it_takes(monkeypatch):
    asked = []

    def make(folder, **options):
        asked.append(options)
        raise RuntimeError('no sbatch here')

    monkeypatch.setattr('submitit.AutoExecutor', make)
    with pytest.raises(sweeps.SweepError, match='no sbatch here'):
        submitit_jobs.submit('slurm', [], 'x', request.Request(()))
    assert asked[0]['slurm_max_num_timeout'] > 1000


def test_without_submitit_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, 'submitit', None)
    with pytest.raises(sweeps.SweepError, match=r'^submitit is missing: make install EXTRA=launch$'):
        submitit_jobs.submit('local', [], 'x', request.Request(()))


def test_without_ray_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, 'ray', None)
    monkeypatch.setattr('qstr_jax.launchers.ray.Planner', lambda *_: None)
    with pytest.raises(SystemExit) as end:
        ray.run(request.Request(()))
    assert end.value.code == 'error: ray is missing: make install EXTRA=ray'


@pytest.mark.parametrize(
    ('asked', 'platform', 'share'),
    [({}, 'cpu', None), ({'gpus': 0.5}, 'cuda', '0.45'), ({'gpus': 2}, 'cuda', '0.9'), ({'tpus': 4}, 'tpu', None)],
)
def test_a_worker_takes_its_devices_and_its_share_of_memory(asked, platform, share):
    found = ray.environment_of(request.Request((), **asked))
    assert found['JAX_PLATFORMS'] == platform
    assert found.get('XLA_PYTHON_CLIENT_MEM_FRACTION') == share


def test_a_worker_with_jax_before_its_environment_is_an_error():
    with pytest.raises(RuntimeError, match='JAX was imported before'):
        ray.Actor({}, ()).num_devices()


def test_a_worker_without_the_promised_devices_is_an_error(monkeypatch):
    monkeypatch.setattr(sys, 'argv', [])  # which a worker sets
    with helpers.flags_as_before(batch_worker), pytest.raises(RuntimeError, match='promised 1 × gpu, but JAX found'):
        batch_worker.BatchWorker((CONFIG, '--compilation_cache='), 'gpu', 1)


def test_a_batch_that_is_over_leaves_no_checkpoint_of_other_lanes(tmp_path):
    """As of a batch that was stopped when it had other lanes; with one left, its driver would wait for ever."""

    def work(job):
        assert (tmp_path / 'checkpoints/old/state').read_bytes() == b'x'
        (tmp_path / 'rows/cell.parquet').write_bytes(b'rows')

    (tmp_path / 'provenance').mkdir()
    one = object.__new__(batch_worker.BatchWorker)
    one._workdirs, one._saved, one._mutex, one._stop = [{'': tmp_path}], [(None, {})], threading.Lock(), signals.Stop()
    job = worker.Job(**dict.fromkeys(field.name for field in dataclasses.fields(worker.Job)))
    one._session = types.SimpleNamespace(job=lambda *_, **__: job, workers=[types.SimpleNamespace(work=work)])
    one._given = lambda batch: batch
    batch = batch_queue.Batch('cell', 0, 'cell-batch1of1', (0,), 1.0)
    for _ in range(2):
        assert list(one.run(0, batch, {'checkpoints/old/state': b'x'})['files']) == ['rows/cell.parquet']
    one._stop.set()
    assert len(one.run(0, batch, {'checkpoints/old/state': b'x'})['files']) == 2


def test_a_second_signal_ends_a_driver_whose_workers_hang(monkeypatch, capfd):
    class Driver:
        failed = ()

        def __init__(self, *given, stop, **named):
            self._stop = stop

        def run(self):
            signal.raise_signal(signal.SIGINT)
            assert (self._stop.is_set(), codes) == (True, [])
            signal.raise_signal(signal.SIGINT)

    codes, about = [], {'is_tuned': False, 'left': 1, 'lanes': 1, 'workdir': ''}
    cluster = types.SimpleNamespace(cluster_resources=lambda: {'CPU': 2}, shutdown=lambda: None)
    monkeypatch.setitem(sys.modules, 'ray', cluster)
    monkeypatch.setattr(os, '_exit', codes.append)
    monkeypatch.setattr(ray, 'Planner', lambda *_: types.SimpleNamespace(about=about))
    monkeypatch.setattr(ray, 'Engine', lambda _: None)
    monkeypatch.setattr(ray, '_join', lambda _: None)
    monkeypatch.setattr(ray.driver, 'Driver', Driver)
    with pytest.raises(SystemExit, match='stopped: the running lanes are saved'):
        ray.run(request.Request(()))
    assert codes == [128 + signal.SIGINT]
    told = capfd.readouterr().err.splitlines()
    assert 'once more stops at once' in told[-2]
    assert told[-1] == 'stopped at once'


def test_a_driver_imports_no_jax():
    code = (
        'import sys; from experiments import launch; from qstr_jax.launchers import driver, inbox, planner, ray; '
        'print([name for name in sys.modules if name.split(".")[0] in ("jax", "jaxlib", "flax")])'
    )
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, cwd=helpers.ROOT, check=True)
    assert done.stdout == '[]\n'
