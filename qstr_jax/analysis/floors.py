"""Theorem 6's floor, and where it meets trained networks: each run beside the floor of its own training set."""

import pandas as pd

from qstr_jax import columns
from qstr_jax.analysis.curves import require
from qstr_jax.settings import checks

# The models that Theorem 6 is about; all others are controls.
BOUND_MODELS = ('ffn', 'theorem6_oracle')
# A run counts as below its floor if it is at least this many standard errors below,
NUM_SE = 3
# and if the distance is more than rounding, which matters where the floor is 0.
ROUNDING = 1e-5
# The error of a network that predicts nothing: the variance of a linear label.
VARIANCE = 1.0


def theorem6_floor(num_samples: float, seq_len: int, token_dim: int) -> float:
    """Theorem 6: sup_u E[R | S_n] ≥ 1 − n/(N d) for every stationary point or min-norm ε-ERM of an FFN."""
    for name, value, least in ('seq_len', seq_len, 1), ('token_dim', token_dim, 1), ('num_samples', num_samples, 0):
        checks.number(name, value, least)
    return max(0.0, 1 - num_samples / (seq_len * token_dim))


def with_floor(rows: pd.DataFrame) -> pd.DataFrame:
    """Joins each run with the floor of its own u and training set, which the oracle's row of the same draw holds."""
    require(rows, ('task', 'seq_len', 'token_dim', 'seed', 'num_samples', 'model', 'learner', 'test_loss'))
    require(rows, ('test_loss_se',))
    oracle = rows[rows['model'] == 'theorem6_oracle']
    if oracle.empty or 'theorem6_floor' not in rows.columns:
        raise ValueError("rows have no floor: add the model 'theorem6_oracle' and the probe 'theorem6_floor'")
    seeds = [name for name in ('seed', 'task_seed') if name in rows.columns]
    draw = [*columns.with_role(rows.columns, 'task'), *seeds, 'num_samples']
    floors = oracle.drop_duplicates(draw)[[*draw, 'theorem6_floor']].rename(columns={'theorem6_floor': 'floor'})
    joined = rows.merge(floors, on=draw, how='left')
    joined.index = rows.index
    if joined['floor'].isna().any():
        missing = joined[joined['floor'].isna()].iloc[0]
        raise ValueError(f'no oracle for {dict(missing[draw])}')
    places = joined[['num_samples', 'seq_len', 'token_dim']].astype(int).itertuples(index=False, name=None)
    return joined.assign(
        load=joined['num_samples'] / (joined['seq_len'] * joined['token_dim']),
        printed_floor=[theorem6_floor(*place) for place in places],
        margin=joined['test_loss'] - joined['floor'],
        is_bound=joined['model'].isin(BOUND_MODELS),
    )


def floor_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Per model, learner and n/(Nd): the mean loss, the mean floors, and the worst run against its own floor."""
    table = []
    for (model, learner, load), runs in rows.groupby(['model', 'learner', 'load'], dropna=False):
        margin_se = runs['margin'].mask(runs['margin'].abs() < ROUNDING, 0) / runs['test_loss_se']
        table.append(
            {
                'model': model,
                'learner': learner,
                'load': load,
                'num_runs': len(runs),
                'test_loss': runs['test_loss'].mean(),
                'printed_floor': runs['printed_floor'].mean(),
                'own_floor': runs['floor'].mean(),
                'worst_se': margin_se.min(),
                'num_below': int((runs['margin'] < -NUM_SE * runs['test_loss_se'] - ROUNDING).sum()),
                'span_residual': runs['span_residual'].max() if 'span_residual' in runs.columns else float('nan'),
                'num_converged': int(runs['converged'].sum()),
            }
        )
    return pd.DataFrame(table)
