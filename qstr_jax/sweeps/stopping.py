"""SIGTERM and SIGINT as an event, so that a run ends between two calls of the device with its lanes saved."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Any


class Interrupted(Exception):
    """A signal ended the run; the states of running lanes are saved.

    Args:
        signal_number: number of the signal, kept as an attribute.
    """

    def __init__(self, signal_number: int) -> None:
        self.signal_number = signal_number
        name = signal.Signals(signal_number).name
        super().__init__(f'{name}: the running lanes are saved; the same command continues them')


class Stop(threading.Event):
    """An event that knows which signal set it."""

    signal_number: int | None = None


@contextlib.contextmanager
def stopping() -> Iterator[Stop]:
    """Yields an event that SIGTERM and SIGINT set; a second signal ends the process in the usual way."""
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop  # only the main thread may handle signals
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def handle(number: int, frame: Any) -> None:
        stop.signal_number = number
        stop.set()
        restore()

    for number in before:
        signal.signal(number, handle)
    try:
        yield stop
    finally:
        restore()
