"""How finely samples are known: a lane tests its loss at checks only, and crosses its threshold between two of them.

A row says at which check a lane was first below its threshold. Its curve says how far from it the loss was at that
check and at the one before, so analysis takes the crossing of a straight line between the two: of the logarithm of the
loss, or of the error rate where the threshold is on that.
Without curves the check itself counts. A mean of one to three checks is marked even with curves, since the loss does
not fall along a straight line.
"""

import numpy as np
import pandas as pd

from qstr_jax import columns

# The column of the interpolated crossing, which rows on disk never have, see `columns.DERIVED`.
CROSSING = 'crossing'
# A mean of at most this many checks is coarse.
COARSE = 3
MARK = '~'
_BEFORE = ' before'


def is_of_rate(rows: pd.DataFrame) -> pd.Series:
    """Which lanes have a threshold of the error rate; the others have one of the loss."""
    return rows.get('threshold_on', pd.Series('loss', rows.index)).eq('error_rate')


def step(rows: pd.DataFrame) -> pd.Series:
    """Samples between two checks of each lane; NaN for lanes without checks."""
    if not {'check_every', 'batch_size', 'learner'} <= set(rows.columns):
        return pd.Series(np.nan, rows.index)
    return (rows['check_every'] * rows['batch_size']).astype(float).where(rows['learner'] == 'online')


def note(rows: pd.DataFrame) -> str:
    """What `MARK` means: '~: one to three checks of 6,400 samples'."""
    return note_of(step(rows).to_numpy(float))


def note_of(steps: np.ndarray) -> str:
    """As `note`, from the steps of lanes."""
    known = sorted(set(steps[~np.isnan(steps)].tolist()))
    return f'{MARK}: one to three checks of {" or ".join(f"{one:,.0f}" for one in known)} samples'


def interpolated(rows: pd.DataFrame, curves: pd.DataFrame) -> pd.DataFrame:
    """The rows with the crossing of each lane's threshold between two checks; missing where it is not known."""
    crossed = rows[rows['outcome'].eq('reached') & step(rows).notna()] if len(rows) else rows
    if crossed.empty or curves.empty:
        return rows
    lane = ['cell', *columns.with_role(rows.columns, 'lane')]
    lane = [name for name in lane if name in curves.columns]
    measures = [name for name in ('test_loss', 'accuracy') if name in curves.columns]
    lines = curves[[*lane, 'samples', *measures]].sort_values('samples')
    before = lines.groupby(lane, dropna=False)[['samples', *measures]].shift()
    lines = lines.join(before.add_suffix(_BEFORE)).astype({'samples': float})
    judged = [name for name in ('threshold', 'threshold_on') if name in crossed.columns]
    end = crossed[[*lane, *judged]].assign(samples=crossed['samples_to_threshold'].astype(float), row=crossed.index)
    found = end.merge(lines, on=[*lane, 'samples']).set_index('row')
    above, below = _height(found, _BEFORE), _height(found, '')
    threshold = found['threshold'].where(is_of_rate(found), np.log(found['threshold']))
    start = found[f'samples{_BEFORE}']
    place = start + (above - threshold) / (above - below) * (found['samples'] - start)
    is_between = (above >= threshold) & (below < threshold)
    return rows.assign(**{CROSSING: place[is_between].reindex(rows.index)})


def _height(found: pd.DataFrame, suffix: str) -> pd.Series:
    """What falls to the threshold: the error rate, which may be 0, or the logarithm of the loss."""
    loss = np.log(found[f'test_loss{suffix}'])
    is_rate = is_of_rate(found)
    return loss.where(~is_rate, 1 - found[f'accuracy{suffix}']) if is_rate.any() else loss
