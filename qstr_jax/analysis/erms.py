"""Which lanes are empirical risk minimisers: their training risk is at most that of the reference.

A lane above that risk is no ERM if its ball holds the reference. In a smaller ball it is only not shown to be one, and
is left out all the same.
A fit of least norm is an ERM if its training risk is within its ε. A theorem about ERMs says nothing of a lane whose
optimiser stopped short, so such a lane is drawn hollow and is in no exponent. A search may also miss the threshold
because its optimiser stopped short: where the largest n that missed it has no ERM, n* of ERMs is at most what the
search found. A search that ends without fitting its training set says nothing about n*. Rows of other learners that
have no reference do not tell whether they are ERMs; they are taken as they are, but Table 1 takes the fits of a ball
for ERMs whose own training risk is about 0, and no others (`by_own_risk`).
"""

from collections.abc import Sequence

import pandas as pd

from qstr_jax.analysis import resolution
from qstr_jax.analysis.curves import curve_columns, setting_columns

# The learner that looks for ERMs that err, and the settings in which its tries at one point differ.
WORST = 'worst_erm'
TRIES = ('hinge', 'fresh', 'level', 'starts', 'max_steps', 'check_every', 'max_samples')
# An outcome in place of 'reached': n* of ERMs is at most the n* of the lane.
AT_MOST = 'at_most'
# An outcome in place of 'censored': the training risk stayed above the threshold, so more samples would not help.
UNFITTED = 'unfitted'
# The default `erm_tolerance` of fits that are compared with a reference.
TOLERANCE = 1e-3


def is_known(rows: pd.DataFrame) -> pd.Series:
    """Whether it is known if a lane is an ERM: it was compared with a reference, or is a fit of least norm."""
    return _is_erm(rows).notna()


def is_short(rows: pd.DataFrame) -> pd.Series:
    """Whether a lane is known to be no ERM."""
    return _is_erm(rows).eq(False).fillna(False).astype(bool)


def _is_erm(rows: pd.DataFrame) -> pd.Series:
    """Whether a lane is an ERM; missing where that is not known."""
    found = rows.get('is_erm', pd.Series(None, rows.index)).astype('boolean')
    if 'converged' not in rows.columns:
        return found
    return found.mask(rows['learner'].eq('min_norm') & found.isna(), rows['converged'].astype('boolean'))


def by_own_risk(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows, where a fit in a ball that was compared with no reference is an ERM if its training risk is about 0.

    No risk is below 0, so such a fit is one; a fit of higher risk is only not shown to be one.
    """
    is_open = rows['learner'].eq('constrained') & ~is_known(rows)
    if not is_open.any() or 'train_risk' not in rows.columns:
        return rows
    return rows.assign(is_erm=_is_erm(rows).mask(is_open, rows['train_risk'] <= TOLERANCE))


def is_at_most(rows: pd.DataFrame) -> pd.Series:
    """Whether n* of ERMs is known to be no more than a lane's n*: just below it, the optimiser stopped short."""
    return rows['outcome'].eq('reached') & rows.get('miss_is_erm', pd.Series(None, rows.index)).eq(False)


def is_unfitted(rows: pd.DataFrame) -> pd.Series:
    """Whether a search ended with a training risk above the threshold, which says nothing of n."""
    if not {'train_risk', 'threshold'} <= set(rows.columns):
        return pd.Series(False, rows.index)
    is_above = rows['outcome'].eq('censored') & rows['train_risk'].gt(rows['threshold']).fillna(False)
    return is_above & ~resolution.is_of_rate(rows)


def with_bounds(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with the outcome `AT_MOST` where n* of ERMs is at most the n* of the lane, and with `UNFITTED`."""
    outcome = rows['outcome'].astype(object).where(~is_at_most(rows), AT_MOST)
    return rows.assign(outcome=outcome.where(~is_unfitted(rows), UNFITTED))


def failing(curves: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """The largest n at which the ERM that a search found has at least the threshold's error: n* of ERMs is larger.

    A search also misses the threshold where its optimiser stopped short; those fits are left out.
    """
    is_failure = is_known(curves) & ~is_short(curves) & (curves['test_loss'] >= curves['threshold'])
    largest = curves['samples'].where(is_failure, 0).groupby([curves[name] for name in (*by, 'seed')], dropna=False)
    lanes = largest.max().groupby(list(by), dropna=False)
    return lanes.agg(samples='mean', num_lanes='size').reset_index()


def worst(rows: pd.DataFrame) -> pd.DataFrame:
    """The largest n with an ERM that errs, as samples to the threshold: the best try of each point and seed.

    A larger ball holds the ERMs of a smaller one, since the least risk is about 0 in both. Fits of more steps, which
    find larger n, count only where they were run at every N.
    """
    rows = _of_equal_steps(rows)
    tries = [name for name in TRIES if name in rows.columns]
    apart = [name for name in setting_columns(rows) if name not in tries and rows[name].nunique(dropna=False) > 1]
    point = list(dict.fromkeys(['seq_len', *apart, 'seed', 'task_seed']))
    best = rows.loc[rows.groupby(point, dropna=False)['erring_samples'].idxmax()]
    if 'radius' in apart:
        others = [name for name in point if name != 'radius']
        most = best.sort_values('radius').groupby(others, dropna=False)['erring_samples'].cummax()
        best = best.assign(erring_samples=most)
    best = best[best['erring_samples'] > 0].drop(columns=tries).reset_index(drop=True)
    if 'max_samples' in tries:  # which tables and figures need
        best['max_samples'] = rows['max_samples'].max()
    is_found = best['outcome'].ne('censored')
    return best.assign(
        outcome=best['outcome'].where(~is_found, 'reached'),
        samples_to_threshold=best['erring_samples'].where(is_found),
        num_samples=best['erring_samples'],
        is_erm=True,  # The fit of this n is an ERM, whatever the fit at the end of the search is.
    )


def _of_equal_steps(rows: pd.DataFrame) -> pd.DataFrame:
    """The tries whose number of steps was run at every N of their curve; all, if there are none."""
    if 'max_steps' not in rows.columns:
        return rows
    curve = [rows[name] for name in curve_columns(rows, 'seq_len', TRIES)]
    lengths, mine = (
        rows['seq_len'].groupby(by, dropna=False).transform('nunique') for by in (curve, [*curve, rows['max_steps']])
    )
    return rows[mine == lengths] if (mine == lengths).any() else rows
