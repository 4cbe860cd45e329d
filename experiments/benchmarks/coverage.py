r"""How often the 95% interval of an exponent holds it, by simulation, and how often the right law is found.

python -m experiments.benchmarks.coverage

Writes coverage.md beside this file (four minutes of a core). Samples of a lane are N^1 times lognormal noise between
lanes (σ = 0.1) and a lognormal misfit of each length (τ). Where `censored` is 1 or 2 the budget is the median of what
the longest length needs, or the longest but one.
"""

import dataclasses
import pathlib

import numpy as np
import pandas as pd

from qstr_jax.analysis import formats, laws, line_fit
from qstr_jax.analysis.log_means import from_logs
from qstr_jax.storage import files

LENGTHS = {
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
        lengths: as many N as a key of `LENGTHS`.
        lanes: of each length.
        misfit: τ.
        censored: so many of the longest N have their censoring point within their lanes.
        exponent: a; or p where the law is (log N)^p.
        law: of `laws`.
    """

    lengths: int
    lanes: int
    misfit: float = 0.0
    censored: int = 0
    exponent: float = 1.0
    law: str = laws.POWER


def means_of(case, rng):
    """Log means of one simulated curve."""
    lengths = np.array(LENGTHS[case.lengths], float)
    x = np.log(lengths) if case.law == laws.POWER else np.log(np.log(lengths))
    expected = case.exponent * x
    group = np.repeat(np.arange(len(x)), case.lanes)
    logs = (expected + rng.normal(0, case.misfit, len(x)))[group] + rng.normal(0, NOISE, len(group))
    bound = expected[-case.censored] if case.censored else np.inf
    return from_logs(lengths, group, np.minimum(logs, bound), (logs > bound).astype(int))


def coverage(case, repeats, seed=0):
    """How often the interval holds the exponent, its median width, and the mean error of the exponent."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(repeats):
        means = means_of(case, rng)
        if means.is_measured.sum() > 2:  # Otherwise there is no exponent.
            found.append(line_fit.slope(np.log(means.x), means.mean, means.variance, means.side))
    values, low, high = np.array(found).T
    holds = (low <= case.exponent) & (case.exponent <= high)
    return holds.mean(), np.median(high - low), (values - case.exponent).mean()


def laws_found(case, repeats, seed=0):
    """Shares of simulated curves whose law is found, and whose other law is."""
    rng = np.random.default_rng(seed)
    names = [laws.law(means_of(case, rng)).name for _ in range(repeats)]
    return np.mean([name == case.law for name in names]), np.mean(
        [name not in (case.law, laws.UNDECIDED) for name in names]
    )


def main(repeats=1000):
    """Writes both tables."""
    covered, told = [], []
    for lengths in LENGTHS:
        for lanes in LANES:
            for misfit in MISFITS:
                for censored in (0, 1, 2):
                    found = coverage(Case(lengths, lanes, misfit, censored), repeats)
                    covered.append((lengths, lanes, misfit, censored, *found))
                for law, exponent in ((laws.POWER, 1.0), (laws.POWER_OF_LOG, 2.0)):
                    found = laws_found(Case(lengths, lanes, misfit, exponent=exponent, law=law), repeats // 4)
                    told.append((lengths, lanes, misfit, law, *found))
    names = ['lengths', 'lanes', 'misfit τ', 'censored', 'coverage', 'median width', 'mean error']
    intervals = pd.DataFrame(covered, columns=names)
    found = pd.DataFrame(told, columns=['lengths', 'lanes', 'misfit τ', 'law', 'found', 'the other found'])
    least, most = intervals['coverage'].min(), intervals['coverage'].max()
    text = (
        f'# Exponents: coverage of the 95% intervals\n\n{__doc__.split(chr(10) * 2, 2)[2]}\n'
        f'{repeats} curves a line. Coverage lies between {least:.3f} and {most:.3f}.\n\n'
        f'{formats.markdown(intervals.round(4), digits=3)}\n# N^a or (log N)^p\n\n{formats.markdown(found, digits=3)}'
    )
    files.write_text(pathlib.Path(__file__).with_suffix('.md'), text)


if __name__ == '__main__':
    main()
