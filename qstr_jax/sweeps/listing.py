"""The listing of a dry run: what a sweep would run."""

from collections.abc import Sequence

from qstr_jax.sweeps import cost, outputs
from qstr_jax.sweeps.cells import Cell, cells_of
from qstr_jax.sweeps.sweep import Sweep


def summary(cells: Sequence[Cell]) -> str:
    """How much work a sweep is at most, without tracing a program.

    Args:
        cells: of the sweep.
    """
    num_lanes = sum(len(cell.lanes) for cell in cells)
    examples = sum(len(cell.lanes) * cell.problem.learner.most_examples() for cell in cells)
    return f'{len(cells):,} cells, {num_lanes:,} lanes, at most {examples:,} prompts to train on, with repetition'


def describe(sweep: Sweep) -> str:
    """One line per cell: lanes, parameters and the most floating-point operations of a lane.

    Args:
        sweep: the points to run.

    Raises:
        ValueError: a setting is impossible, or would be ignored.
    """
    cells = cells_of(sweep)
    outputs.check(cells, outputs.probes_of(sweep))
    width = max(40, *(len(cell.id) for cell in cells))
    lines = [f'{"cell":{width}s} {"lanes":>5s} {"parameters":>10s} {"TFLOP per lane at budget":>25s}']
    total, num_lanes = 0.0, 0
    for cell in cells:
        flops = cost.training_flops(cell.problem, cell.problem.learner.most_examples())
        total, num_lanes = total + flops * len(cell.lanes), num_lanes + len(cell.lanes)
        parameters = cost.num_parameters(cell.problem)
        lines.append(f'{cell.id:{width}s} {len(cell.lanes):5d} {parameters:10,d} {flops / 1e12:25.1f}')
    lines.append(
        f'{len(cells)} cells, {num_lanes} lanes, at most {total / 1e12:,.0f} TFLOP of '
        f'training (a lane stops when it reaches its goal)'
    )
    if sweep.tune:
        names = ' and '.join(sweep.tune.names)
        lines.append(f'{names} tuned at each point on {sweep.tune.num_seeds} selection seeds, whose lanes come on top')
    return '\n'.join(lines)
