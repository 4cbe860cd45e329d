"""Whether tasks, models and probes of cells make what programs and rows need; traced, nothing is computed."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax

from qstr_jax import failures, models
from qstr_jax.learners.held_out import abstract_params
from qstr_jax.models import probes
from qstr_jax.storage import results
from qstr_jax.sweeps.cells import Cell
from qstr_jax.sweeps.sweep import Sweep
from qstr_jax.tasks import shapes, streams


def probes_of(sweep: Sweep) -> dict[str, Callable]:
    """The functions of a sweep's probes, with their settings, by name.

    Args:
        sweep: names them.

    Raises:
        ValueError: an unknown name or setting.
    """
    return {name: probes.get(name, **sweep.settings_of(name)) for name in sweep.probes}


def check(cells: Sequence[Cell], probe_functions: Mapping[str, Callable]) -> None:
    """Raises ValueError unless all cells make floats of the right shapes.

    Args:
        cells: of a sweep.
        probe_functions: of `probes_of`.
    """
    for cell in cells:
        problem: Any = cell.problem
        with failures.named(f'task={problem.task.name!r}'):  # whose own settings may not be hashable
            shapes.check(problem.task)
            shapes.check(problem.test_task)
        with failures.named(f'models={cell.model!r}'):
            models.check_output(cell.model, problem.module, problem.task)
        for name, probe in probe_functions.items():
            _check_probe(name, probe, problem)


def check_new(sweep: Sweep, cells: Sequence[Cell], workdir: Any) -> None:
    """Checks the cells that have no rows yet, since the others have passed; with probes all, which may be new.

    Args:
        sweep: the cells'.
        cells: of the sweep.
        workdir: the results directory, which need not exist.

    Raises:
        ValueError: as `check`.
    """
    probe_functions = probes_of(sweep)
    new = [cell for cell in cells if probe_functions or not results.cell_path(workdir, 'rows', cell.id).exists()]
    check(new, probe_functions)


def _check_probe(name: str, probe: Callable, problem: Any) -> None:
    """Raises ValueError unless a probe makes a dict of scalars."""
    task_draw = jax.eval_shape(problem.task.draw, streams.abstract_key())
    params = abstract_params(problem.module, problem.task)
    try:
        made = jax.eval_shape(lambda params, draw: probe(params, draw, problem), params, task_draw)
    except (Exception, SystemExit) as error:  # whatever a user's function does
        raise ValueError(f'probes={name!r}: {failures.reason(error)}') from error
    if not isinstance(made, dict) or any(getattr(value, 'shape', None) != () for value in made.values()):
        found = {key: getattr(value, 'shape', None) for key, value in made.items()} if isinstance(made, dict) else made
        raise ValueError(f'probes={name!r}: must return a dict of scalars, not {found!r}')
