"""Real sweeps in processes of their own, which tests kill; a fork server has imported everything beforehand."""

import collections
import gc
import importlib
import json
import multiprocessing
import os
import pathlib
import runpy
import shutil
import subprocess
import sys
import tempfile
import threading
import uuid
import weakref

import jax
import tqdm

from qstr_jax import sweeps
from qstr_jax.cli import command_line
from qstr_jax.sweeps import outputs, training
from tests import deaths, executables, helpers

SPAWN = multiprocessing.get_context('forkserver')
# Not the binaries: each defines its flags when it is run.
PRELOADED = ('tests.harness', 'ml_collections.config_flags', 'scipy.optimize')
SPAWN.set_forkserver_preload([*PRELOADED, 'qstr_jax.plots', 'qstr_jax.report'])

MODELS = ('transformer', 'rnn', 'ffn')
# Three cells of two lanes that train in a fraction of a second once they are compiled; some reach the threshold.
TINY = {
    'preset': 'published',
    'models': MODELS,
    'seq_lens': (3,),
    'num_seeds': 2,
    'token_dim': 4,
    'transformer.mlp_width': 8,
    'rnn.width': 8,
    'ffn.widths': (8,),
    'batch_size': 16,
    'learning_rate': (0.01,),
    'check_every': 5,
    'max_samples': 960,
    'test_samples': 40,
    'threshold': 0.7,
}

# Three cells of one architecture, where claims and files are the subject: they are traced three times as quickly.
# Architectures are compared at the users' level, in `test_workers.py`.
THREE_FFNS = {'models': ('ffn',), 'seq_lens': (2, 3, 4)}
# Nine lane batches: three cells of six lanes, two lanes at a time.
MANY = {**THREE_FFNS, 'num_seeds': 6, 'lanes_per_batch': 2, 'max_samples': 480}
# Every architecture, where programs are as users have them.
OURS = {'models': MODELS, 'seq_lens': (2,), 'lanes_per_batch': 1, 'threshold': 0.01}
# Eight lane batches of one cell, for several devices.
EIGHT = {'models': ('ffn',), 'num_seeds': 8, 'lanes_per_batch': 1}

# Of a job of several processes, beside `quickstart.py`: a process helps with another's cell only after a while.
JOB = {
    'models': ('ffn',), 'seq_lens': (2, 3), 'num_seeds': 4, 'lanes_per_batch': 1, 'token_dim': 4, 'ffn.widths': (8, 8),
    'batch_size': 16, 'check_every': 5, 'max_samples': 1600, 'threshold': 0.01, 'test_samples': 40,
}  # fmt: skip

# The fork server imports this file: its children look through what is there by then as little as it does.
gc.freeze()
gc.set_threshold(20_000)

# Every process has so many, and uses as many as it is told to: the same programs are in the cache for all of them.
MOST_DEVICES = 8


def _child(settings, workdir, cache, options, death, num_devices, flags, log):
    """What a started process does: as `experiments.sample_complexity`, in many small calls and without a figure."""
    with open(log, 'ab', buffering=0) as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.environ['XLA_FLAGS'] = flags
    tqdm.tqdm.set_lock(threading.RLock())  # its own is a semaphore that a kill leaves behind
    jax.config.update('jax_num_cpu_devices', MOST_DEVICES)
    jax.config.update('jax_compilation_cache_dir', str(cache))
    jax.config.update('jax_persistent_cache_min_compile_time_secs', 0.0)
    executables.share(cache / 'executables', flags)
    training.SECONDS_PER_CALL = 0.0  # one check per call
    if not settings.get('probes'):  # Nothing but probes is asked for: each start would trace every task and model.
        outputs.check_new = lambda sweep, cells, workdir: {cell.id: {} for cell in cells}
    if death is not None:
        deaths.arm(death, workdir)
    options = sweeps.Options(**{'progress': False, 'checkpoint_seconds': 0.0, 'num_devices': num_devices, **options})
    command_line.exit_on_error(lambda: sweeps.run(sweeps.Sweep(**settings).without_unused(), workdir, options))


def _binary(name, arguments, folder, outputs, settings):
    """What a started process does: as `python -m experiments.NAME` in a folder."""
    for number, path in enumerate(outputs, start=1):
        with open(path, 'wb', buffering=0) as file:
            os.dup2(file.fileno(), number)
    os.chdir(folder)
    sys.path.insert(0, str(folder))  # as `python -m` has it
    os.environ['XLA_FLAGS'] = helpers.QUICK_FLAGS
    tqdm.tqdm.set_lock(threading.RLock())  # its own is a semaphore that a kill leaves behind
    jax.config.update('jax_platforms', 'cpu')
    helpers.share_programs('binaries')
    # A folder of its own may hold plugins, whose functions have the names of another test's.
    own = [] if folder == helpers.ROOT else [path.read_text() for path in sorted(pathlib.Path(folder).glob('*.py'))]
    executables.share(f'{os.environ[helpers.CACHE]}/executables', settings, own)
    for target, value in settings.items():
        module, attribute = target.split(':')
        setattr(importlib.import_module(module), attribute, value)
    sys.argv = [name, *arguments]
    try:
        runpy.run_module(f'experiments.{name}', run_name='__main__', alter_sys=True)
    finally:
        jax.distributed.shutdown()  # a process leaves its job; multiprocessing's do nothing at their exit


def arguments(settings):
    """Settings of a config as a command line has them."""

    def text(value):
        return ','.join(map(str, value)) if isinstance(value, tuple) else str(value)

    return [f'--config.{name}={text(value)}' for name, value in settings.items()]


class Binary:
    """experiments.NAME in a process of its own, where the libraries are there beforehand: a Python imports for 3 s.

    Args:
        name: of the binary.
        *arguments: of its command line.
        folder: where it runs.
        settings: 'module:name' → value, set before it begins.
    """

    def __init__(self, name, *arguments, folder=helpers.ROOT, settings=()):
        logs = pathlib.Path(tempfile.mkdtemp(prefix='qstr_jax_binary_'))
        self._outputs = [logs / stream for stream in ('stdout', 'stderr')]
        args = name, arguments, folder, self._outputs, dict(settings)
        # No daemon: a launcher has children.
        self._process = SPAWN.Process(target=_binary, args=args)
        self._process.start()
        weakref.finalize(self, shutil.rmtree, logs)

    def is_running(self):
        return self._process.is_alive()

    def send(self, signal_number):
        os.kill(self._process.pid, signal_number)

    def finish(self, timeout=300):
        """Waits for its end; returns exit code (−n for signal n), output and errors."""
        self._process.join(timeout)
        if self._process.is_alive():
            self._process.kill()
            raise TimeoutError(self._outputs[1].read_text())
        return self._process.exitcode, *(path.read_text() for path in self._outputs)


def run_binary(name, *arguments, **where):
    """Runs experiments.NAME to its end; returns what `subprocess.run` does."""
    code, *outputs = Binary(name, *arguments, **where).finish()
    return subprocess.CompletedProcess((name, *arguments), code, *outputs)


class Lab:
    """Starts processes that share a compilation cache, and keeps what they say.

    Args:
        tmp_path_factory: pytest's.
        flags: XLA's, by default those that compile quickly; '' for programs as users have them.
    """

    def __init__(self, tmp_path_factory, flags=helpers.QUICK_FLAGS):
        base = tmp_path_factory.getbasetemp()
        self._folder = (base.parent if 'PYTEST_XDIST_WORKER' in os.environ else base) / 'lab'
        self._folder.mkdir(exist_ok=True)
        self._flags = flags

    def start(self, workdir, settings=None, death=None, num_devices=1, **options):
        """Starts a sweep and returns its process; `process.log` is the file with its output."""
        log = self._folder / f'{uuid.uuid4().hex}.log'
        cache = self._folder / ('quick' if self._flags else 'as_users')
        args = {**TINY, **(settings or {})}, workdir, cache, options, death, num_devices, self._flags, log
        process = SPAWN.Process(target=_child, args=args, daemon=True)
        process.log = log
        process.start()
        return process

    def run(self, *args, timeout=600, **kwargs):
        """Starts a sweep and waits for its end; returns its exit code (−n for signal n) and its output."""
        process = self.start(*args, **kwargs)
        process.join(timeout)
        if process.is_alive():
            process.kill()
            raise TimeoutError(process.log.read_text())
        return process.exitcode, process.log.read_text()

    def finish(self, *args, **kwargs):
        """Runs a sweep to its end, which must be a good one; it saves nothing on the way but where it is told to."""
        code, output = self.run(*args, **{'checkpoint_seconds': 1e6, **kwargs})
        assert code == 0, output


def tables(workdir):
    """All tables of a directory as {name: bytes}."""
    found = sorted(pathlib.Path(workdir).glob('*/*.parquet'))
    return {str(path.relative_to(workdir)): path.read_bytes() for path in found}


def leftovers(workdir):
    """Files that a finished sweep should not have: temporary ones, checkpoints, heartbeats, errors."""
    hidden = [path for path in workdir.rglob('*') if path.name.startswith('.') or 'tmp' in path.name]
    working = [p for name in ('checkpoints', 'progress', 'errors') for p in (workdir / name).iterdir()]
    return sorted(str(path.relative_to(workdir)) for path in {*hidden, *working})


def trained(workdir):
    """How often each (cell, lane) was trained to its end, by provenance."""
    ended = (entry for entry in sittings(workdir) if 'stopped' not in entry)
    return collections.Counter((entry['cell'], lane) for entry in ended for lane in entry['lanes'])


def sittings(workdir):
    """Entries of provenance: lane batches trained to their end, or stopped on the way."""
    return [entry for path in workdir.glob('provenance/*.json') for entry in json.loads(path.read_text())['batches']]
