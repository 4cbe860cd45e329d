"""Trained parameters on disk, one folder per lane."""

import jax
from etils import epath

from qstr_jax.learners import held_out
from qstr_jax.storage import checkpoint, results


def _path(workdir, cell, lane):
    return epath.Path(workdir) / 'params' / cell.id / results.lane_name(lane)


def save(workdir, cell, lanes, state_K):
    """Saves the parameters of each lane of a finished batch."""
    for k, lane in enumerate(lanes):
        of_lane = jax.tree.map(lambda leaf, k=k: leaf[k], state_K.params)
        checkpoint.save_tree(_path(workdir, cell, lane), of_lane)


def load(workdir, cell, lane):
    """Trained parameters of one lane, saved with `save_params`; feed them to `models.predict`.

    Raises:
        results.ResultsError: there are none.
    """
    path = _path(workdir, cell, lane)
    if not path.exists():
        raise results.ResultsError(f'no parameters at {path}: run the sweep with save_params=True')
    return checkpoint.load_tree(path, held_out.abstract_params(cell.problem.module, cell.problem.task))
