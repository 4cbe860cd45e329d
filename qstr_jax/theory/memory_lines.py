"""Lines beside n* that say what memorising allows: the capacity for random labels, and twisted teachers."""

from typing import Any

import numpy as np
import pandas as pd

from qstr_jax import analysis, tasks
from qstr_jax.theory import capacity, twisted_teacher

_RULE = ['encoding_factor', 'encoding_dim', 'max_coherence']
_SIZES = ['sparsity', 'token_dim', 'encoding_scale']
_NUM_DRAWS = 5
_COLUMNS = ['name', 'seq_len', *_RULE, 'samples']


def capacity_lines(rows: pd.DataFrame) -> pd.DataFrame:
    """The capacity for random labels at each N, a line per radius: the geometric mean over lanes."""
    fits = rows[rows['task'].eq(capacity.RandomLabels.name) & rows['outcome'].eq('fitted')]
    groups = fits.groupby(['radius', 'seq_len', *_RULE], dropna=False)
    counts = groups['seed'].nunique()
    draws = ' to '.join(dict.fromkeys(map(str, (counts.min(), counts.max()))))
    found = []
    for (radius, n, *rule), lanes in groups:
        values = [capacity.capacity(lane['num_samples'], lane['train_risk']).value for _, lane in lanes.groupby('seed')]
        name = f'fits random labels ({draws} draws), {analysis.setting_text("radius", radius)}'
        found.append((name, n, *rule, float(np.exp(np.mean(np.log(values))))))
    return pd.DataFrame(found, columns=_COLUMNS)


def twisted_lines(rows: pd.DataFrame, *, threshold: float) -> pd.DataFrame:
    """The largest n at which a twisted teacher is an ERM that fails, for each N and rule: the median over draws."""
    found = []
    for (n, *rule), lanes in rows.groupby(['seq_len', *_RULE], dropna=False):
        task, is_pointwise = _task(lanes.iloc[0]), lanes['risk'].iloc[0] == 'pointwise'
        asked = 1 if is_pointwise or task.shares_indices else task.seq_len
        samples = twisted_teacher.samples(task, range(_NUM_DRAWS), asked_per_prompt=asked, threshold=threshold)
        found.append(('twisted teacher, R = 1', n, *rule, float(np.median(samples)) or np.nan))
    return pd.DataFrame(found, columns=_COLUMNS)


def _task(row: Any) -> Any:
    """The task of a row."""
    settings = {name: row[name] for name in ('seq_len', *_RULE, *_SIZES) if not pd.isna(row[name])}
    whole = {name: int(settings[name]) for name in ('seq_len', 'encoding_dim', 'sparsity', 'token_dim')}
    return tasks.build(row['task'], **settings | whole)
