"""A worker's process: it runs the lane batches that a driver hands to it, in folders of its own, and hands back files.

Files are dicts from paths in a results directory to bytes. Of the modules that launch by a driver, only this and the
plan import JAX; whoever imports it has set the environment.
"""

import contextlib
import dataclasses
import pathlib
import shutil
import sys
import tempfile
import threading
import types
from collections.abc import Sequence
from typing import Any

import jax

from qstr_jax import signals, sweeps
from qstr_jax.cli import base, command_line, runtime, sample_complexity
from qstr_jax.launchers.batch_queue import Batch
from qstr_jax.progress import Progress
from qstr_jax.storage import results
from qstr_jax.sweeps import lane_batches, outputs, session

Files = dict[str, bytes]
# What a batch leaves.
LEFT = ('errors', 'params', 'curves', 'rows', 'checkpoints')


class _Lines(Progress):
    """Keeps the lines about finished units for the driver, who shows how far the run is."""

    def __init__(self) -> None:
        super().__init__('lane', is_shown=False)
        self.said: list[str] = []

    def say(self, line: str) -> None:
        self.said.append(line)


class BatchWorker:
    """Runs lane batches, one on each device at a time."""

    def __init__(self, arguments: Sequence[str], promised: str, num_devices: int) -> None:
        sys.argv = ['experiments.sample_complexity', *arguments]  # what provenance records
        command_line.parse(sys.argv)
        if promised == 'cpu':
            jax.config.update('jax_num_cpu_devices', num_devices)
        runtime.start()
        found = jax.local_devices()
        if (found[0].platform, len(found)) != (promised, num_devices):
            raise RuntimeError(f'promised {num_devices} × {promised}, but JAX found {len(found)} × {found[0].platform}')
        sweep = base.to_sweep(sample_complexity.CONFIG.value)
        cells = sweeps.cells_of(sweep)
        self._cells = {cell.id: cell for cell in cells}
        self._stop = signals.Stop()
        made = outputs.check(cells, outputs.probes_of(sweep)) if sweep.probes else {}
        self._session = session.Session(sweep, runtime.options(), self._stop, _Lines(), made)
        self._scratch = tempfile.TemporaryDirectory(prefix='qstr_jax_worker_')
        folders = [pathlib.Path(self._scratch.name, str(i)) for i in range(len(self._session.workers))]
        kinds = ('', results.SELECTION) if sweep.tune else ('',)
        # By device and folder of the results directory.
        self._workdirs: list[dict[str, Any]] = [
            {kind: self._session.open(folder / kind, [], is_alone=True) for kind in kinds} for folder in folders
        ]
        self._saved: list[tuple[Batch | None, Files]] = [(None, {}) for _ in self._workdirs]  # by device
        self._mutex = threading.Lock()

    @property
    def num_devices(self) -> int:
        """How many batches it runs at a time."""
        return len(self._workdirs)

    def run(self, device: int, batch: Batch, checkpoint: Files) -> dict[str, Any]:
        """Runs a batch to its end, or until `stop`."""
        workdir, lines = self._workdirs[device][batch.folder], _Lines()
        self._keep(device, batch, {})
        for kind in LEFT:
            shutil.rmtree(workdir / kind, ignore_errors=True)
            (workdir / kind).mkdir()
        for name, content in checkpoint.items():
            (workdir / name).parent.mkdir(parents=True, exist_ok=True)
            (workdir / name).write_bytes(content)
        job = self._session.job(
            workdir,
            self._given(batch),
            lambda cell: batch.size,
            extra_columns=dict(batch.columns),
            saved=lambda folder: self._keep(device, batch, _files(workdir, folder)),
        )
        self._session.workers[device].work(dataclasses.replace(job, progress=lines))
        if not self._stop.is_set():  # It is over, so a checkpoint that is left is of other lanes or another size.
            shutil.rmtree(workdir / 'checkpoints')
        self._keep(device, None, {})
        # Provenance first and rows last: a row has its record, and is the sign that its lane is complete.
        folders = [workdir / 'provenance', *(workdir / kind for kind in LEFT)]
        return {'files': {k: v for folder in folders for k, v in _files(workdir, folder).items()}, 'lines': lines.said}

    def _given(self, batch: Batch) -> Any:
        """Stands in for claims: it hands out one batch, which the driver gave."""
        if batch.cell not in self._cells:
            raise RuntimeError(f'{batch.cell} is no cell for a worker: it must have the code of the driver')
        cell = self._cells[batch.cell]
        lanes = tuple(map(cell.lanes[0]._make, batch.values))
        whole = lane_batches.LaneBatch(cell=cell, lanes=lanes, number=batch.number)
        left = iter([(whole, tuple(lanes[i] for i in batch.lanes)), None])
        return types.SimpleNamespace(claim=lambda: contextlib.nullcontext(next(left)))

    def _keep(self, device: int, batch: Batch | None, files: Files) -> None:
        with self._mutex:
            self._saved[device] = batch, files

    def news(self) -> dict[int, tuple[str, Files]]:
        """The batch that each device is at, its new checkpoint and heartbeat."""
        with self._mutex:
            saved = list(self._saved)
            self._saved = [(batch, {}) for batch, _ in saved]
        found = {}
        for device, (batch, files) in enumerate(saved):
            if batch is not None:
                workdir = self._workdirs[device][batch.folder]
                found[device] = batch.name, {**files, **_files(workdir, workdir / 'progress')}
        return found

    def stop(self) -> None:
        """Makes all batches save their states and return."""
        self._stop.set()


def _files(workdir: pathlib.Path, folder: pathlib.Path) -> Files:
    """All files in a folder, in sorted order; one that is being written is left out."""
    found = {}
    for path in sorted(pathlib.Path(folder).rglob('*')):
        with contextlib.suppress(FileNotFoundError):  # a heartbeat was removed meanwhile
            if path.is_file() and not path.name.endswith('.tmp'):
                found[path.relative_to(workdir).as_posix()] = path.read_bytes()
    return found
