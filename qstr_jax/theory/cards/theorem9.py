"""Card of Theorem 9: the norm that memorises n samples against the norm that generalises at N."""

import dataclasses
import itertools
import math
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from qstr_jax import tasks
from qstr_jax.theory import interpolation, rates, recurrences, rnn_sizes
from qstr_jax.theory.cards import card, draws, fits, training

NAME = 'theorem9'
DEPTH = 4  # layers of the storing RNN's read-out, L_y


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of the card.

    Attributes:
        num_samples: values of n, the prompts that the memoriser fits.
        draws: memorisers for each n.
        seq_len: N of the memoriser's task.
        seq_lens: values of N of the storing RNN's task.
        token_dim: d.
        test_samples: prompts on which the memoriser's risk is measured.
    """

    num_samples: tuple = (8, 16, 32, 64, 128)
    draws: int = 5
    seq_len: int = 16
    seq_lens: tuple = (8, 16, 32, 64)
    token_dim: int = 10
    test_samples: int = 2000


def _memoriser(settings: Settings, num_samples: int, draw: int) -> dict[str, Any]:
    """Norms, training risk (point-wise) and population risk of one memoriser."""
    task = tasks.build('qstr', seq_len=settings.seq_len, sparsity=1, token_dim=settings.token_dim, link='linear')
    with jax.enable_x64(True):
        task_draw, prompts = draws.draw(task, num_samples, seed=10 + draw)
        _, fresh = draws.draw(task, settings.test_samples, seed=1000)
        positions_B = tasks.positions(jax.random.key(draw), jnp.arange(num_samples), settings.seq_len)
        built = interpolation.memorising(jax.random.key(draw), prompts, positions_B, task)
        fitted_BxN = draws.square_errors(built.module, built.params, prompts, task, task_draw)
        risk = np.mean(fitted_BxN[np.arange(num_samples), np.asarray(positions_B)])
        errors_BxN = draws.square_errors(built.module, built.params, fresh, task, task_draw)
    loss, spread = training.mean_and_error(errors_BxN.mean(axis=1))
    return {
        'num_samples': num_samples,
        'draw': draw,
        'square': built.norms['square'],
        'risk': float(risk),
        'layerwise': built.norms['square_layerwise'],
        'bound': built.bounds['square'],
        'loss': float(loss),
        'error': float(spread),
    }


def _storing(settings: Settings, seq_len: int) -> dict[str, Any]:
    """‖Θ‖² of the RNN that stores all tokens, exact at every N, with states in the unit ball (r_h = 1)."""
    task = tasks.build('qstr', seq_len=seq_len, sparsity=1, token_dim=settings.token_dim, link='linear')
    with jax.enable_x64(True):
        task_draw, prompts = draws.draw(task, 2)
        bound = float(jnp.max(jnp.abs(prompts.x_NxD)))
        radius = float(jnp.max(jnp.linalg.norm(prompts.x_NxD, axis=-1)))
        built = recurrences.storing(task, task_draw, bound, radius=radius, state_radius=1.0)
        error = draws.largest_error(built.module, built.params, prompts, task, task_draw)
    return {
        'seq_len': seq_len,
        'square': built.norms['param_norm'] ** 2,
        'width': seq_len * task.token_dim,
        'error': error,
    }


def _finding(settings: Settings, rows: pd.DataFrame, stored: pd.DataFrame, fit: tuple[float, float, float]) -> str:
    """Where the two upper lines cross, and where the proven lower line would; `fit` is (scale, exponent, spread)."""
    scale, exponent, spread = fit
    crossing = [f'{(row.square / scale) ** (1 / exponent):.0f} (N = {row.seq_len})' for row in stored.itertuples()]
    last, smallest = stored.iloc[-1], min(settings.num_samples)
    proven = rnn_sizes.theorem9_generalise(last['seq_len'], last['width'], DEPTH)
    cost = float(rows['square'][rows['num_samples'] == smallest].mean())
    layerwise, _ = fits.slope(rows['num_samples'], rows['layerwise'])
    return (
        f'‖Θ‖² ∝ n^{exponent:.2f} ± {spread:.2f} with one factor per unit, n^{layerwise:.2f} with one for all. '
        f'Memorising is cheaper than our storing RNN below n = {", ".join(crossing)}. The proven side is far lower: '
        f'with constant 1 it asks for ‖Θ‖² ≥ {proven:.1f} at N = {last["seq_len"]:.0f}, and reaches the {cost:.0f} '
        f'that n = {smallest} costs where N/log d_h = {cost**DEPTH:.0e}. The statement is asymptotic: no finite run '
        'tests its threshold.'
    )


def checks_of(rows: pd.DataFrame, stored: pd.DataFrame, floor: float) -> tuple[card.Check, ...]:
    """The comparisons of the verdict.

    Args:
        rows: of the memorisers.
        stored: of the storing RNNs.
        floor: the risk of a network that retrieves nothing.
    """
    exponent, spread = fits.slope(rows['num_samples'], rows['square'])
    means = rows.groupby('num_samples')['square'].mean()
    ratio = means / means.index.to_numpy(float) ** 3
    return (
        card.below('training risk of the memoriser ≤ 1e-8', rows['risk'], 1e-8),
        card.below('‖Θ‖² ≤ the bound of Lemma 38', rows['layerwise'], rows['bound']),
        card.below('mean ‖Θ‖²/n³ is largest at the smallest n', ratio, ratio.iloc[0]),
        card.below('exponent of ‖Θ‖² in n ≤ 3', exponent, 3.0, spread),
        card.above('it retrieves nothing: risk ≥ 1 − 1/N', rows['loss'], floor, rows['error']),
        card.below('the storing RNN (r_h = 1) is exact', stored['error'], 1e-9),
    )


def make(settings: Settings, bar: card.Bar) -> card.Card:
    """Makes the card.

    Args:
        settings: of the card.
        bar: progress bar.
    """
    cells = list(itertools.product(settings.num_samples, range(settings.draws)))
    rows = pd.DataFrame([_memoriser(settings, *cell) for cell in bar(cells, 'n')])
    stored = pd.DataFrame([_storing(settings, seq_len) for seq_len in bar(settings.seq_lens, 'N')])
    exponent, spread = fits.slope(rows['num_samples'], rows['square'])
    scale = math.exp(np.mean(np.log(rows['square']) - exponent * np.log(rows['num_samples'])))
    floor = 1 - 1 / settings.seq_len
    return card.Card(
        name=NAME,
        statement='Theorem 9, Lemmas 36-38',
        claim='Fitting n samples of the point-wise risk costs ‖Θ‖² = O(n³), retrieving costs Ω((N/log d_h)^(1/L_y)): '
        'for small n the least norm memorises.',
        setting=f'1STR, linear, d = {settings.token_dim}; memoriser at N = {settings.seq_len}, {settings.draws} draws, '
        f'float64; storing RNN with L_y = {DEPTH}, d_h = N d; risk on {settings.test_samples:,} fresh prompts.',
        panels=(
            card.Panel('memorising n samples', 'n', '‖Θ‖²', log_x=True, log_y=True),
            card.Panel('retrieving at N', 'N', '‖Θ‖²', log_x=True, log_y=True),
            card.Panel(
                f'risk of the memoriser, N = {settings.seq_len}', 'n', 'population risk', log_x=True, log_y=True
            ),
        ),
        points=pd.DataFrame(_points(rows, stored)),
        lines=pd.DataFrame(_lines(settings, rows, stored, floor)),
        checks=checks_of(rows, stored, floor),
        finding=_finding(settings, rows, stored, (scale, exponent, spread)),
    )


NORMS = {'square': 'one factor per unit', 'layerwise': 'one factor for all', 'bound': 'bound of Lemma 38'}


def _points(rows: pd.DataFrame, stored: pd.DataFrame) -> Iterator[dict[str, Any]]:
    for num_samples, chosen in rows.groupby('num_samples'):
        for column, name in NORMS.items():
            spread = chosen[column].std() / math.sqrt(len(chosen))
            yield card.point(0, name, num_samples, chosen[column].mean(), spread)
    for row in rows.itertuples():
        yield card.point(2, 'memoriser', row.num_samples, row.loss, row.error)
    for row in stored.itertuples():
        yield card.point(1, 'storing RNN', row.seq_len, row.square)


def _lines(settings: Settings, rows: pd.DataFrame, stored: pd.DataFrame, floor: float) -> list[dict[str, Any]]:
    counts, lengths = list(settings.num_samples), list(settings.seq_lens)
    at = rows[rows['num_samples'] == counts[-1]]['square'].mean()
    cubic = rates.through(rnn_sizes.theorem9_memorise, counts[-1], at)
    lines = card.line(0, '∝ n³', counts, [cubic(n) for n in counts])
    lower = [rnn_sizes.theorem9_generalise(row.seq_len, row.width, DEPTH) for row in stored.itertuples()]
    lines += card.line(1, '(N/log d_h)^(1/L_y), constant 1', lengths, lower)
    return lines + card.line(2, '1 − 1/N', counts, [floor] * len(counts))
