"""The signals that end a run. Without JAX, since a process that only hands out work must not take a device."""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any


class Stop(threading.Event):
    """An event that knows which signal set it."""

    signal_number: int | None = None


@contextlib.contextmanager
def stopping() -> Iterator[Stop]:
    """Yields an event that SIGTERM and SIGINT set; a second signal ends the process at once.

    In a session that a person types into, such as a notebook's, it does what it did before: the process is theirs.
    """
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
        if hasattr(sys, 'ps1'):  # the prompt
            restore()
        else:
            for one in before:
                signal.signal(one, _end)
        os.write(2, b'stopping: running lanes are saved after this call to the device; once more stops at once\n')

    for number in before:
        signal.signal(number, handle)
    try:
        yield stop
    finally:
        restore()


def _end(number: int, frame: Any) -> None:
    """Ends the process, which an exception could not while a thread waits for the device; files appear whole."""
    os.write(2, b'stopped at once\n')
    os._exit(128 + number)
