"""Progress of long work on standard error: a bar for someone who watches, a line a minute for a log file."""

import math
import operator
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tqdm import auto

# Seconds between two lines of a log.
INTERVAL = 60.0


class Progress:
    """How much of some work is done, and roughly how long the rest takes."""

    def __init__(
        self, unit: str, is_shown: bool = True, clock: Callable[[], float] = time.monotonic, is_open: bool = False
    ) -> None:
        self._unit, self._clock = unit, clock
        self._is_open = is_open
        self._is_log = is_shown and not is_watched()
        self._bar = auto.tqdm(
            total=None if is_open else 0, unit=unit, leave=False, disable=not is_shown or self._is_log
        )
        self._done = self._total = 0
        self._start = self._last_line = clock()

    def __enter__(self) -> 'Progress':
        return self

    def __exit__(self, *error: Any) -> None:
        self._bar.close()

    def expect(self, count: int) -> None:
        """Takes note of more work to do."""
        self._total += count
        if not self._is_open:
            self._bar.total = self._total
            self._bar.refresh()

    def show(self, name: str, detail: str = '', count: int = 0) -> None:
        """Shows that some units are done, or that a long one has moved on."""
        self._done += count
        self._bar.set_description_str(name, refresh=False)
        self._bar.set_postfix_str(detail, refresh=False)
        self._bar.update(count)
        self._bar.refresh()
        if self._is_log and self._clock() - self._last_line >= INTERVAL:
            self._last_line = self._clock()
            print(self._line(name, detail), file=sys.stderr, flush=True)

    def say(self, line: str) -> None:
        """Prints a line that stays, such as one about a finished unit."""
        if self._is_log:
            print(line, file=sys.stderr, flush=True)
        elif not self._bar.disable:
            self._bar.write(line, file=sys.stderr)

    def _line(self, name: str, detail: str) -> str:
        seconds = self._clock() - self._start
        count = f'{self._done}' if self._is_open else f'{self._done} of {self._total}'
        text = f'{name}: {count} {self._unit}s after {auto.tqdm.format_interval(seconds)}'
        if 0 < self._done < self._total and not self._is_open:
            left = seconds / self._done * (self._total - self._done)
            text += f', about {auto.tqdm.format_interval(left)} left'
        return f'{text}; {detail}' if detail else text


def each(items: Iterable, name: str) -> Iterator:
    """The items, with the progress of going through them."""
    with Progress('item') as progress:
        progress.expect(operator.length_hint(items))
        progress.show(name)
        for item in items:
            yield item
            progress.show(name, count=1)


def is_watched() -> bool:
    """Whether a bar can be drawn: standard error is a terminal, or this is a notebook."""
    return sys.stderr.isatty() or any(kind.__module__ == 'tqdm.notebook' for kind in auto.tqdm.__mro__)


def duration(seconds: float) -> str:
    """Seconds in words: '12 s', '3 min', '2.5 h', or '?'."""
    if math.isnan(seconds):
        return '?'
    if seconds < 100:
        return f'{seconds:.0f} s'
    return f'{seconds / 60:.0f} min' if seconds < 6000 else f'{seconds / 3600:.1f} h'
