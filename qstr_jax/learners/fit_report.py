"""The rows and curves of finished lanes on a fixed sample, on the host."""

from typing import Any

import jax
import numpy as np

from qstr_jax.learners.fits import Record, State
from qstr_jax.learners.outcomes import OUTCOMES, REACHED
from qstr_jax.learners.problem import Problem

# Larger than any n.
NEVER = np.iinfo(np.int32).max


def _flat(record: Record, learner: Any) -> dict[str, Any]:
    """The columns of a `Record`, by name; those of starts and of the reference where the learner has them."""
    fields = record._asdict()
    certified = fields.pop('certificate')
    columns = {**fields, **certified._asdict()}
    winner = columns.pop('winner')
    if len(learner.starts) > 1:
        columns |= {'start': np.array(learner.starts)[winner], 'num_starts': np.full(winner.shape, len(learner.starts))}
    else:
        columns.pop('highest_start_risk')
    if learner.reference:
        columns['is_erm'] = columns['train_risk'] <= columns['reference_train_risk'] + learner.erm_tolerance
    else:
        columns.pop('reference_train_risk')
        columns.pop('reference_test_loss')
    return columns


def report(state_K: State, problem: Problem) -> dict[str, Any]:
    """Columns of the rows of a lane batch: arrays (k,), on the host.

    `samples_to_threshold` is n*. `validation_samples_to_threshold` is the smallest n tried that had a validation loss
    below the threshold; settings are chosen by it.

    Args:
        state_K: of the lane batch.
        problem: the cell's.
    """
    unused: dict[str, Any] = {'fit': None, 'stage': None, 'restarts': None, 'params': None}
    state_K = jax.device_get(state_K._replace(**unused))
    chosen = np.arange(len(state_K.reported)), state_K.reported
    columns = {name: values[chosen] for name, values in _flat(state_K.records, problem.learner).items() if name != 'n'}
    outcomes = [OUTCOMES[outcome] for outcome in state_K.outcome]
    is_below = state_K.records.validation_loss < problem.learner.threshold
    validation = np.where(is_below, state_K.records.n, NEVER).min(axis=1)
    is_search = problem.learner.is_search
    return {
        'outcome': outcomes,
        'num_samples': np.where(state_K.num_fits > 0, state_K.records.n[chosen], state_K.bracket.n),
        'samples_to_threshold': [
            int(n) if outcome == OUTCOMES[REACHED] else None
            for n, outcome in zip(state_K.bracket.high, outcomes, strict=True)
        ],
        'validation_samples_to_threshold': [int(n) if is_search and n < NEVER else None for n in validation],
        'train_loss': columns['train_risk'],
        **columns,
        'num_fits': state_K.num_fits,
    }


def report_curves(state_K: State, learner: Any) -> list[dict[str, Any]]:
    """The fits of a lane batch, by n: for each lane a dict of columns.

    Args:
        state_K: of the lane batch.
        learner: the cell's.
    """
    num_fits_K, records_K = jax.device_get((state_K.num_fits, state_K.records))
    curves = []
    for k, num_fits in enumerate(num_fits_K):
        order = np.argsort(records_K.n[k, :num_fits])
        columns = {name: values[k, :num_fits][order] for name, values in _flat(records_K, learner).items()}
        curves.append({'samples': columns.pop('n'), 'train_loss': columns['train_risk'], **columns})
    return curves
