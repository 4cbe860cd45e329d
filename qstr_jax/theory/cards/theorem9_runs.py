"""Trained RNNs of the card of Theorem 9: of least norm on n samples, and on fresh prompts."""

from typing import Any

import jax
import numpy as np
import pandas as pd

from qstr_jax import learners, models, tasks
from qstr_jax.theory import networks
from qstr_jax.theory.cards import fixed_sample, training
from qstr_jax.theory.sparse_task import SparseTask

LEAST, ONLINE = 'least norm', 'fresh prompts'
WIDTH, READOUT = 16, 128
DEPTH = 2  # L_y


def _task(seq_len: int) -> SparseTask:
    return tasks.build('qstr', seq_len=seq_len, sparsity=1, token_dim=1, link='linear', encoding_dim=8)


def _module() -> models.Recurrent:
    return models.Recurrent(width=WIDTH, cell='gru', states='exclusive', readout='mlp', readout_widths=(READOUT,))


def _least(settings: Any, seq_len: int) -> list[dict[str, Any]]:
    """The RNNs of least norm that fit n samples of the point-wise risk, for every n and lane."""
    learner = learners.MinNorm(
        epsilon=settings.epsilon,
        bisections=settings.bisections,
        risk='pointwise',
        batch_size=32,
        schedule='cosine',
        max_steps=settings.steps,
        check_every=max(1, settings.steps // 4),
        test_samples=settings.test_samples,
        validation_samples=1,
    )
    lanes = [(size, seed) for size in settings.trained_samples for seed in range(settings.num_lanes)]
    sizes, seeds = zip(*lanes, strict=True)
    columns = fixed_sample.run(_task(seq_len), _module(), learner, sizes=sizes, seeds=seeds, learning_rate=1e-2).columns
    return [
        {
            'network': LEAST,
            'seq_len': seq_len,
            'num_samples': size,
            'lane': seed,
            'square': float(columns['norm'][k]) ** 2,
            'loss': float(columns['test_loss'][k]),
            'error': float(columns['test_loss_se'][k]),
            'converged': bool(columns['converged'][k]),
        }
        for k, (size, seed) in enumerate(lanes)
    ]


def _online(settings: Any, seq_len: int) -> list[dict[str, Any]]:
    """The same RNN, trained on fresh prompts: its norm bounds from above what retrieving costs."""
    how = training.Training(
        steps=settings.online_steps,
        batch_size=64,
        learning_rate=5e-3,
        windows=min(20, settings.online_steps),
        test_samples=settings.test_samples,
    )
    fit = training.train(_task(seq_len), _module(), how, settings.num_lanes)
    losses_K, errors_K = training.loss_at(fit)
    params_K = jax.device_get(fit.params_K)
    squares = [networks.square_norm(training.lane(params_K, k)) for k in range(settings.num_lanes)]
    common = {'network': ONLINE, 'seq_len': seq_len, 'num_samples': settings.online_steps * 64, 'converged': True}
    return [
        {**common, 'lane': k, 'square': square, 'loss': float(losses_K[k]), 'error': float(errors_K[k])}
        for k, square in enumerate(squares)
    ]


def measure(settings: Any, bar: Any) -> pd.DataFrame:
    """Norms and risks of all trained RNNs.

    Args:
        settings: of the card.
        bar: progress bar.
    """
    rows = []
    for seq_len in bar(settings.trained_lens, 'trained, N'):
        rows += _least(settings, seq_len) + _online(settings, seq_len)
    return pd.DataFrame(rows)


def exponent_in_length(rows: pd.DataFrame) -> tuple[float, float]:
    """b with ‖Θ‖² ∝ N^b at each n, and its standard error, by least squares with a level of its own for each n.

    Args:
        rows: with the columns num_samples, seq_len and square; at least two N.
    """
    x, y = np.log(rows['seq_len'].to_numpy(float)), np.log(rows['square'].to_numpy(float))
    groups = rows['num_samples'].to_numpy()
    for group in np.unique(groups):
        x[groups == group] -= x[groups == group].mean()
        y[groups == group] -= y[groups == group].mean()
    slope = float(x @ y / (x @ x))
    freedom = max(1, len(x) - len(np.unique(groups)) - 1)
    return slope, float(np.sqrt(np.sum((y - slope * x) ** 2) / freedom / (x @ x)))
