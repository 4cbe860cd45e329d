r"""How often the 95% interval of an exponent holds it, by simulation, and how often the right law is found.

python -m experiments.benchmarks.coverage

Writes coverage.md beside this file (four minutes of a core). Samples of a lane are N^1 times lognormal noise between
lanes (σ = 0.1) and a lognormal misfit of each length (τ). Which lanes are bounds or failures:

- all reach: none.
- 1 at budget, 2 at budget: the budget is the median of what the longest length needs, or the longest but one.
- 30 % at most: 30 % of lanes are upper bounds, up to twice what the lane needs, as an n* of ERMs.
- 20 % fail, far: 20 % of lanes never learn, with a budget of 20 times what the longest length needs.
- 20 % fail, near: the same with a budget of 1.35 times that, three lane noises above it.

`share` is how often there is an interval, and coverage is of those. With three lengths it is by lane noise alone, so
that it does not cover where there is a misfit: it says so of itself.
"""

import dataclasses
import pathlib

import numpy as np
import pandas as pd

from qstr_jax.analysis import formats, laws, learning, line_fit
from qstr_jax.analysis.log_means import from_logs
from qstr_jax.storage import files

LENGTHS = {
    3: (4, 8, 16),
    4: (4, 6, 8, 12),
    5: (25, 27, 29, 31, 33),
    6: (4, 8, 16, 64, 256, 1024),
    8: (4, 6, 8, 10, 12, 16, 24, 32),
}
LANES = (3, 5, 10)
MISFITS = (0.0, 0.05, 0.2)
NOISE = 0.1


@dataclasses.dataclass(frozen=True)
class Case:
    """What is simulated.

    Attributes:
        lengths: number of N, a key of `LENGTHS`.
        lanes: of each length.
        misfit: τ.
        censored: the number of longest N whose censoring point lies within their lanes.
        failing: the share of lanes that never learn.
        room: their budget, in log samples above what the longest N needs on average.
        at_most: the share of lanes whose samples are an upper bound, as of an n* of ERMs, by up to a factor of 2.
        exponent: a; or p where the law is (log N)^p.
        law: of `laws`.
    """

    lengths: int
    lanes: int
    misfit: float = 0.0
    censored: int = 0
    failing: float = 0.0
    room: float = np.inf
    at_most: float = 0.0
    exponent: float = 1.0
    law: str = laws.POWER


def means_of(case, rng):
    """Log means of one simulated curve, over the lanes that an exponent counts as learning."""
    lengths = np.array(LENGTHS[case.lengths], float)
    x = np.log(lengths) if case.law == laws.POWER else np.log(np.log(lengths))
    expected = case.exponent * x
    group = np.repeat(np.arange(len(x)), case.lanes)
    logs = (expected + rng.normal(0, case.misfit, len(x)))[group] + rng.normal(0, NOISE, len(group))
    budget = expected[-case.censored] if case.censored else expected[-1] + case.room
    fails = rng.random(len(logs)) < case.failing
    is_spent = (logs > budget) | fails
    is_at_most = ~is_spent & (rng.random(len(logs)) < case.at_most)
    logs = np.where(is_spent, budget, logs + np.where(is_at_most, rng.uniform(0, np.log(2), len(logs)), 0))
    side = is_spent.astype(int) - is_at_most
    keep = ~learning.failures(lengths[group], logs, side, is_spent)
    values, group = np.unique(lengths[group[keep]], return_inverse=True)
    return from_logs(values, group, logs[keep], side[keep])


def coverage(case, repeats):
    """How often the interval holds the exponent, its median width, the exponent's mean error, how often there is one.

    The interval is by misfit and lane noise, or for three lengths by lane noise alone.
    """
    rng, by = np.random.default_rng(0), line_fit.BY_NOISE if case.lengths == 3 else line_fit.BY_MISFIT
    found = []
    for _ in range(repeats):
        means = means_of(case, rng)
        if means.is_measured.sum() > 2:  # Otherwise there is no exponent.
            found.append(line_fit.slope(np.log(means.x), means))
    found = np.array([slope[:3] for slope in found if slope.by == by]).reshape(-1, 3)
    if not len(found):
        return np.nan, np.nan, np.nan, 0.0
    values, low, high = found.T
    holds = (low <= case.exponent) & (case.exponent <= high)
    return holds.mean(), np.median(high - low), (values - case.exponent).mean(), len(found) / repeats


def laws_found(case, repeats):
    """Shares of simulated curves whose law is found, and whose other law is."""
    rng = np.random.default_rng(0)
    names = pd.Series([laws.law(means_of(case, rng)).name for _ in range(repeats)])
    return names.eq(case.law).mean(), (~names.isin([case.law, laws.UNDECIDED])).mean()


KINDS = {
    'all reach': {},
    '1 at budget': {'censored': 1},
    '2 at budget': {'censored': 2},
    '30 % at most': {'at_most': 0.3},
    '20 % fail, far': {'failing': 0.2, 'room': 3.0},
    '20 % fail, near': {'failing': 0.2, 'room': 0.3},
}


def covered(repeats):
    """The table of intervals."""
    table = [
        (lengths, lanes, misfit, kind, *coverage(Case(lengths, lanes, misfit, **settings), repeats))
        for lengths in LENGTHS for lanes in LANES for misfit in MISFITS for kind, settings in KINDS.items()
    ]  # fmt: skip
    numbers = ['coverage', 'median width', 'mean error', 'share']
    return pd.DataFrame(table, columns=['lengths', 'lanes', 'misfit τ', 'not reached', *numbers])


def told(repeats):
    """The table of laws."""
    table = [
        (lengths, lanes, misfit, law, *laws_found(Case(lengths, lanes, misfit, exponent=exponent, law=law), repeats))
        for lengths in LENGTHS if lengths > 3 for lanes in LANES for misfit in MISFITS
        for law, exponent in ((laws.POWER, 1.0), (laws.POWER_OF_LOG, 2.0))
    ]  # fmt: skip
    return pd.DataFrame(table, columns=['lengths', 'lanes', 'misfit τ', 'law', 'found', 'the other found'])


def main(repeats=1000):
    """Writes both tables."""
    intervals = covered(repeats)
    frequent = intervals[intervals['share'] > 0.5]
    often = frequent[frequent['lengths'] > 3]['coverage']
    three = frequent[frequent['lengths'] == 3].groupby('misfit τ')['coverage'].mean()
    text = (
        f'# Exponents: coverage of the 95% intervals\n\n{__doc__.split(chr(10) * 2, 2)[2]}\n'
        f'{repeats} curves a line. Coverage of four and more lengths lies between {often.min():.3f} and '
        f'{often.max():.3f} ({often.mean():.3f} on average) where most curves have an interval; that of three lengths '
        f'is {", ".join(f"{value:.2f} for τ = {misfit}" for misfit, value in three.items())} on average.\n\n'
        f'{formats.markdown(intervals.round(4), digits=3)}\n'
        f'# N^a or (log N)^p\n\n{formats.markdown(told(repeats // 4), digits=3)}'
    )
    files.write_text(pathlib.Path(__file__).with_suffix('.md'), text)


if __name__ == '__main__':
    main()
