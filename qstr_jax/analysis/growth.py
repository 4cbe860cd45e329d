"""Two laws of growth, N^a and (log N)^p, fitted to the same samples; over a few short lengths they look alike."""

import numpy as np
import pandas as pd

from qstr_jax.analysis.curves import split_curves
from qstr_jax.analysis.exponents import exponent
from qstr_jax.analysis.names import ordered, value_text

_NUM_DRAWS = 2000


def log_power(lanes: pd.DataFrame) -> tuple[float, float]:
    """The power p of (log N)^p by least squares of log(mean samples) on log log N, and how often N^a fits better.

    Args:
        lanes: the lanes of one curve, all of which reached the threshold.

    Returns:
        p, and the share of bootstraps (lanes resampled at each N, seeded) in which N^a leaves the smaller sum of
        squares. Near 0 or 1 the lanes tell the two laws apart; in between they do not.
    """
    samples = [np.sort(cell['samples_to_threshold'].to_numpy(float)) for _, cell in lanes.groupby('seq_len')]
    log_n = np.log(np.array(sorted(set(lanes['seq_len'])), float))
    power = np.polyfit(np.log(log_n), np.log([lane.mean() for lane in samples]), 1)[0]
    rng = np.random.default_rng(0)
    draws = [rng.choice(lane, (_NUM_DRAWS, lane.size)).mean(axis=1) for lane in samples]
    log_means = np.log(np.stack(draws))
    return float(power), float(np.mean(_misfit(log_n, log_means) < _misfit(np.log(log_n), log_means)))


def growth(rows: pd.DataFrame) -> pd.DataFrame:
    """Both laws for every curve against N: N^a with its interval, and (log N)^p.

    Args:
        rows: one row per lane, as for `samples_table`.

    Returns:
        curve (its name), N (where every lane reached), exponent, low, high, log_power, power_is_better (the share of
        `log_power`); NaN where fewer than three N are left.
    """
    table = []
    for curve in split_curves(rows):
        fit = exponent(curve.lanes)
        reached = curve.lanes[~curve.lanes['seq_len'].isin(fit.left_out)]
        power, share = log_power(reached) if fit.value is not None else (np.nan, np.nan)
        name = ', '.join([curve.name, *map(value_text, curve.task.values())])
        lengths = ', '.join(map(value_text, ordered(reached['seq_len'])))
        table.append((name, lengths, fit.value, fit.low, fit.high, power, share))
    names = ['curve', 'N', 'exponent', 'low', 'high', 'log_power', 'power_is_better']
    return pd.DataFrame(table, columns=names).astype(dict.fromkeys(names[2:], float))


def _misfit(x: np.ndarray, log_means: np.ndarray) -> np.ndarray:
    """Sum of squares that a straight line in x (lengths,) leaves of log means (lengths, draws), (draws,)."""
    return np.polyfit(x, log_means, 1, full=True)[1]
