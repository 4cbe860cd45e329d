"""Runs a sweep: cells × lanes, a lane batch at a time, results on disk after every batch."""

import dataclasses
import functools
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from orbax.checkpoint import v1 as ocp
from tqdm import auto as tqdm

from qstr_jax import probes, results, tasks
from qstr_jax.learners import online
from qstr_jax.sweeps import grid, provenance, settings, work

# A call of `advance` should take this long: short enough for a live bar, long enough to hide the host.
SECONDS_PER_CALL = 2.0
# Recurrent lanes from this width on fill the cores by themselves: joining them on a CPU only costs memory.
WIDE = 256
# Columns of the cell that its curves repeat.
CURVE_COLUMNS = ('model', 'task', 'seq_len', 'sparsity', 'threshold')


@dataclasses.dataclass
class Timing:
    """Seconds spent on one lane batch."""

    compile_seconds: float = 0.0
    wall_seconds: float = 0.0


def default_lanes_per_batch(module, num_lanes, platform):
    """How many lanes one program vectorises: 1 for wide recurrent cells on a CPU, else up to 8 (CPU) or 64."""
    if platform != 'cpu':
        return min(num_lanes, 64)
    if hasattr(module, 'cell') and module.width >= WIDE:
        return 1
    return min(num_lanes, 8)


def run(sweep, workdir, progress=True):
    """Runs what is missing of a sweep and returns all rows of the directory.

    Cells and lanes that the directory holds already are not run again; more seeds, lengths or models add to
    it. Each lane batch is on disk as soon as it is finished.

    Args:
        sweep: `settings.Settings`.
        workdir: directory of the results, made if it does not exist.
        progress: whether to show a bar on standard error.

    Returns:
        DataFrame as of `results.load`.

    Raises:
        ValueError: a setting is impossible (before anything is run).
        results.ResultsError: the directory is unusable, holds other settings, or a file in it is damaged.
    """
    cells, lanes = grid.cells(sweep), grid.lanes(sweep)
    probe_functions = tuple(probes.get(name) for name in sweep.probes)
    workdir = results.open_workdir(workdir)
    axes = settings.AXES + settings.HARMLESS
    results.settle_config(workdir, sweep.as_json(), axes)
    todo = [(cell, _missing(workdir, cell, lanes)) for cell in cells]
    record = provenance.start(sys.argv)
    with tqdm.tqdm(
        total=sum(len(missing) for _, missing in todo), unit='lane', disable=not progress
    ) as bar:
        for cell, missing in todo:
            _run_cell(cell, missing, len(lanes), sweep, probe_functions, workdir, bar, record)
    return results.load(workdir)


def _missing(workdir, cell, lanes):
    """Lanes of a cell that have no row yet."""
    path = results.cell_path(workdir, 'rows', cell.id)
    if not path.exists():
        return lanes
    rows = results.read_table(path)
    done = set(rows[list(results.LANE_COLUMNS)].itertuples(index=False, name=None))
    return tuple(lane for lane in lanes if tuple(lane) not in done)


def _run_cell(cell, lanes, num_lanes, sweep, probe_functions, workdir, bar, record):
    size = sweep.lanes_per_batch or default_lanes_per_batch(
        cell.problem.module, num_lanes, jax.default_backend()
    )
    for start in range(0, len(lanes), size):
        batch = lanes[start : start + size]
        timing = Timing()
        data, state = train(cell, batch, size, timing, bar)
        frames = tabulate(cell, batch, data, state, size, probe_functions)
        if sweep.save_params:
            _save_params(workdir, cell, batch, state)
        # Curves first: a row is the sign that its lane is complete.
        results.add(workdir, 'curves', cell.id, frames[1], (*results.LANE_COLUMNS, 'samples'))
        results.add(workdir, 'rows', cell.id, frames[0], results.LANE_COLUMNS)
        provenance.add_batch(workdir, record, cell.id, batch, timing)
        if not bar.disable:
            bar.write(_summary(cell, frames[0], timing), file=sys.stderr)


@functools.lru_cache(maxsize=1)
def _compiled(problem, size):
    """The two programs of a cell for `size` lanes, and the seconds that compiling them took."""
    start = time.perf_counter()
    lanes_K = _stack([online.Lane(0, 0, 1e-3, 0.0)] * size)
    init = online.init.lower(lanes_K, problem).compile()
    data_K, state_K = jax.eval_shape(functools.partial(online.init, problem=problem), lanes_K)
    advance = online.advance.lower(state_K, data_K, lanes_K, jnp.int32(1), problem).compile()
    return init, advance, time.perf_counter() - start


def _stack(lanes):
    seeds, task_seeds, rates, decays = zip(*lanes, strict=True)
    integers = [jnp.array(values, jnp.int32) for values in (seeds, task_seeds)]
    return online.Lane(*integers, *(jnp.array(values, jnp.float32) for values in (rates, decays)))


def train(cell, lanes, size, timing, bar=None):
    """Trains one lane batch to its end and returns `(Data, State)`, still with `size` lanes.

    A batch with fewer lanes is filled up with copies of its last one that never start, so that every batch of
    a cell runs the same program.
    """
    hits = _compiled.cache_info().hits
    init, advance, compile_seconds = _compiled(cell.problem, size)
    if _compiled.cache_info().hits == hits:
        timing.compile_seconds = compile_seconds
    start = time.perf_counter()
    lanes_K = _stack([*lanes, *[lanes[-1]] * (size - len(lanes))])
    data_K, state_K = init(lanes_K)
    tasks.check_draw(data_K.task_draw.encodings.complete, cell.problem.task)
    is_filler_K = jnp.arange(size) >= len(lanes)
    outcome_K = jnp.where(is_filler_K, online.CENSORED, state_K.outcome)
    state_K = state_K._replace(outcome=outcome_K)
    num_checks, finished = 1, 0
    while True:
        call_start = time.perf_counter()
        state_K = advance(state_K, data_K, lanes_K, jnp.int32(num_checks))
        outcome_K = np.asarray(state_K.outcome)[: len(lanes)]
        seconds = time.perf_counter() - call_start
        running = int(np.sum(outcome_K == online.RUNNING))
        if bar is not None:
            bar.set_description_str(cell.id.rsplit('-', 1)[0], refresh=False)
            bar.set_postfix_str(_postfix(cell, state_K, running), refresh=False)
            bar.update(len(lanes) - running - finished)
            bar.refresh()
            finished = len(lanes) - running
        if not running:
            timing.wall_seconds = time.perf_counter() - start
            return data_K, state_K
        # Small factors: the first calls are slower than the rest.
        factor = np.clip(SECONDS_PER_CALL / max(seconds, 1e-6), 0.25, 4.0)
        num_checks = int(np.clip(num_checks * factor, 1, cell.problem.learner.max_checks))


def _summary(cell, rows, timing):
    """A finished batch in a line."""
    outcomes = ', '.join(f'{count} {name}' for name, count in rows['outcome'].value_counts().items())
    samples = rows['samples_to_threshold'].mean()
    mean = '' if pd.isna(samples) else f', mean {samples / 1e3:.1f}k samples'
    seconds = f'{timing.wall_seconds:.1f} s + {timing.compile_seconds:.1f} s to compile'
    return f'{cell.id}: {outcomes}{mean} ({seconds})'


def _postfix(cell, state_K, running):
    """Where the furthest lane is: its samples and the training loss of its last window."""
    checks_K = np.asarray(state_K.checks)
    lane = int(np.argmax(checks_K))
    loss = float(state_K.curves.train_C[lane, checks_K[lane] - 1])
    samples = checks_K[lane] * cell.problem.learner.samples_per_check
    return f'{running} running, {samples / 1e3:.1f}k samples, train loss {loss:.3f}'


def tabulate(cell, lanes, data_K, state_K, size, probe_functions=()):
    """Rows and curves of a finished lane batch, as two DataFrames."""
    columns = online.report(state_K, cell.problem)

    def describe(params, task_draw):
        described = probes.encoding_columns(task_draw)
        for probe in probe_functions:
            described |= probe(params, task_draw, cell.problem)
        return described

    described = jax.device_get(jax.jit(jax.vmap(describe))(state_K.params, data_K.task_draw))
    lane_columns = dict(zip(results.LANE_COLUMNS, zip(*lanes, strict=True), strict=True))
    rows = pd.DataFrame(
        {
            **dict(cell.columns),
            **lane_columns,
            **{name: values[: len(lanes)] for name, values in columns.items()},
            'num_parameters': work.num_parameters(cell.problem),
            **{name: values[: len(lanes)] for name, values in described.items()},
            'lanes_per_batch': size,
        }
    )
    rows['samples_to_threshold'] = rows['samples_to_threshold'].astype('Int64')
    return rows, _curves(cell, lanes, state_K)


def _curves(cell, lanes, state_K):
    """One line per lane and check."""
    constant = {name: dict(cell.columns)[name] for name in CURVE_COLUMNS}
    curves_K = online.report_curves(state_K, cell.problem)
    frames = [
        pd.DataFrame({**constant, **lane._asdict(), **curve})
        for lane, curve in zip(lanes, curves_K, strict=False)
    ]
    return pd.concat(frames, ignore_index=True)


def _save_params(workdir, cell, lanes, state_K):
    for k, lane in enumerate(lanes):
        params = jax.tree.map(lambda leaf, k=k: leaf[k], state_K.params)
        path = (workdir / 'params' / cell.id / results.lane_name(lane)).resolve()
        ocp.save_pytree(path, params, overwrite=True)


def load_params(workdir, cell, lane):
    """Trained parameters of one lane, saved with `save_params`; feed them to `models.predict`.

    Raises:
        results.ResultsError: there are none.
    """
    path = results.epath.Path(workdir) / 'params' / cell.id / results.lane_name(lane)
    if not path.exists():
        raise results.ResultsError(f'no parameters at {path}: run the sweep with save_params=True')
    return ocp.load_pytree(path.resolve(), work.abstract_params(cell.problem))
