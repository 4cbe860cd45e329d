"""What starts workers on machines and calls them, as a driver sees it; `ray` has one."""

from collections.abc import Hashable, Sequence
from typing import Any, Protocol


class Lost(Exception):
    """A worker is gone, with its process or its machine."""


class Failed(Exception):
    """A call has failed by itself, and its worker is there; the message is one line."""


class Engine(Protocol):
    """Starts workers on machines, and calls them. Every call returns at once, with a handle that `wait` takes."""

    def start(self) -> Any:
        """A new worker, which need not be there yet."""

    def call(self, worker: Any, method: str, *arguments: Any) -> Hashable:
        """Calls 'num_devices', 'run', 'news' or 'stop' of a worker, as `batch_worker.BatchWorker` has them."""

    def wait(self, calls: Sequence[Hashable], timeout: float) -> Sequence[Hashable]:
        """Those calls that have ended, as soon as there is one."""

    def result(self, call: Hashable) -> Any:
        """What a call returned; raises `Failed` or `Lost`."""

    def end(self, worker: Any) -> None:
        """Makes sure that a worker is gone."""
