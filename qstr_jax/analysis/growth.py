"""Two laws of growth, N^a and (log N)^p, of every curve; over a few short lengths they look alike."""

import numpy as np
import pandas as pd

from qstr_jax.analysis.curves import split_curves
from qstr_jax.analysis.exponents import Exponent, exponent
from qstr_jax.analysis.names import ordered, setting_text, value_text

_COLUMNS = ('curve', 'N', 'exponent', 'low', 'high', 'interval_by', 'fitted_to', 'local_slopes', 'log_power', 'law',
            'difference', 'note')  # fmt: skip


def growth(rows: pd.DataFrame) -> pd.DataFrame:
    """Both laws for every curve against N: N^a with its interval, and (log N)^p."""
    table = []
    for curve in split_curves(rows):
        fit = exponent(curve.lanes)
        name = ', '.join([curve.name, *(setting_text(*item) for item in curve.task.items())])
        lengths = [value_text(value) for value in ordered(curve.lanes['seq_len']) if value not in fit.left_out]
        value, low, high = (np.nan if part is None else part for part in (fit.value, fit.low, fit.high))
        power = fit.law.log_power.value if fit.law else np.nan
        difference = fit.law.difference if fit.law else np.nan
        table.append(
            (name, ', '.join(lengths), value, low, high, fit.interval_by, fit.fitted_to, local_slopes(fit), power,
             law(fit), difference, fit.note)
        )  # fmt: skip
    return pd.DataFrame(table, columns=list(_COLUMNS))


def local_slopes(fit: Exponent) -> str:
    """'1.21, 0.40, −0.05': the exponents between neighbouring values of N; '–' if there are none."""
    return ', '.join(f'{slope:.2f}'.replace('-', '−') for slope in fit.local_slopes) or '–'


def law(fit: Exponent) -> str:
    """'N^a', '(log N)^1.5', 'undecided', or 'undecided: N = 4 decides'; '–' where there is no fit of both laws."""
    if fit.law is None:
        return '–'
    if fit.law.deciding is not None:
        return f'{fit.law.name}: N = {fit.law.deciding} decides'
    return fit.law.name.replace('p', f'{fit.law.log_power.value:.1f}')
