"""Which of two entries needs fewer samples: lane s of both saw the same prompts, so lanes are compared one by one.

With T the samples to the threshold, or the budget where a lane used it up, d_{N,s} = log T_mine − log T_other. At each
N the mean of d has Student's 95% interval. The variance between lanes is pooled over the N of a task, since three lanes
say little about it. It is never taken below the variance at this N, below its mean over all other entries at this N, or
below that of a crossing known to one check. Holm's procedure is meant to keep the probability of a wrong statement on a
card below 5 %. In simulations without a difference, with five rivals, three N and three lanes, 0 of 150 cards were
wrong where all have the same noise, equal over N or not, and 9 of 150 where one rival has ten times the noise at one N.
"""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy

from qstr_jax.analysis.summary import LEARNED

LEVEL = 0.05
_POINT = ['task', 'seq_len', 'seed']


class Verdict(NamedTuple):
    """What paired lanes say about one point."""

    task: str
    seq_len: int
    other: str  # the entry that mine is compared with
    num_pairs: int  # lanes that both have
    ratio: float  # geometric mean of T_mine / T_other
    low: float
    high: float
    is_bound: bool  # whether some lane used up its budget, so that the true ratio is further from 1, or not known
    p: float  # the two-sided p-value of no difference
    says: str  # 'better', 'worse', 'cannot say', 'neither learns'; 'fewer', 'more' where only the interval excludes 1
    among: int = 1  # statements of the card, among which it is tested

    @property
    def text(self) -> str:
        """'0.42 (0.21–0.83) times the samples: better'."""
        if self.says == 'neither learns':
            return 'neither learns within the budget'
        interval = f' ({self.low:.2g}–{self.high:.2g})' if np.isfinite(self.low) else ''
        bound = 'within the budget, ' if self.is_bound else ''
        words = {'cannot say': f'{self.num_pairs} lanes cannot say'}
        words |= {says: f'{says}, {self.doubt}' for says in ('fewer', 'more')}
        says = words.get(self.says, self.says)
        return f'{bound}{self.ratio:.2g}{interval} times the samples: {says}'

    @property
    def doubt(self) -> str:
        """What is said beside an interval that is not corrected for the other statements."""
        return f"but not significant among the card's {self.among} statements"


def verdicts(mine: pd.DataFrame, others: pd.DataFrame) -> list[Verdict]:
    """What paired lanes say about one entry and all others, by task, other entry and N."""
    found = []
    for task, rivals in others.groupby('task', sort=True):
        own = _lanes(mine[mine['task'] == task])
        pairs = {str(other): _pairs(own, _lanes(lanes)) for other, lanes in rivals.groupby('entry', sort=True)}
        noise = pd.DataFrame([_informed(one).groupby('seq_len')['d'].var() for one in pairs.values()]).mean()
        for other, one in pairs.items():
            found += _of_task(str(task), other, one, noise)
    return _by_holm(found)


def _pairs(mine: pd.DataFrame, others: pd.DataFrame) -> pd.DataFrame:
    """The lanes that both have, with their d and the part of its variance that checks hide."""
    pairs = mine.merge(others, on=_POINT, suffixes=('', '_other'))
    return pairs.assign(d=pairs['log'] - pairs['log_other'], both=pairs['hidden'] + pairs['hidden_other'])


def _informed(pairs: pd.DataFrame) -> pd.DataFrame:
    """The pairs in which at least one lane learns."""
    return pairs[pairs['learns'] | pairs['learns_other']]


def _lanes(rows: pd.DataFrame) -> pd.DataFrame:
    """Log samples within the budget, the variance of what one check hides, and whether the lane learned."""
    learns = rows['outcome'].isin(LEARNED)
    samples = rows['samples_to_threshold'].astype(float).where(learns, rows['max_samples'].astype(float))
    check = (rows['batch_size'] * rows['check_every']).astype(float).fillna(1.0)
    hidden = np.log(samples / np.maximum(samples - check, samples / 2)) ** 2 / 12
    return rows[_POINT].assign(log=np.log(samples), hidden=hidden.where(learns, 0.0), learns=learns)


def _of_task(task: str, other: str, pairs: pd.DataFrame, noise: pd.Series) -> list[Verdict]:
    informed = _informed(pairs)
    groups = informed.groupby('seq_len')['d']
    degrees = int((groups.size() - 1).sum()) if len(informed) else 0
    variance = float(((informed['d'] - groups.transform('mean')) ** 2).sum()) / degrees if degrees else np.nan
    variance = max(variance, float(informed['both'].mean())) if degrees else np.nan
    return [
        _of_point((task, int(seq_len), other), own, np.fmax(variance, noise.get(seq_len, np.nan)), degrees)
        for seq_len, own in pairs.groupby('seq_len')
    ]


def _of_point(key: tuple[str, int, str], pairs: pd.DataFrame, variance: float, degrees: int) -> Verdict:
    task, seq_len, other = key
    mean, is_bound = float(pairs['d'].mean()), not (pairs['learns'] & pairs['learns_other']).all()
    shared: dict[str, Any] = {'task': task, 'seq_len': seq_len, 'other': other, 'num_pairs': len(pairs)}
    if not (pairs['learns'] | pairs['learns_other']).any():
        return Verdict(**shared, ratio=1.0, low=np.nan, high=np.nan, is_bound=True, p=1.0, says='neither learns')
    error = np.sqrt(np.fmax(variance, pairs['d'].var()) / len(pairs))  # the noisiest N is not judged by the others
    half = float(scipy.special.stdtrit(degrees, 1 - LEVEL / 2)) * error if degrees else np.nan
    p = 2 * float(scipy.special.stdtr(degrees, -abs(mean) / error)) if degrees else 1.0
    low, high = np.exp([mean - half, mean + half])
    says = 'better' if mean < 0 else 'worse'
    return Verdict(**shared, ratio=float(np.exp(mean)), low=low, high=high, is_bound=is_bound, p=p, says=says)


def _by_holm(found: list[Verdict]) -> list[Verdict]:
    """Takes back what is not significant: the i-th smallest of m values of p must be below 5 % / (m − i + 1).

    Intervals are not corrected, so some of these still exclude 1.
    """
    tested = sorted((one for one in found if one.says != 'neither learns'), key=lambda one: one.p)
    holds = set()
    for place, one in enumerate(tested):
        if one.p > LEVEL / (len(tested) - place):
            break
        holds.add(one)
    kept = [one if one in holds or one not in tested else one._replace(says=_by_interval(one)) for one in found]
    return [one._replace(among=len(tested)) for one in kept]


def _by_interval(one: Verdict) -> str:
    return 'fewer' if one.high < 1 else 'more' if one.low > 1 else 'cannot say'
