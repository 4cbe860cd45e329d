"""The listing of a dry run: what a sweep would run."""

import math
import sys
from collections.abc import Sequence
from typing import Any

from etils import epath

from qstr_jax.progress import duration
from qstr_jax.storage import provenance
from qstr_jax.sweeps import claims, cost, outputs, pace, stale, tuned
from qstr_jax.sweeps.cells import Cell
from qstr_jax.sweeps.sweep import Sweep


def summary(cells: Sequence[Cell]) -> str:
    """How much work a sweep is at most, without tracing a program."""
    num_lanes = sum(len(cell.lanes) for cell in cells)
    examples = sum(len(cell.lanes) * cell.problem.learner.most_examples() for cell in cells)
    return f'{len(cells):,} cells, {num_lanes:,} lanes, at most {examples:,} prompts to train on, with repetition'


def describe(sweep: Sweep, cells: Sequence[Cell], workdir: Any = None) -> str:
    """One line per cell of a sweep: lanes, parameters, the most operations of a lane, and the time that is left."""
    outputs.check(cells, outputs.probes_of(sweep))
    folder = None if workdir is None or not (epath.Path(workdir) / 'plan.json').exists() else epath.Path(workdir)
    names = sweep.tune.names if sweep.tune else ()
    missing = {cell.id: cell.lanes for cell in cells} if folder is None else claims.missing_of(folder, cells, names)
    left = [len(missing[cell.id]) for cell in cells]
    there = [len(cell.lanes) - number for cell, number in zip(cells, left, strict=True)]
    paces = pace.paces([cell for cell in cells if missing[cell.id]], folder)
    nothing = pace.Pace(0.0, True)
    each = [paces.get(cell.id, nothing) for cell in cells]
    times = [one._replace(seconds=one.seconds * number) for one, number in zip(each, left, strict=True)]
    lines = _table(cells, there, times)
    flops = sum(len(cell.lanes) * cost.budget_flops(cell.problem) for cell in cells)
    num_lanes, num_reported = sum(len(cell.lanes) for cell in cells), tuned.num_reported(sweep, cells)
    lines.append(
        f'{len(cells)} cells, {num_lanes} lanes, at most {flops / 1e12:,.0f} TFLOP of '
        f'training (a lane stops when it reaches its goal)'
    )
    if folder is not None:
        lines.append(f'{sum(there):,} of {num_reported:,} lanes are there already')
        if text := stale.text(folder, cells, provenance.start(sys.argv)):
            lines.append(f'a run would stop: {text}')
    if sum(there) < num_reported:
        lines.append(_total(times))
    if sweep.tune:
        tuned_names, seeds = ' and '.join(names), sweep.tune.num_seeds
        lines.append(f'{tuned_names} tuned at each point on {seeds} selection seeds, whose lanes come on top')
    return '\n'.join(lines)


def _table(cells: Sequence[Cell], there: Sequence[int], times: Sequence[pace.Pace]) -> list[str]:
    width = max(40, *(len(cell.id) for cell in cells))
    counts = f'{"lanes":>5s} {"there":>5s} {"parameters":>10s}'
    lines = [f'{"cell":{width}s} {counts} {"TFLOP per lane at budget":>25s} {"time":>10s}']
    for cell, known, time in zip(cells, there, times, strict=True):
        lines.append(
            f'{cell.id:{width}s} {len(cell.lanes):5d} {known:5d} {cost.num_parameters(cell.problem):10,d} '
            f'{cost.budget_flops(cell.problem) / 1e12:25.3g} {_text(time):>10s}'
        )
    return lines


def _text(time: pace.Pace) -> str:
    """'about 12 s' as lanes took before, '≤ 3 min' for whole budgets, '?', or nothing where nothing is left."""
    if not time.seconds or math.isnan(time.seconds):
        return '?' if time.seconds else ''
    return f'{"about" if time.is_measured else "≤"} {duration(time.seconds)}'


def _total(times: Sequence[pace.Pace]) -> str:
    """How long all lanes that are left take here; unknown times are left out, and the text says so."""
    measured = sum(time.seconds for time in times if time.is_measured)
    bounds = [time.seconds for time in times if not time.is_measured]
    parts = [f'about {duration(measured)} at the pace of lanes that are there'] if measured else []
    known = [seconds for seconds in bounds if not math.isnan(seconds)]
    if known:
        parts.append(f'at most {duration(sum(known))}' + (' for cells without any' if measured else ''))
    if len(known) < len(bounds):
        parts.append(f'unknown for {len(bounds) - len(known)} cells')
    text = f'time on this machine: {", ".join(parts)}'
    how = '\n(at most: each lane uses its whole budget; an estimate from timed training steps, without compiling)'
    return text + how if known else text
