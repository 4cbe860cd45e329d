r"""How long a large results directory takes to list, load, report and resume, and what a driver costs a lane batch.

python -m experiments.benchmarks.scale [--cells=10000] [--directory=DIR]

Makes a directory of --cells cells with ten lanes each, whose rows and curves are those of one short run with the
settings and seeds of their cells, then times each step in a process of its own. Prints a table; `docs/scaling.md` has
one.
"""

import concurrent.futures
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import threading
import time

import pandas as pd
from absl import app, flags

from qstr_jax import columns
from qstr_jax.launchers import driver as drivers
from qstr_jax.launchers import inbox
from qstr_jax.launchers.batch_queue import Batch
from qstr_jax.progress import Progress
from qstr_jax.storage import results

CELLS = flags.DEFINE_integer('cells', 10_000, 'Cells of the directory, a multiple of 1,000.', lower_bound=1000)
DIRECTORY = flags.DEFINE_string('directory', None, 'Where it is made, or lies already; a temporary folder by default.')
STEP = flags.DEFINE_enum(
    'step', None, ['make', 'load', 'curves', 'status', 'resume', 'driver', 'ray'], 'One step, in this process.'
)

TABLES = flags.DEFINE_bool('tables', True, 'Whether simulated batches hand back tables, and the driver writes them.')

SEEDS = 10
# Simulated workers, and how long a lane batch sleeps.
WORKERS, SLEEP = 1000, 10.0
SOURCE = 'QSTR_JAX_SCALE_SOURCE'
SMALL = {
    'models': ('transformer', 'ffn'), 'seq_lens': (2, 3, 4, 5, 6), 'num_seeds': SEEDS,
    'transformer': {'mlp_width': 8}, 'ffn': {'widths': (8,)}, 'token_dim': tuple(range(3, 13)),
    'batch_size': tuple(range(10, 20)), 'check_every': 5, 'test_samples': 40,
}  # fmt: skip


def sweep_of(num_cells):
    """A sweep of `num_cells` cells."""
    from qstr_jax import sweeps

    return sweeps.Sweep(**SMALL, max_samples=tuple(range(2000, 2000 + num_cells // 1000)))


def make(workdir):
    """Writes the directory: every cell has the rows and curves of one cell, with its own settings."""
    from qstr_jax import sweeps
    from qstr_jax.storage import files, lane_keys, provenance
    from qstr_jax.sweeps import monitor

    sweep = sweep_of(CELLS.value)
    cells = sweeps.cells_of(sweep)
    settings = {**SMALL, 'models': 'ffn', 'seq_lens': 2, 'token_dim': 3, 'batch_size': 10, 'max_samples': 2000}
    with tempfile.TemporaryDirectory() as folder:
        rows = sweeps.run(sweeps.Sweep(**settings).without_unused(), folder, sweeps.Options(progress=False))
        curves = results.load_curves(folder)
        record = provenance.load(folder)[0]
    settings_of_cells = [name for name in curves if columns.get(name).role in ('task', 'model', 'learner')]
    rows, curves = rows.drop(columns='cell'), curves.drop(columns=['cell', *settings_of_cells])
    path = results.open_workdir(workdir)
    results.add_sweep(path, sweep.as_json())
    monitor.add_plan(path, cells)
    record['batches'] = []
    for cell in cells:
        own = {name: value for name, value in cell.columns if name in rows.columns or name.startswith(cell.model)}
        mine = rows[[name for name in rows.columns if not name.startswith('ffn_')]].assign(**own)
        files.write_table(results.cell_path(path, 'curves', cell.id), curves, cell.id)
        files.write_table(results.cell_path(path, 'rows', cell.id), mine, cell.id)
        names = [lane_keys.name_of(lane) for lane in cell.lanes]
        record['batches'] += [
            {'cell': cell.id, 'lanes': [name], 'program': mine['program'].iloc[0], 'compile_seconds': 1.0,
             'wall_seconds': 1.0}
            for name in names
        ]  # fmt: skip
    files.write_json(path / 'provenance' / f'{record["id"]}.json', record)


def resume(workdir):
    """The sweep again, with nothing left to run."""
    from qstr_jax import sweeps

    sweeps.run(sweep_of(CELLS.value), workdir, sweeps.Options(progress=False))


def load(workdir):
    assert len(results.load(workdir)) == SEEDS * CELLS.value


def curves(workdir):
    results.load_curves(workdir)


def status(workdir):
    from qstr_jax.sweeps import monitor

    assert set(monitor.status(workdir)['state']) == {'done'}


class Idle:
    """A worker that has nothing to do."""

    def __init__(self, *_):
        pass

    def num_devices(self):
        return 1

    def run(self, device, batch, checkpoint):
        return left(batch)

    def news(self):
        return {}


class Sleeping(Idle):
    """A worker that sleeps instead of training."""

    def run(self, device, batch, checkpoint):
        time.sleep(SLEEP)
        return left(batch)


class Threads:
    """An engine of a thousand workers, a thread each."""

    def __init__(self):
        self._pool = concurrent.futures.ThreadPoolExecutor(WORKERS)

    def start(self):
        return Sleeping()

    def call(self, worker, method, *arguments):
        return self._pool.submit(getattr(worker, method), *arguments)

    def wait(self, calls, timeout):
        return list(concurrent.futures.wait(calls, timeout, concurrent.futures.FIRST_COMPLETED).done)

    def result(self, call):
        return call.result()

    def end(self, worker):
        pass


def left(batch):
    """The files of a batch whose rows lie in the present directory; empty ones for a driver that writes nothing."""
    names = [f'{kind}/{batch.cell}.parquet' for kind in ('curves', 'rows')]
    source = pathlib.Path(os.environ[SOURCE])
    return {'files': {name: (source / name).read_bytes() if TABLES.value else b'' for name in names}, 'lines': []}


class Unwritten(inbox.Inbox):
    """Writes nothing."""

    def write(self, content):
        pass


class Planned:
    """A source of batches that are known at once."""

    def __init__(self, batches):
        self._batches, self._left = batches, len(batches)

    def receive(self, timeout):
        batches, self._batches = self._batches, []
        return batches if self._left else None

    def tell(self, batch, is_good):
        self._left -= 1


def driver(workdir, engine=None, num_workers=WORKERS):
    """Ten thousand lane batches, each of which sends the rows and curves of a cell."""
    os.environ[SOURCE] = os.path.abspath(workdir)
    cells = [path.stem for path in sorted((pathlib.Path(workdir) / 'rows').iterdir())]
    batches = [Batch(cell, 0, f'{cell}-batch0of{SEEDS}', tuple(range(SEEDS)), 1.0) for cell in cells]
    with tempfile.TemporaryDirectory() as folder:
        written = (inbox.Inbox if TABLES.value else Unwritten)(results.open_workdir(folder))
        one = drivers.Driver(
            engine or Threads(), Planned(batches), lambda _: written, num_workers=num_workers, poll_seconds=10.0,
            progress=Progress('lane', False), stop=threading.Event(),
        )  # fmt: skip
        one.run()
        assert one.failed == []
        assert len(list((pathlib.Path(folder) / 'rows').iterdir())) == len(batches) * TABLES.value


def ray(workdir):
    """The same with two workers of Ray that do not sleep: what a batch costs."""
    import ray as library

    from qstr_jax.launchers.ray import Engine
    from qstr_jax.launchers.request import Request

    os.environ[SOURCE] = os.path.abspath(workdir)
    library.init('local', num_cpus=2, log_to_driver=False, runtime_env={'env_vars': {SOURCE: os.environ[SOURCE]}})
    driver(workdir, Engine(Request((), cpus=1), Idle), 2)


def timed(step, workdir):
    """Seconds and peak memory of one step in a process of its own."""
    command = [sys.executable, '-m', 'experiments.benchmarks.scale', f'--cells={CELLS.value}', f'--directory={workdir}']
    if step == 'report':
        command = [sys.executable, '-m', 'experiments.report', f'--workdir={workdir}', f'--output={workdir}-report']
    else:
        command.append(f'--step={step}')
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    seconds = time.perf_counter() - start
    inside = json.loads(done.stdout.splitlines()[-1]) if step != 'report' else {}
    return {'step': step, 'seconds': round(seconds, 1), **inside}


def main(argv):
    del argv
    if STEP.value:
        start, start_cpu = time.perf_counter(), time.process_time()
        globals()[STEP.value](DIRECTORY.value)
        print(json.dumps({
            'inside': round(time.perf_counter() - start, 1), 'cpu': round(time.process_time() - start_cpu, 1),
            'GB': round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
        }))  # fmt: skip
        return
    with tempfile.TemporaryDirectory() as folder:
        workdir = DIRECTORY.value or os.path.join(folder, 'sweep')
        # The first `load` opens every file, the first `resume` makes the copies.
        steps = ['load', 'resume', 'resume', 'load', 'curves', 'status', 'report', 'driver', 'ray']
        if not (pathlib.Path(workdir) / 'config.json').exists():
            steps = ['make', *steps]
        found = [timed(step, workdir) for step in steps]
        print(pd.DataFrame(found).to_markdown(index=False))


if __name__ == '__main__':
    app.run(main)
