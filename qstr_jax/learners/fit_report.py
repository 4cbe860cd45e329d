"""The rows and curves of finished lanes on a fixed sample, on the host."""

from typing import Any

import jax
import numpy as np

from qstr_jax.learners.crossings import is_below
from qstr_jax.learners.fits import Record, State
from qstr_jax.learners.lanes import OUTCOMES, REACHED
from qstr_jax.learners.problem import Problem

# Larger than any n.
NEVER = np.iinfo(np.int32).max


def _flat(record: Record, learner: Any) -> dict[str, Any]:
    """The columns of a `Record`, by name; those of starts and of the reference where the learner has them."""
    fields = record._asdict()
    fields.pop('others')
    certified = fields.pop('certificate')
    columns = {**fields, **certified._asdict()}
    winner = columns.pop('winner')
    if len(learner.starts) > 1:
        columns |= {'start': np.array(learner.starts)[winner], 'num_starts': np.full(winner.shape, len(learner.starts))}
    else:
        columns.pop('highest_start_risk')
    is_erm = learner.is_erm(record)
    if is_erm is not None:
        columns['is_erm'] = is_erm
    if not learner.reference:
        columns.pop('reference_train_risk')
        columns.pop('reference_test_loss')
    return columns


def _miss_is_erm(columns: dict[str, Any], num_fits_K: np.ndarray, threshold: float) -> list[bool | None]:
    """Whether the fit at the largest n that missed the threshold is an ERM, by lane; None where all fits met it."""
    is_done = np.arange(columns['n'].shape[1]) < num_fits_K[:, None]
    has_missed = is_done & ~is_below(columns['test_loss'], threshold)
    largest_K = np.where(has_missed, columns['n'], -1).argmax(axis=1)
    lanes = zip(has_missed.any(axis=1), columns['is_erm'][np.arange(len(largest_K)), largest_K], strict=True)
    return [bool(is_erm) if any_missed else None for any_missed, is_erm in lanes]


def report(state_K: State, problem: Problem) -> dict[str, Any]:
    """Columns of the rows of a lane batch: arrays (k,), on the host.

    `samples_to_threshold` is n*. `validation_samples_to_threshold` is the smallest n tried that had a validation loss
    below the threshold; settings are chosen by it. `miss_is_erm`, of searches beside a reference, says whether the
    largest n that missed the threshold has an ERM: if not, n* of ERMs may be smaller.
    """
    unused: dict[str, Any] = {'fit': None, 'stage': None, 'restarts': None, 'params': None}
    state_K = jax.device_get(state_K._replace(**unused))
    chosen = np.arange(len(state_K.reported)), state_K.reported
    fits = _flat(state_K.records, problem.learner)
    columns = {name: values[chosen] for name, values in fits.items() if name != 'n'}
    outcomes = [OUTCOMES[outcome] for outcome in state_K.outcome]
    is_enough = is_below(state_K.records.validation_loss, problem.learner.threshold)
    validation = np.where(is_enough, state_K.records.n, NEVER).min(axis=1)
    is_search = problem.learner.is_search
    if is_search and problem.learner.reference:
        columns['miss_is_erm'] = _miss_is_erm(fits, np.asarray(state_K.num_fits), problem.learner.threshold)
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
        **{name: values[chosen] for name, values in state_K.records.others.items()},
        'num_fits': state_K.num_fits,
    }


def report_curves(state_K: State, learner: Any) -> list[dict[str, Any]]:
    """The fits of a lane batch, by n: for each lane a dict of columns."""
    num_fits_K, records_K = jax.device_get((state_K.num_fits, state_K.records))
    curves = []
    for k, num_fits in enumerate(num_fits_K):
        order = np.argsort(records_K.n[k, :num_fits])
        columns = {name: values[k, :num_fits][order] for name, values in _flat(records_K, learner).items()}
        others = {name: values[k, :num_fits][order] for name, values in records_K.others.items()}
        curves.append({'samples': columns.pop('n'), 'train_loss': columns['train_risk'], **columns, **others})
    return curves
