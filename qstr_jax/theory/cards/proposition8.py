"""Card of Proposition 8: the least width of an RNN on 1STR, its sensitivity L²‖U‖², and its states in bits."""

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from qstr_jax import models, tasks
from qstr_jax.theory import floors, recurrences, rnn_sizes
from qstr_jax.theory.cards import card, draws, fits, states, training
from qstr_jax.theory.sparse_task import SparseTask

NAME = 'proposition8'


@dataclasses.dataclass(frozen=True)
class Settings(training.Settings):
    """Settings of the card.

    Attributes:
        seq_lens: values of N.
        eighths: widths as eighths of N, tried from the narrowest.
        target: the test loss to reach.
        readout_width: width of the read-out's two hidden layers.
        bits: bits per coordinate of quantised states.
    """

    seq_lens: tuple = (4, 8, 16)
    eighths: tuple = (2, 4, 5, 6, 8)
    target: float = 0.25
    steps: int = 2500
    learning_rate: float = 5e-3
    readout_width: int = 128
    bits: tuple = (1, 2, 3, 4)
    test_samples: int = 4000


def task_of(seq_len: int) -> SparseTask:
    """1STR with d = 1 and encodings that are far apart.

    Args:
        seq_len: N.
    """
    encoding_dim = max(8, round(6 * math.log(seq_len)))
    return tasks.build('qstr', seq_len=seq_len, sparsity=1, token_dim=1, link='linear', encoding_dim=encoding_dim)


def _train(settings: Settings, seq_len: int, width: int) -> training.Fit:
    """Trains an exclusive GRU with a ReLU f_y of two hidden layers."""
    module = models.Recurrent(
        width=width,
        cell='gru',
        states='exclusive',
        readout='mlp',
        readout_widths=(settings.readout_width,) * 2,
    )
    return training.train(task_of(seq_len), module, training.of(settings), 1)


def _rows(settings: Settings, seq_len: int, width: int) -> list[dict[str, Any]]:
    """Losses of one trained network: as it is (bits = 0), and with quantised states."""
    fit = _train(settings, seq_len, width)
    params, data = training.lane(fit.params_K, 0), training.lane(fit.data_K, 0)
    losses_K, errors_K = training.loss_at(fit)
    above, below = states.bounds_of(params, data, fit.problem, width)
    rows: list[dict[str, Any]] = [{'bits': 0, 'loss': float(losses_K[0]), 'error': float(errors_K[0])}]
    for bits in settings.bits:
        loss, error = training.mean_and_error(states.quantised_errors(params, data, fit.problem, bits))
        rows.append({'bits': bits, 'loss': float(loss), 'error': float(error)})
    common = {'seq_len': seq_len, 'width': width, 'above': above, 'below': below}
    return [{**common, **row} for row in rows]


def measure(settings: Settings, bar: card.Bar) -> pd.DataFrame:
    """Rows of all networks: for each N from the narrowest to the first that reaches the target.

    Args:
        settings: of the card.
        bar: progress bar.
    """
    rows: list[dict[str, Any]] = []
    for seq_len in settings.seq_lens:
        widths = sorted({max(1, round(part * seq_len / 8)) for part in settings.eighths})
        for width in bar(widths, f'N = {seq_len}, width'):
            rows += _rows(settings, seq_len, width)
            if rows[-len(settings.bits) - 1]['loss'] < settings.target:
                break
    return pd.DataFrame(rows)


def floor_of(rows: pd.DataFrame, share: float = 1.0) -> np.ndarray:
    """The floor of each row with quantised states.

    Args:
        rows: with the columns seq_len, width and bits.
        share: share of the bits that the states are taken to hold.
    """
    bits = share * 2 * rows['width'] * rows['bits']
    return np.array([floors.proposition8_bits(b, n) for b, n in zip(bits, rows['seq_len'], strict=True)])


def _storing_error(seq_len: int) -> float:
    """The largest error of the RNN with d_h = N d that stores every token."""
    with jax.enable_x64(True):
        task = task_of(seq_len)
        task_draw, prompts = draws.draw(task, 2)
        built = recurrences.storing(task, task_draw, float(jnp.max(jnp.abs(prompts.x_NxD))))
        return draws.largest_error(built.module, built.params, prompts, task, task_draw)


def checks_of(
    settings: Settings, plain: pd.DataFrame, coarse: pd.DataFrame, least: pd.DataFrame
) -> tuple[card.Check, ...]:
    """The comparisons of the verdict.

    Args:
        settings: of the card.
        plain: rows of trained networks as they are.
        coarse: rows with quantised states.
        least: for each N, the row of the narrowest network that reaches the target.
    """
    reached = [n in set(least['seq_len']) for n in settings.seq_lens]
    return (
        card.above(
            'quantised states: loss ≥ (1 − 1/N) 2^(−2B/(N−1)), B bits',
            coarse['loss'],
            floor_of(coarse),
            coarse['error'],
        ),
        power(coarse),
        card.above(f'every N reaches loss {settings.target:g} with d_h ≤ N', reached, 1),
        card.below('the storing RNN, d_h = N, is exact', [_storing_error(n) for n in settings.seq_lens], 1e-9),
        card.below('sampled L²‖U‖² ≤ layer products', plain['below'], plain['above']),
    )


def make(settings: Settings, bar: card.Bar) -> card.Card:
    """Makes the card.

    Args:
        settings: of the card.
        bar: progress bar.
    """
    rows = measure(settings, bar)
    plain, coarse = rows[rows['bits'] == 0], rows[rows['bits'] > 0]
    least = plain[plain['loss'] < settings.target].groupby('seq_len', as_index=False).first()
    return card.Card(
        name=NAME,
        statement='Proposition 8',
        claim='An RNN below a constant loss on 1STR has d_h ≥ Ω(N/log(1 + L²‖U‖²)) and L²‖U‖² ≥ Ω(N/log(1 + d_h)); '
        'storing every token, d_h = N d, is enough.',
        setting=f'1STR, linear, d = 1, exclusive GRU, f_y with two hidden layers of {settings.readout_width}, AdamW on '
        f'{settings.steps:,} × {settings.batch_size} fresh prompts, one lane; target loss {settings.target:g}.',
        panels=(
            card.Panel('trained, by width', 'd_h / N', 'test loss'),
            card.Panel(f'least width for loss {settings.target:g}', 'N', 'd_h'),
            card.Panel('sensitivity of these networks', 'N', 'L²‖U‖²', log_x=True, log_y=True),
            card.Panel('states rounded to B bits', '2B/(N − 1)', 'test loss', log_y=True),
        ),
        points=pd.DataFrame(_points(plain, coarse, least)),
        lines=pd.DataFrame(_lines(settings, plain, coarse, least)),
        checks=checks_of(settings, plain, coarse, least),
        finding=_finding(least, coarse),
    )


def power(coarse: pd.DataFrame) -> card.Check:
    """Checks that the floor of an eighth of the bits is crossed, which shows how wrong a floor the card would notice.

    Args:
        coarse: rows with quantised states.
    """
    wrong = card.above('', coarse['loss'], floor_of(coarse, share=1 / 8), coarse['error'])
    return card.fails('a wrong floor, of an eighth of the bits, is crossed', wrong)


def _spare_bits(coarse: pd.DataFrame) -> float:
    """The least ratio of the bits that states hold to those that their loss needs by the floor."""
    needed = -(coarse['seq_len'] - 1) / 2 * np.log2(coarse['loss'] / (1 - 1 / coarse['seq_len']))
    useful = needed > 0
    return float((2 * coarse['width'] * coarse['bits'] / needed)[useful].min()) if useful.any() else math.nan


def _finding(least: pd.DataFrame, coarse: pd.DataFrame) -> str:
    """Exponents if there are enough points, and what the card cannot show."""
    text = (
        'Ω hides constants: the lines of d_h and L²‖U‖² go through the first point; the floor in bits (ours) has '
        f'none, and the nearest rounded network holds {_spare_bits(coarse):.1f} times the bits that it asks for.'
    )
    if len(least) > 1:
        width, sense = (fits.exponent(least['seq_len'], least[name]) for name in ('width', 'below'))
        text = f'Exponents in N: least width {width}, its sampled L²‖U‖² {sense}. ' + text
    return text


def _points(plain: pd.DataFrame, coarse: pd.DataFrame, least: pd.DataFrame) -> Iterator[dict[str, Any]]:
    for row in plain.itertuples():
        yield card.point(0, f'N = {row.seq_len}', row.width / row.seq_len, row.loss, row.error)
    for row in least.itertuples():
        yield card.point(1, 'trained', row.seq_len, row.width)
        yield card.point(2, 'layer products', row.seq_len, row.above)
        yield card.point(2, 'sampled', row.seq_len, row.below)
    for row in coarse.itertuples():
        scaled = 4 * row.width * row.bits / (row.seq_len - 1)
        yield card.point(3, f'N = {row.seq_len}', scaled, row.loss, row.error)


def _lines(settings: Settings, plain: pd.DataFrame, coarse: pd.DataFrame, least: pd.DataFrame) -> list[dict[str, Any]]:
    lengths = list(settings.seq_lens)
    lines = card.line(0, f'target {settings.target:g}', [0, 1], [settings.target] * 2)
    lines += card.line(1, 'storing RNN, d_h = N', lengths, lengths)
    rate = np.linspace(0, 4 * np.max(coarse['width'] * coarse['bits'] / (coarse['seq_len'] - 1)), 40)
    lines += card.line(3, 'floor 2^(−2B/(N−1)) (1 − 1/N), least N', rate, (1 - 1 / min(lengths)) * 2.0**-rate)
    if len(least) > 1:
        first = least.iloc[0]
        at = list(least['seq_len'])
        widths = [rnn_sizes.proposition8_width(row.seq_len, math.sqrt(row.below)) for row in least.itertuples()]
        lines += card.line(1, '∝ N/log(1 + L²‖U‖²)', at, [first['width'] * w / widths[0] for w in widths])
        norms = [rnn_sizes.proposition8_norm(row.seq_len, row.width) for row in least.itertuples()]
        lines += card.line(2, '∝ N/log(1 + d_h)', at, [first['below'] * v / norms[0] for v in norms], of='sampled')
    return lines
