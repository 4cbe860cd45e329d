"""Runs a sweep: lane batches on all local devices, results on disk after every batch.

Whatever ends a run (a signal, a kill, a full disk), the same call continues it, and the rows are bit for bit the same.
"""

import functools
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import pandas as pd
from etils import epath

from qstr_jax import progress, signals
from qstr_jax.storage import cell_columns, locks, results
from qstr_jax.sweeps import cells, claims, lane_batches, outputs, session, tuned
from qstr_jax.sweeps.session import Options
from qstr_jax.sweeps.sweep import Sweep

# A sweep that took less time was complete already, so it does not tell how long another takes.
TELLING_SECONDS = 10.0
# The message of a share without cells, as when there are more shares than cells.
NO_CELLS = 'share {} of {} has no cells'
# What runs a sweep and returns the ids of cells that failed.
Call = Callable[[], list[str]]


class SweepError(Exception):
    """Some cells could not be run; the others are complete."""


def run(
    sweep: Sweep, workdir: Any, options: Options | None = None, made_cells: Sequence[cells.Cell] | None = None
) -> pd.DataFrame:
    """Runs the lanes of a sweep that have no rows yet, and returns all rows of the directory.

    A sweep with more seeds, lengths or models adds rows to those of the directory. Several processes may call this on
    one directory at the same time; each returns when all cells of its own share are done.

    Args:
        sweep: the points to run.
        workdir: the results directory; it is made if it does not exist.
        options: how to run it; None uses the defaults.
        made_cells: `cells_of` the sweep, if they are made already.

    Returns:
        The rows, as `results.load` returns them.

    Raises:
        ValueError: a setting is impossible, or JAX is set to float64; nothing has been run then.
        results.ResultsError: the directory cannot be used, or a file in it is damaged.
        Interrupted: SIGTERM or SIGINT; the states of running lanes are saved.
        SweepError: some cells failed; the others are complete.
    """
    return run_all([sweep], workdir, options, None if made_cells is None else [made_cells])


def run_all(
    several: Sequence[Sweep],
    workdir: Any,
    options: Options | None = None,
    made_cells: Sequence[Sequence[cells.Cell]] | None = None,
    until_none_learns: bool = False,
) -> pd.DataFrame:
    """As `run`, for several sweeps of one directory, side by side: each has a device.

    A device that is left over, or whose sweep is done, helps another sweep at its next step; a tuned one has many.

    Args:
        several: the sweeps.
        workdir: the results directory.
        options: how to run them.
        made_cells: `cells_of` each sweep, if they are made already.
        until_none_learns: for tuned sweeps over N alone, the smallest first: leaves out longer prompts of a model
            after an N at which none of its lanes learns.

    Returns:
        The rows, as `run`.

    Raises:
        Exception: as `run`; the first error ends the other sweeps, whose running lanes are saved.
    """
    if not several:
        raise ValueError('several=(): give at least one sweep')
    options = options or Options()
    options.check_devices()
    if jax.config.jax_enable_x64:  # type: ignore[attr-defined]
        raise ValueError('JAX_ENABLE_X64=1: sweeps train in float32; leave it unset')
    is_tuned = any(sweep.tune for sweep in several)
    if until_none_learns and not all(sweep.tune for sweep in several):
        raise ValueError('until_none_learns=True: would be ignored by a sweep that is not tuned')
    if is_tuned and jax.process_count() > 1 and not locks.has_locks(workdir):
        # They would have to wait for each other's rows, but cannot.
        raise ValueError(
            f'workdir={workdir}: has no file locks, which the processes of a tuned sweep need; take a directory that '
            'has them, or run shares (num_shards) into directories of their own and merge them'
        )
    all_cells = [cells.cells_of(sweep) for sweep in several] if made_cells is None else made_cells
    made = [outputs.check_new(sweep, own, workdir) for sweep, own in zip(several, all_cells, strict=True)]
    with signals.stopping() as stop, progress.Progress('lane', options.progress, is_open=is_tuned) as shown:
        sessions = [
            session.Session(sweep, options, stop, shown, one, until_none_learns)
            for sweep, one in zip(several, made, strict=True)
        ]
        calls = [_prepared(one, workdir, options, own) for one, own in zip(sessions, all_cells, strict=True)]
        failed = session.side_by_side(_alone(calls, sessions, shown), stop, at_once=len(sessions[0].workers))
    workdir = epath.Path(workdir)
    session.tidy(workdir, is_tuned)
    if failed:
        folders = f'{workdir / "errors"}' + (f' and {workdir / results.SELECTION / "errors"}' if is_tuned else '')
        raise SweepError(f'{len(failed)} cells failed ({", ".join(failed)}): see {folders}')
    return results.load(workdir)


def _prepared(one: session.Session, workdir: Any, options: Options, all_cells: Sequence[cells.Cell]) -> Call:
    """What runs a sweep and returns the ids of cells that failed; its directory is open."""
    workdir, mine, there = opened(one, workdir, options, all_cells)
    if not mine:
        one.progress.say(NO_CELLS.format(options.shard_index, options.num_shards))
    if there:
        one.progress.say(f'{there:,} of {tuned.num_reported(one.sweep, mine):,} lanes are there already')
    return functools.partial(tuned.run if one.sweep.tune else session.Session.run, one, workdir, mine)


def _alone(calls: Sequence[Call], sessions: Sequence[session.Session], shown: progress.Progress) -> list[Call]:
    """Gives each call a device of its own while it runs, since a second device would compile the same cells again.

    Devices that no call needs are shared.
    """
    devices = range(len(sessions[0].workers))
    free, shared = list(devices[: len(calls)]), set(devices[len(calls) :])
    seconds: list[float] = []  # that each finished call took
    starts: list[float] = []  # when each call began that still runs
    mutex = threading.Lock()

    def alone(call: Call, one: session.Session) -> list[str]:
        one.own, one.shared, start = free.pop(), shared, time.monotonic()
        starts.append(start)
        try:
            failed = call()
        finally:
            with mutex:
                now = time.monotonic()
                starts.remove(start)
                seconds.append(now - start)
                number, running = len(seconds), tuple(starts)
                is_awaited = number <= len(calls) - len(devices)
                (free.append if is_awaited else shared.add)(one.own)
        if number < len(calls):
            longest, waiting = max(seconds), len(calls) - number - len(running)
            left = (longest * waiting + sum(max(0.0, longest - now + begun) for begun in running)) / len(devices)
            # Sweeps that were complete already, or are longer than all before, say nothing.
            about = f', about {progress.duration(left)} left' if left > TELLING_SECONDS else ''
            shown.say(f'{number} of {len(calls)} sweeps are done{about}')
        return failed

    return [functools.partial(alone, call, one) for call, one in zip(calls, sessions, strict=True)]


def share(sweep: Sweep, all_cells: Sequence[cells.Cell], index: int, count: int) -> tuple[cells.Cell, ...]:
    """The cells of one of `count` shares of a sweep; a tuned one keeps those together that build on one another."""
    return (tuned.share if sweep.tune else lane_batches.share)(all_cells, index, count)


def opened(
    one: session.Session, workdir: Any, options: Options, all_cells: Sequence[cells.Cell]
) -> tuple[Any, Sequence[cells.Cell], int]:
    """The open results directory, the cells of this process's share, and how many of their lanes have rows."""
    sweep = one.sweep
    mine = share(sweep, all_cells, options.shard_index, options.num_shards)
    if (epath.Path(workdir) / 'config.json').exists():
        results.make_compact(workdir)
    else:
        _check_tuned_alike(workdir, mine, sweep.tune is not None)
    workdir = one.open(workdir, mine, () if sweep.tune else all_cells, has_probes=True)
    missing = claims.missing_of(workdir, mine, sweep.tune.names if sweep.tune else ())
    return workdir, mine, sum(len(cell.lanes) - len(missing[cell.id]) for cell in mine)


def _check_tuned_alike(workdir: Any, mine: Sequence[cells.Cell], is_tuned: bool) -> None:
    """As `results.check_tuned_alike`, for a directory whose config.json is gone: its rows tell too."""
    lanes = {cell.id: cell.lanes[0]._fields for cell in mine}
    for rows in cell_columns.columns_of_each(workdir, lanes, ('tuned',)).values():
        if any(isinstance(names, str) != is_tuned for names in rows.get('tuned', [None])):
            before = 'not tuned' if is_tuned else 'tuned'
            raise results.ResultsError(
                f'rows in {str(workdir)!r} were {before}, unlike those of this sweep: use another directory'
            )
