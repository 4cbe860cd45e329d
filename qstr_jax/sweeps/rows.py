"""What is kept of a finished lane batch: rows, curves, and on demand the trained parameters, one folder per lane."""

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import jax
import pandas as pd
from etils import epath

from qstr_jax import columns, tasks
from qstr_jax.learners import held_out
from qstr_jax.learners.problem import Problem
from qstr_jax.models import probes
from qstr_jax.storage import checkpoint, lane_keys, names, results
from qstr_jax.sweeps import cost
from qstr_jax.sweeps.cells import Cell


def rows(
    cell: Cell, lanes: Sequence[Any], data_K: Any, state_K: Any, probe_functions: Sequence[Callable] = ()
) -> pd.DataFrame:
    """One row per lane."""

    described = jax.device_get(_encoding_columns(data_K.task_draw))
    if probe_functions:
        described |= jax.device_get(probed(state_K.params, data_K.task_draw, cell.problem, tuple(probe_functions)))
    learner = cell.problem.learner
    measured = {**learner.report(state_K, cell.problem), **described}
    no_retrieval = cell.problem.test_task.no_retrieval(learner.threshold_on)
    if no_retrieval is not None:
        measured['no_retrieval'] = [no_retrieval] * len(lanes)
    frame = pd.DataFrame(
        {
            **dict(cell.columns),
            **dict(zip(lanes[0]._fields, zip(*lanes, strict=True), strict=True)),
            **{name: values[: len(lanes)] for name, values in measured.items()},
            'num_parameters': cost.num_parameters(cell.problem),
        }
    )
    return frame.astype({name: 'Int64' for name in frame.columns if columns.get(name).type == 'count'})


@functools.partial(jax.jit, static_argnames='problem')
def task_draws(lanes_K: Any, problem: Problem) -> Any:
    """The draws of the task that some lanes have."""
    return jax.vmap(lambda lane: tasks.draw(held_out.stream_keys(lane, problem)['task'], problem.task))(lanes_K)


# Jitted here, so that they are traced once and not for every lane batch.
_encoding_columns = jax.jit(jax.vmap(probes.encoding_columns))


@functools.partial(jax.jit, static_argnames=('problem', 'probe_functions'))
def probed(params_K: Any, task_draw_K: Any, problem: Problem, probe_functions: tuple[Callable, ...]) -> dict[str, Any]:
    """The columns of the probes, by lane."""

    def probe_lane(params: Any, task_draw: Any) -> dict[str, Any]:
        columns_of_lane: dict[str, Any] = {}
        for probe in probe_functions:
            columns_of_lane |= probe(params, task_draw, problem)
        return columns_of_lane

    return jax.vmap(probe_lane)(params_K, task_draw_K)


def curves(cell: Cell, lanes: Sequence[Any], state_K: Any) -> pd.DataFrame:
    """One line per check of a lane, or per fit on a fixed sample; the cell's settings are in its rows only."""
    curves_K = cell.problem.learner.report_curves(state_K, cell.problem)
    frames = [pd.DataFrame({**lane._asdict(), **curve}) for lane, curve in zip(lanes, curves_K, strict=False)]
    return pd.concat(frames, ignore_index=True)


def params_path(workdir: Any, cell: Cell, lane: Any) -> epath.Path:
    """Where the parameters of a lane are."""
    return names.inside(workdir, 'params', cell.id, lane_keys.name_of(lane))


def _params_identity(cell: Cell, lane: Any) -> str:
    return f'{cell.id}: {lane_keys.name_of(lane)}'


def save_params(workdir: Any, cell: Cell, lanes: Sequence[Any], state_K: Any, wanted: Sequence[Any]) -> None:
    """Saves the parameters of the wanted lanes of a finished batch; in its state fillers may follow the lanes."""
    for lane in wanted:
        of_lane = jax.tree.map(operator.itemgetter(lanes.index(lane)), state_K.params)
        checkpoint.save_tree(params_path(workdir, cell, lane), of_lane, _params_identity(cell, lane))


def load_params(workdir: Any, cell: Cell, lane: Any) -> Any:
    """Trained parameters of one lane of a sweep that was run with `save_params`, as `models.predict` takes them.

    Args:
        workdir: the results directory.
        cell: one of `cells_of(sweep)`.
        lane: one of `cell.lanes`.

    Raises:
        results.ResultsError: there are none, or they cannot be read.
    """
    path = params_path(workdir, cell, lane)
    if not path.exists():
        hint = 'run the sweep with save_params=True into a new directory, or merge one that has them into this one'
        raise results.ResultsError(f'no parameters at {path}: {hint}')
    wanted = held_out.abstract_params(cell.problem.module, cell.problem.task)
    return checkpoint.load_tree(path, wanted, _params_identity(cell, lane))
