"""Card of Proposition 8: the least width of an RNN on 1STR, its sensitivity L²‖U‖², and its states in bits."""

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from qstr_jax import models, tasks
from qstr_jax.theory import floors, rnn_sizes
from qstr_jax.theory.cards import card, fits, states, training
from qstr_jax.theory.sparse_task import SparseTask

NAME = 'proposition8'
TRAINED, STORING = 'trained', 'storing RNN'


@dataclasses.dataclass(frozen=True)
class Settings(training.Settings):
    """Settings of the card.

    Attributes:
        seq_lens: values of N.
        eighths: widths as eighths of N, tried from the narrowest until all lanes reach the target.
        num_lanes: networks of each width; the best one counts.
        target: the test loss to reach.
        readout_width: width of the read-out's two hidden layers.
        bits: bits per coordinate of quantised states.
        storing_prompts: test prompts of the RNN that stores every token.
    """

    seq_lens: tuple = (4, 8, 16)
    eighths: tuple = (1, 2, 3, 4, 5, 6, 8)
    num_lanes: int = 3
    target: float = 0.25
    steps: int = 2500
    learning_rate: float = 5e-3
    readout_width: int = 128
    bits: tuple = (1, 2, 3, 4)
    test_samples: int = 4000
    storing_prompts: int = 2000


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
    return training.train(task_of(seq_len), module, training.of(settings), settings.num_lanes)


def _rows(settings: Settings, seq_len: int, width: int) -> list[dict[str, Any]]:
    """Losses of the networks of one width: as they are (bits = 0), and with quantised states."""
    fit = _train(settings, seq_len, width)
    losses_K, errors_K = training.loss_at(fit)
    rows: list[dict[str, Any]] = []
    for k in range(settings.num_lanes):
        params, data = training.lane(fit.params_K, k), training.lane(fit.data_K, k)
        above, below = states.bounds_of(params, data, fit.problem, width)
        common = {'network': TRAINED, 'seq_len': seq_len, 'width': width, 'lane': k, 'above': above, 'below': below}
        common |= {'plain': float(losses_K[k])}
        rows.append({**common, 'bits': 0, 'held': np.inf, 'loss': float(losses_K[k]), 'error': float(errors_K[k])})
        for bits in settings.bits:
            loss, error = training.mean_and_error(states.quantised_errors(params, data, fit.problem, bits))
            held = 2 * width * bits
            rows.append({**common, 'bits': bits, 'held': held, 'loss': float(loss), 'error': float(error)})
    return rows


def _stored(settings: Settings, seq_len: int) -> list[dict[str, Any]]:
    """Losses of the RNN that stores every token with a few bits each, or exactly (bits = 0)."""
    rows = []
    for bits in (0, *settings.bits):
        loss, error = training.mean_and_error(states.storing_errors(task_of(seq_len), bits, settings.storing_prompts))
        held = bits * (seq_len - 1) if bits else np.inf
        row = {'network': STORING, 'seq_len': seq_len, 'width': seq_len, 'lane': 0, 'plain': 0.0, 'bits': bits}
        rows.append({**row, 'held': held, 'loss': float(loss), 'error': float(error)})
    return rows


def measure(settings: Settings, bar: card.Bar) -> pd.DataFrame:
    """Rows of all networks: for each N from the narrowest to the first width at which all lanes reach the target.

    Args:
        settings: of the card.
        bar: progress bar.
    """
    rows: list[dict[str, Any]] = []
    for seq_len in settings.seq_lens:
        rows += _stored(settings, seq_len)
        widths = sorted({max(1, round(part * seq_len / 8)) for part in settings.eighths})
        for width in bar(widths, f'N = {seq_len}, width'):
            found = _rows(settings, seq_len, width)
            rows += found
            if max(row['plain'] for row in found) < settings.target:
                break
    return pd.DataFrame(rows)


def floor_of(rows: pd.DataFrame, share: float = 1.0) -> np.ndarray:
    """The floor of each row with quantised states.

    Args:
        rows: with the columns seq_len and held, the bits of both states at a position.
        share: share of the bits that the states are taken to hold.
    """
    return np.array(
        [floors.proposition8_bits(share * b, n) for b, n in zip(rows['held'], rows['seq_len'], strict=True)]
    )


def checks_of(settings: Settings, rows: pd.DataFrame) -> tuple[card.Check, ...]:
    """The comparisons of the verdict.

    A network whose states were rounded could have crossed the floor if its loss without rounding is below it.

    Args:
        settings: of the card.
        rows: of `measure`.
    """
    coarse, exact = rows[rows['bits'] > 0], rows[rows['bits'] == 0]
    stored, plain = coarse[coarse['network'] == STORING], exact[exact['network'] == TRAINED]
    floor, best = floor_of(coarse), plain.groupby('seq_len')['loss'].min()
    return (
        card.above(
            'rounded states: loss ≥ (1 − 1/N) 2^(−2B/(N−1)), B bits',
            coarse['loss'],
            floor,
            coarse['error'],
            can_fail=floor > coarse['plain'],
        ),
        card.below(
            'the storing RNN is within a factor π√3/2 of it',
            stored['loss'],
            math.pi * math.sqrt(3) / 2 * floor_of(stored),
            stored['error'],
        ),
        power(stored),
        card.below(f'every N reaches loss {settings.target:g} with d_h ≤ N', best, settings.target),
        card.below('the storing RNN, d_h = N, is exact', exact[exact['network'] == STORING]['loss'], 1e-18),
    )


def make(settings: Settings, bar: card.Bar) -> card.Card:
    """Makes the card.

    Args:
        settings: of the card.
        bar: progress bar.
    """
    rows = measure(settings, bar)
    plain = rows[(rows['bits'] == 0) & (rows['network'] == TRAINED)]
    least = plain[plain['loss'] < settings.target].sort_values(['seq_len', 'width', 'loss'])
    least, coarse = least.groupby('seq_len', as_index=False).first(), rows[rows['bits'] > 0]
    return card.Card(
        name=NAME,
        statement='Proposition 8',
        claim='An RNN below a constant loss on 1STR has d_h ≥ Ω(N/log(1 + L²‖U‖²)) and L²‖U‖² ≥ Ω(N/log(1 + d_h)); '
        'storing every token, d_h = N d, is enough.',
        setting=f'1STR, linear, d = 1, exclusive GRU, f_y with two hidden layers of {settings.readout_width}, AdamW on '
        f'{settings.steps:,} × {settings.batch_size} fresh prompts, {settings.num_lanes} lanes; target loss '
        f'{settings.target:g}.',
        panels=(
            card.Panel('trained, by width', 'd_h / N', 'test loss'),
            card.Panel(f'least width for loss {settings.target:g}', 'N', 'd_h'),
            card.Panel('sensitivity of these networks', 'N', 'L²‖U‖²', log_x=True, log_y=True),
            card.Panel('states rounded to B bits', '2B/(N − 1)', 'test loss', log_y=True),
        ),
        points=pd.DataFrame(_points(plain, coarse, least)),
        lines=pd.DataFrame(_lines(settings, coarse, least)),
        checks=checks_of(settings, rows),
        finding=_finding(settings, plain, least, coarse),
    )


def power(stored: pd.DataFrame) -> card.Check:
    """Checks that the floor of half of the bits is crossed, which shows how wrong a floor the card would notice.

    Args:
        stored: rows of the storing RNN with rounded states.
    """
    wrong = card.above('', stored['loss'], floor_of(stored, share=1 / 2), stored['error'])
    return card.fails('a wrong floor, of half of the bits, is crossed', wrong)


def _finding(settings: Settings, plain: pd.DataFrame, least: pd.DataFrame, coarse: pd.DataFrame) -> str:
    """Least widths with what the grid leaves open, exponents if there are enough points, and the nearest rounding."""
    widths = []
    for row in least.itertuples():
        tried = plain[(plain['seq_len'] == row.seq_len) & (plain['width'] < row.width)]['width']
        widths.append(f'{row.width} (N = {row.seq_len}; {tried.max() if len(tried) else 0} misses in every lane)')
    one = coarse[(coarse['network'] == STORING) & (coarse['bits'] == min(settings.bits))].iloc[-1]
    floor = floors.proposition8_bits(one['held'], one['seq_len'])
    text = f'Least widths: {", ".join(widths)}. ' if widths else ''
    if len(least) > 1:
        width, sense = (fits.exponent(least['seq_len'], least[name]) for name in ('width', 'below'))
        text += f'Exponents in N: least width {width}, its sampled L²‖U‖² {sense}. '
    return (
        f'{text}The storing RNN with {one["bits"]} bit per token at N = {one["seq_len"]} errs by {one["loss"]:.3f} '
        f'against the floor {floor:.3f}. Ω hides constants: the lines of d_h and L²‖U‖² go through the first point.'
    )


def _points(plain: pd.DataFrame, coarse: pd.DataFrame, least: pd.DataFrame) -> Iterator[dict[str, Any]]:
    for row in plain.itertuples():
        yield card.point(0, f'N = {row.seq_len}', row.width / row.seq_len, row.loss, row.error)
    for row in least.itertuples():
        yield card.point(1, 'trained', row.seq_len, row.width)
        yield card.point(2, 'layer products', row.seq_len, row.above)
        yield card.point(2, 'sampled', row.seq_len, row.below)
    for row in coarse.itertuples():
        name = STORING if row.network == STORING else f'N = {row.seq_len}'
        yield card.point(3, name, 2 * row.held / (row.seq_len - 1), row.loss, row.error)


def _lines(settings: Settings, coarse: pd.DataFrame, least: pd.DataFrame) -> list[dict[str, Any]]:
    lengths = list(settings.seq_lens)
    lines = card.line(0, f'target {settings.target:g}', [0, 1], [settings.target] * 2)
    lines += card.line(1, 'storing RNN, d_h = N', lengths, lengths)
    rate = np.linspace(0, 2 * np.max(coarse['held'] / (coarse['seq_len'] - 1)), 40)
    lines += card.line(3, 'floor 2^(−2B/(N−1)) (1 − 1/N), least N', rate, (1 - 1 / min(lengths)) * 2.0**-rate)
    if len(least) > 1:
        first = least.iloc[0]
        at = list(least['seq_len'])
        widths = [rnn_sizes.proposition8_width(row.seq_len, math.sqrt(row.below)) for row in least.itertuples()]
        lines += card.line(1, '∝ N/log(1 + L²‖U‖²)', at, [first['width'] * w / widths[0] for w in widths])
        norms = [rnn_sizes.proposition8_norm(row.seq_len, row.width) for row in least.itertuples()]
        lines += card.line(2, '∝ N/log(1 + d_h)', at, [first['below'] * v / norms[0] for v in norms], of='sampled')
    return lines
