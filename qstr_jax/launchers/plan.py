"""What is left to run of a sweep, as JSON, for a driver without JAX: python -m qstr_jax.launchers.plan --plan_file=…

It checks all settings, makes the results directory and writes the sweep and its plan into it.
"""

import os
from collections.abc import Sequence
from typing import Any

from absl import flags
from etils import epath

from qstr_jax import progress, sweeps
from qstr_jax.cli import base, command_line, runtime, sample_complexity
from qstr_jax.launchers.batch_queue import Batch
from qstr_jax.storage import cell_tables, files, results
from qstr_jax.sweeps import claims, lane_batches, listing, outputs, session
from qstr_jax.sweeps.cells import Cell

_FILE = flags.DEFINE_string('plan_file', None, 'Where the plan goes.')
_PLATFORM = flags.DEFINE_string('platform', 'cpu', 'Of the devices that will run it.')
_DRAW = flags.DEFINE_bool('draw', False, 'Draw what is there instead.')


def run() -> None:
    """Writes the plan; a dry run prints the listing instead, and leaves no plan."""
    config, sweep = sample_complexity.CONFIG.value, base.to_sweep(sample_complexity.CONFIG.value)
    sample_complexity.check(config, sweep)
    runtime.check()
    cells = sample_complexity.checked_cells(config, sweep)
    if sample_complexity.DRY_RUN.value:
        print(listing.describe(sweep, cells, runtime.workdir() if runtime.WORKDIR.value else None))
        return
    if _DRAW.value:
        session.tidy(epath.Path(runtime.workdir()))  # a driver that was killed may have left checkpoints of done cells
        sample_complexity.draw(runtime.workdir(), config)
        return
    files.write_json(_FILE.value, _plan(sweep, cells))


def _plan(sweep: sweeps.Sweep, cells: Sequence[Cell]) -> dict[str, Any]:
    """What is left to run, in batches; makes the results directory."""
    if sweep.tune:
        raise ValueError(
            f"tune={', '.join(sweep.tune.names)}: a tuned sweep needs workers that see each other's rows: "
            'take --executor=slurm or local'
        )
    options = runtime.options()
    made = outputs.check_new(sweep, cells, runtime.workdir())
    mine = lane_batches.share(cells, options.shard_index, options.num_shards)
    if (epath.Path(runtime.workdir()) / 'config.json').exists():
        results.make_compact(runtime.workdir())
    one = session.Session(sweep, options, session.Stop(), progress.Progress('lane', False), made)
    workdir = one.open(runtime.workdir(), mine, cells, is_alone=True, has_probes=True)
    left = {cell_id: set(lanes) for cell_id, lanes in claims.missing_of(workdir, mine).items()}
    batches = [
        Batch(
            cell=batch.cell.id,
            number=batch.number,
            name=batch.name,
            lanes=tuple(places),
            work=lane_batches.work(batch.cell) * len(places),
        )
        for batch in lane_batches.cut(mine, lambda cell: _size(sweep, cell))
        if (places := [i for i, lane in enumerate(batch.lanes) if lane in left[batch.cell.id]])
    ]
    for cell in mine:
        if left[cell.id]:
            _fill(workdir, cell)
    return {
        'workdir': os.fspath(workdir),
        'lanes': sum(len(cell.lanes) for cell in mine),
        'batches': [batch._asdict() for batch in batches],
    }


def _size(sweep: sweeps.Sweep, cell: Cell) -> int:
    """The number of lanes in a batch on the devices that will run it."""
    default = lane_batches.default_size(cell.problem.module, len(cell.lanes), _PLATFORM.value)
    return sweep.lanes_per_batch or default


def _fill(workdir: os.PathLike, cell: Cell) -> None:
    """Adds settings that are newer than a cell's file to that file, since the driver does not know them."""
    path = results.cell_path(workdir, 'rows', cell.id)
    if path.exists():
        rows = cell_tables.read_rows(path, cell.lanes[0]._fields)
        if set(rows.columns) != set(files.read_table(path).columns):
            files.write_table(path, rows, cell.id)


if __name__ == '__main__':
    command_line.launch(run)
