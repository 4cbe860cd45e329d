"""Hands lane batches to workers, and writes what they send to the results directory. It imports neither Ray nor JAX."""

import collections
import functools
import json
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple, Protocol

from qstr_jax.launchers.batch_queue import Batch, BatchQueue
from qstr_jax.launchers.inbox import Inbox
from qstr_jax.launchers.planner import Planner
from qstr_jax.progress import Progress, duration
from qstr_jax.storage.files import ResultsError

# New batches wait at most this long while the driver waits for workers.
WAIT_SECONDS = 0.2
# A worker that has not told its news for so long counts as dead. It tells them from a thread of its own, so no long
# compilation or step keeps it from doing so. One that has not started may still wait for a machine.
SILENT_SECONDS = 600.0
# A batch has failed when its worker died this often without a new checkpoint in between.
DEATHS = 3


class Lost(Exception):
    """A worker is gone, with its process or its machine."""


class Failed(Exception):
    """A call has failed, but its worker is still there; the message is one line."""


class Engine(Protocol):
    """Starts workers on machines, and calls them. Every call returns at once, with a handle that `wait` takes."""

    def start(self) -> Any:
        """A new worker, which need not be there yet."""

    def call(self, worker: Any, method: str, *arguments: Any) -> Hashable:
        """Calls 'num_devices', 'run', 'news' or 'stop' of a worker, as `batch_worker.BatchWorker` has them."""

    def wait(self, calls: Sequence[Hashable], timeout: float) -> Sequence[Hashable]:
        """The calls that have ended, as soon as there is one."""

    def result(self, call: Hashable) -> Any:
        """What a call returned; raises `Failed` or `Lost`."""

    def end(self, worker: Any) -> None:
        """Makes sure that a worker is gone."""


class _Call(NamedTuple):
    worker: int
    method: str
    device: int
    start: float


class Driver:
    """One run of the batches that are left of a sweep, on at most `num_workers` workers."""

    def __init__(
        self,
        engine: Engine,
        source: Planner,  # tells which batches there are
        inbox: Callable[[str], Inbox],  # makes the one writer of a folder of the results directory
        *,
        num_workers: int,
        poll_seconds: float,  # between two questions for checkpoints
        progress: Progress,
        stop: threading.Event,
    ) -> None:
        self._engine, self._source, self._progress = engine, source, progress
        self._inbox, self._queue, self._is_open = functools.cache(inbox), BatchQueue(), True
        self._num_workers, self._poll_seconds = num_workers, poll_seconds
        self._workers: dict[int, Any] = {}
        self._next_worker = 0
        self._calls: dict[Hashable, _Call] = {}
        self._running: dict[tuple[int, int], Batch] = {}  # by worker and device
        self._idle: list[tuple[int, int]] = []
        self._beats: dict[tuple[int, int], set[tuple[str, str]]] = collections.defaultdict(set)  # of heartbeats
        self._deaths: collections.Counter[str] = collections.Counter()
        self._stillborn, self._unborn = 0, set[int]()  # workers that died before they started; those said to be late
        self._stop, self._is_stopping = stop, False
        self.failed: list[str] = []

    def run(self) -> None:
        """Runs all batches; `failed` has a line for each that could not be run."""
        try:
            last_poll = time.monotonic()
            while self._running or (not self._stop.is_set() and (self._is_open or len(self._queue))):
                self._take()
                self._assign()
                if self._stop.is_set() and not self._is_stopping:
                    self._is_stopping = True
                    for number in self._workers:
                        self._call(number, 'stop')
                calls, seconds = list(self._calls), min(self._poll_seconds, WAIT_SECONDS)
                for call in self._engine.wait(calls, seconds) if calls else ():
                    if call in self._calls:  # it is no longer there if its worker was found to be gone
                        self._end_call(call)
                if time.monotonic() - last_poll >= self._poll_seconds:
                    last_poll = time.monotonic()
                    self._poll()
        finally:
            for worker in self._workers.values():
                self._engine.end(worker)
            for slot in list(self._beats):
                self._forget_beats(slot)

    def _take(self) -> None:
        """Takes new batches, and starts workers for them."""
        if not self._is_open or self._stop.is_set():
            return
        batches = self._source.receive(0.0 if self._calls else WAIT_SECONDS)
        self._is_open = batches is not None
        self._queue.add(batches or ())
        for _ in range(len(self._workers), min(self._num_workers, len(self._running) + len(self._queue))):
            self._start()

    def _start(self) -> None:
        number, self._next_worker = self._next_worker, self._next_worker + 1
        self._workers[number] = self._engine.start()
        self._call(number, 'num_devices')

    def _call(self, number: int, method: str, *arguments: Any, device: int = 0) -> None:
        call = self._engine.call(self._workers[number], method, *arguments)
        self._calls[call] = _Call(number, method, device, time.monotonic())

    def _assign(self) -> None:
        """Gives batches to idle devices, first to those that have compiled their cells."""
        self._idle.sort(key=self._queue.has_of)
        while self._idle and not self._stop.is_set() and len(self._queue):
            number, device = slot = self._idle.pop()
            batch = self._queue.take(slot)
            assert batch is not None
            self._running[slot] = batch
            checkpoint = self._inbox(batch.folder).checkpoint(batch.name)
            self._call(number, 'run', device, batch, checkpoint, device=device)

    def _poll(self) -> None:
        """Asks workers for their checkpoints, unless they have not answered yet; one that never does is gone."""
        for call in self._calls.values():
            is_late = call.method == 'num_devices' and time.monotonic() - call.start > SILENT_SECONDS
            if is_late and call.worker not in self._unborn:
                self._unborn.add(call.worker)
                since = f'worker {call.worker} has not started for {duration(SILENT_SECONDS)}'
                self._progress.say(f'{since}: it waits for a machine, or hangs; look at its state and its logs')
        asked = {call.worker: key for key, call in self._calls.items() if call.method == 'news'}
        for number in {number for number, _ in self._running} - asked.keys():
            self._call(number, 'news')
        for number, key in asked.items():
            is_late = time.monotonic() - self._calls[key].start > SILENT_SECONDS
            if is_late and not self._engine.wait([key], 0.0):  # it may have answered while this process was stopped
                self._replace(number, f'has not answered for {duration(SILENT_SECONDS)}')

    def _end_call(self, key: Hashable) -> None:
        call = self._calls.pop(key)
        slot = call.worker, call.device
        try:
            result = self._engine.result(key)
        except Lost:
            self._stillborn += call.method == 'num_devices'
            if self._stillborn > DEATHS * self._num_workers:
                raise Failed('workers die before they have started: look in their logs') from None
            self._replace(call.worker)
            return
        except Failed as error:
            if call.method != 'run':
                raise
            self._fail(self._running.pop(slot), str(error))
            self._idle.append(slot)
            return
        if call.method == 'num_devices':
            self._stillborn = 0
            self._idle += [(call.worker, device) for device in range(result)]
        elif call.method == 'news':
            for device, (name, files) in result.items():
                batch = self._running.get((call.worker, device))
                if batch is not None and batch.name == name:
                    self._receive((call.worker, device), batch, files)
        elif call.method == 'run':
            self._finish(slot, result)

    def _receive(self, slot: tuple[int, int], batch: Batch, files: dict[str, bytes]) -> None:
        """Writes a running batch's checkpoint and heartbeat."""
        self._inbox(batch.folder).write(files)
        self._beats[slot] |= {(batch.folder, name) for name in files if name.startswith('progress/')}
        if any(name.startswith('checkpoints/') for name in files):
            self._deaths[batch.name] = 0

    def _finish(self, slot: tuple[int, int], result: dict[str, Any]) -> None:
        """Writes what a batch left."""
        batch, files = self._running.pop(slot), result['files']
        self._forget_beats(slot)
        self._idle.append(slot)
        try:
            self._inbox(batch.folder).write(files)
        except ResultsError as error:  # the files of this cell cannot be written
            self._fail(batch, str(error))
            return
        if record := files.get(f'errors/{batch.cell}.json'):
            self._fail(batch, json.loads(record)['error'])
            return
        for line in result['lines']:
            self._progress.say(line)
        if f'rows/{batch.cell}.parquet' in files and not any(name.startswith('checkpoints/') for name in files):
            self._inbox(batch.folder).end(batch.name)
            del self._deaths[batch.name]
            self._source.tell(batch, True)
            self._progress.show(batch.cell.rsplit('-', 1)[0], f'{len(self._running)} running', len(batch.lanes))

    def _fail(self, batch: Batch, reason: str) -> None:
        self.failed.append(f'{batch.name}: {reason}')
        self._progress.say(self.failed[-1])
        self._source.tell(batch, False)

    def _replace(self, number: int, why: str = 'is gone') -> None:
        """A worker is gone: its batches are given to others, and a new one is started."""
        self._engine.end(self._workers.pop(number))
        self._calls = {key: call for key, call in self._calls.items() if call.worker != number}
        self._idle = [slot for slot in self._idle if slot[0] != number]
        for slot in [slot for slot in self._running if slot[0] == number]:
            batch = self._running.pop(slot)
            self._forget_beats(slot)
            self._deaths[batch.name] += 1
            if self._deaths[batch.name] >= DEATHS:
                self._fail(batch, f'its worker died {DEATHS} times')
            else:
                self._progress.say(f'{batch.name}: its worker {why}, another goes on')
                self._queue.put_back(batch)
        if not self._stop.is_set():
            self._start()

    def _forget_beats(self, slot: tuple[int, int]) -> None:
        for folder, name in self._beats.pop(slot, ()):
            self._inbox(folder).remove(name)
