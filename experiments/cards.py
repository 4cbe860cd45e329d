"""What the cards that train share: settings, arguments of their sweeps, the rows of a sweep, and exponents."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from qstr_jax import analysis
from qstr_jax.storage.files import ResultsError
from qstr_jax.sweeps import Cell, Sweep
from qstr_jax.theory import network_probes

# Modules that register what the sweeps name.
PLUGINS = (network_probes,)
# A threshold that no lane reaches, so that all of them train to the end.
NEVER = 1e-30


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings that all cards with networks on fresh prompts have.

    Attributes:
        steps: training steps.
        batch_size: fresh prompts of a step.
        learning_rate: the largest one.
        test_samples: test prompts.
    """

    steps: int = 2000
    batch_size: int = 64
    learning_rate: float = 3e-3
    test_samples: int = 5000


def online(settings: Any, task: dict[str, Any], *, checks: int = 20, **more: Any) -> Sweep:
    """A sweep of networks on fresh prompts of a task, each with its own draw of it; their rate falls along a cosine."""
    check_every = max(1, settings.steps // checks)
    learner = {
        'batch_size': settings.batch_size,
        'check_every': check_every,
        'max_samples': settings.steps // check_every * check_every * settings.batch_size,
        'learning_rate': settings.learning_rate,
        'weight_decay': 0.0,
        'schedule': 'cosine',
        'threshold': NEVER,
        'test_samples': settings.test_samples,
    }
    learner |= more.pop('learner', {})
    num_lanes = more.pop('num_seeds', None) or settings.num_lanes
    return own_draws(task, num_lanes, learners='online', learner=learner, **more)


def own_draws(task: dict[str, Any], num_lanes: int, **more: Any) -> Sweep:
    """A sweep in which each lane has its own draw of the task, and test prompts are of the same task."""
    return Sweep(**{'task': task, 'test_task': task['name'], 'num_seeds': num_lanes, 'task_per_lane': True, **more})


def rows_of(cells: Sequence[Cell], rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of a sweep's own lanes, of a directory that may have others, in the order of its cells."""
    found = []
    for cell in cells:
        own = rows[rows['cell'] == cell.id].set_index(list(cell.lanes[0]._fields), drop=False)
        missing = [lane for lane in cell.lanes if tuple(lane) not in own.index]
        if missing:
            raise ResultsError(f'{len(missing)} lanes of the cell {cell.id} have no rows: run all shares of the sweep')
        found.append(own.loc[[tuple(lane) for lane in cell.lanes]].reset_index(drop=True))
    return pd.concat(found, ignore_index=True).dropna(axis=1, how='all')


def exponent(x: Any, y: Any) -> analysis.Exponent:
    """The exponent of y ∝ x^a with its 95 % interval, by `analysis.exponent`; several y at one x are lanes."""
    y = np.asarray(y, np.float64)
    lanes = {'model': 'y', 'seq_len': np.asarray(x, np.float64), 'outcome': 'reached', 'samples_to_threshold': y}
    frame = pd.DataFrame({**lanes, 'max_samples': np.inf})
    return analysis.exponent(frame.assign(seed=frame.groupby('seq_len').cumcount()))


def power(name: str, x: Any, y: Any) -> str:
    """`exponent` in words: 'N^0.66 [0.50, 0.82]', or why there is none."""
    found = exponent(x, y)
    return f'no exponent of {name} ({found.note})' if found.value is None else f'{name}^{found}'
