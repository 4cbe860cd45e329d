"""The process that knows which lane batches there are, from the side of a driver without JAX: see `plan`."""

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Any

from tqdm import auto

from qstr_jax.launchers.batch_queue import Batch


class Planner:
    """Starts the process; a wrong setting, or a dry run, ends this one with its exit code."""

    def __init__(self, arguments: Sequence[str], platform: str) -> None:
        context = multiprocessing.get_context('spawn')
        self._pipe, theirs = context.Pipe()
        # A daemon ends with this process.
        self._process = context.Process(target=_plan, args=(theirs, arguments, platform), daemon=True)
        self._process.start()
        theirs.close()
        self.about: dict[str, Any] = self._next()

    def _next(self) -> Any:
        try:
            return self._pipe.recv()
        except (EOFError, ConnectionResetError):  # ConnectionResetError if it left a message unread
            self.finish()
            sys.exit(0)

    def receive(self, timeout: float) -> list[Batch] | None:
        """New batches; an empty list if none came within `timeout` seconds; None if there will be no more."""
        return self._next() if self._pipe.poll(timeout) else []

    def tell(self, batch: Batch, is_good: bool) -> None:
        """Tells the process that a batch is done, or has failed."""
        with contextlib.suppress(BrokenPipeError):  # The process has ended, as `receive` will find.
            self._pipe.send((batch.name, is_good))

    def finish(self) -> None:
        """Waits until the process has drawn what there is."""
        self._process.join()
        if self._process.exitcode:
            sys.exit(self._process.exitcode)


def _plan(pipe: Connection, arguments: Sequence[str], platform: str) -> None:
    """What the process does, on the CPU; Ctrl-C is for the driver, whose end it notices."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    auto.tqdm.set_lock(threading.RLock())  # tqdm's own lock is a semaphore; Python warns of it when a process is ended.
    os.environ['JAX_PLATFORMS'] = 'cpu'
    sys.argv = ['experiments.launch', *arguments]
    from qstr_jax.launchers import plan

    plan.main(pipe, platform)
