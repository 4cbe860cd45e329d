"""Checks, before any work, that tasks, models and probes of cells make what programs and rows need."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax

from qstr_jax import columns, failures, fingerprints, models
from qstr_jax.learners import starts
from qstr_jax.learners.held_out import abstract_params
from qstr_jax.models import probes
from qstr_jax.storage import cell_columns
from qstr_jax.sweeps.cells import Cell
from qstr_jax.sweeps.sweep import Sweep
from qstr_jax.tasks import shapes, streams


class Made(NamedTuple):
    """What a probe adds to the rows of a cell, and the fingerprint of its steps and settings."""

    columns: tuple[str, ...]
    fingerprint: str


def probes_of(sweep: Sweep) -> dict[str, Callable]:
    """The functions of a sweep's probes, with their settings, by name."""
    return {name: probes.get(name, **sweep.settings_of(name)) for name in sweep.probes}


def check(cells: Sequence[Cell], probe_functions: Mapping[str, Callable]) -> dict[str, dict[str, Made]]:
    """What probes make, by cell and name; raises ValueError unless all cells make floats of the right shapes."""
    found: dict[str, dict[str, Made]] = {}
    for cell in cells:
        problem: Any = cell.problem
        with failures.named(f'task={problem.task.name!r}'):  # a task's own settings may not be hashable
            shapes.check(problem.task)
            shapes.check(problem.test_task)
        with failures.named(f'models={cell.model!r}'):
            models.check_output(cell.model, problem.module, problem.task)
            _check_test_length(cell.model, problem)
        starts.check_on(problem)
        taken = dict.fromkeys(columns.RESERVED, 'a column of all rows')
        taken |= dict.fromkeys((name for name, _ in cell.columns), 'a setting of the cell')
        taken |= dict.fromkeys(cell.lanes[0]._fields, 'a setting of the lanes')
        made = found[cell.id] = {name: made_by(name, probe, cell) for name, probe in probe_functions.items()}
        for name, one in made.items():
            for column in one.columns:
                if column in taken:
                    raise ValueError(
                        f'probes={name!r}: returns {column!r}, which is {taken[column]}: name it otherwise'
                    )
                taken[column] = f"a column of probe '{name}'"
    return found


def check_new(sweep: Sweep, cells: Sequence[Cell], workdir: Any) -> dict[str, dict[str, Made]]:
    """Checks the cells without rows, since the others have passed; with probes, which may be new, all cells."""
    probe_functions, known = probes_of(sweep), cell_columns.with_rows(workdir)
    new = [cell for cell in cells if probe_functions or cell.id not in known]
    made = check(new, probe_functions)
    check_draws(new)
    return made


def check_draws(cells: Sequence[Cell]) -> None:
    """Draws some prompts of each cell's tasks; raises ValueError if one holds a value that no prompt may hold."""
    problems: list[Any] = [cell.problem for cell in cells]
    for task in dict.fromkeys(task for problem in problems for task in (problem.task, problem.test_task)):
        with failures.named(f'task={task.name!r}'):
            shapes.check_prompts(task)


def _check_test_length(name: str, problem: Any) -> None:
    """Raises ValueError unless the same parameters answer prompts of the length of the test."""
    if problem.test_task.seq_len == problem.task.seq_len:
        return
    shapes_of = [
        jax.tree.map(lambda leaf: leaf.shape, abstract_params(problem.module, task))
        for task in (problem.task, problem.test_task)
    ]
    if shapes_of[0] != shapes_of[1]:
        raise ValueError(
            f'models={name!r}: its parameters are for seq_len={problem.task.seq_len} alone, not for '
            f'test_seq_len={problem.test_task.seq_len}; leave one of the two out'
        )


def made_by(name: str, probe: Callable, cell: Cell) -> Made:
    """What a probe adds to the rows of a cell; traced, nothing is computed."""
    problem: Any = cell.problem
    task_draw = jax.eval_shape(problem.task.draw, streams.abstract_key())
    params = abstract_params(problem.module, problem.task)
    try:
        traced, made = jax.make_jaxpr(lambda *given: probe(*given, problem), return_shape=True)(params, task_draw)
    except (Exception, SystemExit) as error:  # a user's function may raise anything
        raise ValueError(f'models={cell.model!r}, probes={name!r}: {failures.reason(error)}') from error
    if not isinstance(made, dict) or any(getattr(value, 'shape', None) != () for value in made.values()):
        found = {key: getattr(value, 'shape', None) for key, value in made.items()} if isinstance(made, dict) else made
        raise ValueError(f'probes={name!r}: must return a dict of scalars, not {found!r}')
    return Made(tuple(made), fingerprints.of(traced))
