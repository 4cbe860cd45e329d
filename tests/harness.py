"""Real sweeps in processes of their own, which tests kill; a fork server has imported everything beforehand."""

import dataclasses
import importlib
import json
import multiprocessing
import os
import pathlib
import signal
import sys

import jax

from experiments import runtime
from qstr_jax import results, sweeps
from qstr_jax.sweeps import batch

SPAWN = multiprocessing.get_context('forkserver')
SPAWN.set_forkserver_preload(['experiments.sample_complexity', 'tests.harness'])

# Three cells of two lanes that train in a fraction of a second once they are compiled; some reach the threshold.
TINY = {
    'models': ('transformer', 'rnn', 'ffn'),
    'seq_lens': (3,),
    'num_seeds': 2,
    'token_dim': 4,
    'mlp_width': 8,
    'rnn_width': 8,
    'ffn_widths': (8,),
    'batch_size': 16,
    'learning_rate': (0.01,),
    'check_every': 5,
    'max_samples': 960,
    'test_samples': 40,
    'threshold': 0.7,
}


@dataclasses.dataclass(frozen=True)
class Death:
    """Where a process ends itself: at call number `call` of `target` ('module:function'), or at an audited event.

    Attributes:
        target: what is watched; 'event' counts changes of the file system below the results directory.
        call: which call, from 1.
        when: 'before' or 'after' it.
        signal_number: SIGKILL by default.
    """

    target: str
    call: int
    when: str = 'before'
    signal_number: int = signal.SIGKILL


FILE_EVENTS = {'open', 'os.mkdir', 'os.rename', 'os.remove', 'os.rmdir', 'os.truncate', 'os.link'}


def _arm(death, workdir):
    """Makes this process end where `death` says."""
    count = 0

    def die():
        os.kill(os.getpid(), death.signal_number)

    def is_due():
        nonlocal count
        count += 1
        return count == death.call

    if death.target == 'event':

        def audit(event, args):
            if event in FILE_EVENTS and str(args[0]).startswith(workdir) and (event != 'open' or _writes(args)):
                if is_due():
                    die()

        sys.addaudithook(audit)
        return
    module, name = death.target.split(':')
    module = importlib.import_module(module)
    function = getattr(module, name)

    def wrapped(*args, **kwargs):
        due = is_due()
        if due and death.when == 'before':
            die()
        result = function(*args, **kwargs)
        if due and death.when == 'after':
            die()
        return result

    setattr(module, name, wrapped)


def _writes(args):
    _, mode, flags = args
    return bool((flags or 0) & (os.O_WRONLY | os.O_RDWR)) or (isinstance(mode, str) and mode[0] in 'wax')


def _child(settings, workdir, cache, options, death, num_devices, log):
    """What a started process does: as `experiments.sample_complexity`, with more calls of `advance` and no figure."""
    with open(log, 'ab', buffering=0) as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    jax.config.update('jax_num_cpu_devices', num_devices)
    jax.config.update('jax_compilation_cache_dir', str(cache))
    jax.config.update('jax_persistent_cache_min_compile_time_secs', 0.0)
    batch.SECONDS_PER_CALL = 0.0  # one check per call
    if death is not None:
        _arm(death, str(workdir))
    options = sweeps.Options(**{'progress': False, 'checkpoint_seconds': 0.0, **options})
    runtime.exit_on_error(lambda: sweeps.run(sweeps.Settings(**settings), workdir, options))


@dataclasses.dataclass
class Lab:
    """Starts processes that share a compilation cache, and remembers what they said."""

    folder: pathlib.Path
    started: int = 0

    def start(self, workdir, settings=None, death=None, num_devices=1, **options):
        """Starts a sweep and returns its process; `process.log` is its output."""
        self.started += 1
        log = self.folder / f'log{self.started}.txt'
        args = {**TINY, **(settings or {})}, workdir, self.folder / 'cache', options, death, num_devices, log
        process = SPAWN.Process(target=_child, args=args, daemon=True)
        process.log = log
        process.start()
        return process

    def run(self, *args, timeout=300, **kwargs):
        """Starts a sweep and waits for its end; returns its exit code (−n for signal n) and its output."""
        process = self.start(*args, **kwargs)
        process.join(timeout)
        if process.is_alive():
            process.kill()
            raise TimeoutError(process.log.read_text())
        return process.exitcode, process.log.read_text()


def tables(workdir):
    """All tables of a directory as {name: bytes}."""
    found = sorted(workdir.glob('rows/*.parquet')) + sorted(workdir.glob('curves/*.parquet'))
    return {str(path.relative_to(workdir)): path.read_bytes() for path in found}


def leftovers(workdir):
    """Files that a finished sweep should not have: temporary ones, checkpoints, heartbeats, errors."""
    hidden = [path for path in workdir.rglob('*') if path.name.startswith('.') or 'tmp' in path.name]
    working = [p for name in ('checkpoints', 'progress', 'errors') for p in (workdir / name).iterdir()]
    return sorted(str(path.relative_to(workdir)) for path in {*hidden, *working})


def trained(workdir):
    """How often each (cell, seed) was trained to its end, by provenance."""
    counts = {}
    for path in workdir.glob('provenance/*.json'):
        for entry in json.loads(path.read_text())['batches']:
            for seed in entry['seeds']:
                counts[entry['cell'], seed] = counts.get((entry['cell'], seed), 0) + 1
    return counts


def num_rows(workdir):
    """Rows of a directory."""
    return len(results.load(workdir, strict=True))
