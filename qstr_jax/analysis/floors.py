"""Runs beside the floors of their own draw: tables in, tables out."""

import pandas as pd

from qstr_jax import analysis

# What a run and its oracle share.
DRAW = ('task', 'seq_len', 'token_dim', 'seed', 'task_seed', 'num_samples')
# Models that Theorem 6 is about; all others are controls.
BOUND = ('ffn', 'theorem6_oracle')
# A run is below its floor by more than so many standard errors, and more than rounding at a floor of 0.
NUM_SE = 3
ROUNDING = 1e-5


def with_floor(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows with the floor of their own u and training set, taken from the oracle's row of the same draw.

    Args:
        rows: rows with the models that are compared and 'theorem6_oracle', which has the column `theorem6_floor`.

    Returns:
        The rows with `floor`, `load` = n/(Nd), `margin` = test loss − floor and `is_bound` (Theorem 6 is about it).

    Raises:
        ValueError: no oracle, or a run without one.
    """
    analysis.require(rows, (*DRAW, 'model', 'learner', 'test_loss', 'test_loss_se'))
    oracle = rows[rows['model'] == 'theorem6_oracle']
    if oracle.empty or 'theorem6_floor' not in rows.columns:
        raise ValueError("rows have no floor: add the model 'theorem6_oracle' and the probe 'theorem6_floor'")
    floors = oracle.drop_duplicates(list(DRAW)).set_index(list(DRAW))['theorem6_floor'].rename('floor')
    joined = rows.join(floors, on=list(DRAW))
    if joined['floor'].isna().any():
        missing = joined[joined['floor'].isna()].iloc[0]
        raise ValueError(f'no oracle for {dict(missing[list(DRAW)])}')
    size = joined['seq_len'] * joined['token_dim']
    return joined.assign(
        load=joined['num_samples'] / size,
        margin=joined['test_loss'] - joined['floor'],
        is_bound=joined['model'].str.split(' ').str[0].isin(BOUND),
    )


def floor_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Per model, learner and n/(Nd): the mean loss beside 1 − n/(Nd), and the worst run against its own floor.

    Args:
        rows: of `with_floor`.

    Returns:
        Columns: model, learner, load, num_runs, test_loss (mean), printed_floor, own_floor (mean), worst_se (the
        smallest margin in standard errors), num_below (runs more than three standard errors below their floor),
        span_residual (largest) where there is one, num_converged.
    """
    table = []
    for (model, learner, load), runs in rows.groupby(['model', 'learner', 'load']):
        margin_se = runs['margin'].mask(runs['margin'].abs() < ROUNDING, 0) / runs['test_loss_se']
        table.append(
            {
                'model': model,
                'learner': learner,
                'load': load,
                'num_runs': len(runs),
                'test_loss': runs['test_loss'].mean(),
                'printed_floor': max(0.0, 1 - load),
                'own_floor': runs['floor'].mean(),
                'worst_se': margin_se.min(),
                'num_below': int((runs['margin'] < -NUM_SE * runs['test_loss_se'] - ROUNDING).sum()),
                'span_residual': runs['span_residual'].max() if 'span_residual' in runs.columns else float('nan'),
                'num_converged': int(runs['converged'].sum()),
            }
        )
    return pd.DataFrame(table)
