"""Wall clock and memory of things that run side by side: rounds in turn, medians, peaks."""

import contextlib
import gc
import pathlib
import statistics
import tempfile
import time
from typing import NamedTuple

import jax
from jax.experimental.compilation_cache import compilation_cache


class Time(NamedTuple):
    """Seconds of one unit of work: median over the rounds, smallest and largest."""

    median: float
    low: float
    high: float


def of(times):
    """The `Time` of the rounds of one thing."""
    return Time(statistics.median(times), min(times), max(times))


def seconds_of(run, count):
    """Seconds that `run(count)` takes; it must not return before the work is done."""
    start = time.perf_counter()
    run(count)
    return time.perf_counter() - start


def calibrate(run, seconds, least=1):
    """How many units, at least `least`, make a call of about `seconds`; the first call may compile, so not counted."""
    run(1)
    count = least
    while True:
        taken = seconds_of(run, count)
        if taken > seconds / 4 or count >= 2**20:
            return max(least, round(count * seconds / taken))
        count *= 4


def alternate(runs, rounds, seconds, least=1):
    """Times several things in turn, so that a slow spell of the machine meets all of them.

    Args:
        runs: name → function of a count of units.
        rounds: how often each is timed.
        seconds: about how long one timed call takes.
        least: units of a call at least.

    Returns:
        name → `Time` of one unit.
    """
    counts = {name: calibrate(run, seconds, least) for name, run in runs.items()}
    taken = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            taken[name].append(seconds_of(run, counts[name]) / counts[name])
    return {name: of(times) for name, times in taken.items()}


@contextlib.contextmanager
def fresh_cache():
    """An empty cache of programs, as a user's first sweep finds it."""
    before = jax.config.jax_compilation_cache_dir, jax.config.jax_persistent_cache_min_compile_time_secs
    with tempfile.TemporaryDirectory() as folder:
        _use_cache(folder, 0.0)
        try:
            yield
        finally:
            _use_cache(*before)


def _use_cache(folder, least_seconds):
    jax.config.update('jax_compilation_cache_dir', folder)
    jax.config.update('jax_persistent_cache_min_compile_time_secs', least_seconds)
    compilation_cache.reset_cache()  # or JAX goes on with the folder that it saw first


def peak_bytes(run):
    """Bytes by which `run()` raises this process's resident memory at its peak; None where Linux does not tell."""
    status = pathlib.Path('/proc/self/status')
    try:
        gc.collect()
        pathlib.Path('/proc/self/clear_refs').write_text('5')  # resets the peak
        before = _kibibytes(status.read_text(), 'VmRSS')
        run()
        return 1024 * max(0, _kibibytes(status.read_text(), 'VmHWM') - before)
    except OSError:
        run()
        return None


def _kibibytes(status, field):
    lines = dict(line.split(':', 1) for line in status.splitlines())
    return int(lines[field].split()[0])
