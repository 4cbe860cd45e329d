"""Card of Proposition 8: the least width of an RNN on 1STR, its sensitivity L²‖U‖², and its states in bits."""

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from experiments import cards
from qstr_jax import progress, tasks
from qstr_jax.analysis import check
from qstr_jax.analysis.card import Card, Panel, line, point
from qstr_jax.sweeps import Sweep
from qstr_jax.theory import draws, floors, recurrences, rnn_sizes, sensitivity
from qstr_jax.theory.sparse_task import SparseTask

ORDER = 390
QUESTION = 'How wide must an RNN be to retrieve, and how many bits must its states hold?'
LIMITS = (
    'The constants of Ω: lines of widths and sensitivities go through the first measured point. A narrower RNN may '
    'learn with other settings. That every RNN needs such a width and sensitivity: the checks are of the floor of '
    'bits, and of what trained and storing ones get by with.'
)
# Prompts whose states are rounded together.
_CHUNK = 200
TRAINED, STORING = 'trained', 'storing RNN'


@dataclasses.dataclass(frozen=True)
class Settings(cards.Settings):
    """Settings of the card.

    Attributes:
        seq_lens: values of N.
        eighths: widths as eighths of N.
        num_lanes: networks of each width; the best one counts.
        target: the test loss to reach.
        readout_width: width of the read-out's two hidden layers.
        bits: bits per coordinate of quantised states.
        storing_prompts: test prompts of the RNN that stores every token.
    """

    seq_lens: tuple[int, ...] = (4, 8, 16)
    eighths: tuple[int, ...] = (1, 2, 3, 4, 5)
    num_lanes: int = 5
    target: float = 0.25
    steps: int = 2500
    learning_rate: float = 5e-3
    readout_width: int = 128
    bits: tuple[int, ...] = (1, 2, 3, 4)
    test_samples: int = 4000
    storing_prompts: int = 2000


# Settings of the small version, which takes seconds.
REDUCED = {
    'seq_lens': (3,), 'eighths': (8,), 'target': 2.0, 'readout_width': 8, 'bits': (1,), 'storing_prompts': 50,
    'num_lanes': 1, 'steps': 20, 'batch_size': 8, 'test_samples': 50,
}  # fmt: skip


def _task(seq_len: int) -> dict[str, Any]:
    """Name and settings of 1STR with d = 1 and encodings that are far apart."""
    encoding_dim = max(8, round(6 * math.log(seq_len)))
    sizes = {'seq_len': seq_len, 'sparsity': 1, 'token_dim': 1, 'encoding_dim': encoding_dim}
    return {'name': 'qstr', 'link': 'linear', **sizes}


def sweeps(settings: Settings) -> dict[str, Sweep]:
    """Exclusive GRUs of several widths with a ReLU f_y of two hidden layers, by N."""
    model = {'cell': 'gru', 'states': 'exclusive', 'readout': 'mlp', 'readout_widths': (settings.readout_width,) * 2}
    rounded = {'bits': settings.bits, 'num_prompts': settings.test_samples}
    return {
        f'N = {n}': cards.online(
            settings,
            _task(n),
            models='rnn',
            rnn={**model, 'width': tuple(sorted({max(1, round(part * n / 8)) for part in settings.eighths}))},
            probes=('state_sensitivity', 'rounded_states'),
            rounded_states=rounded,
        )
        for n in settings.seq_lens
    }


def _trained(settings: Settings, rows: pd.DataFrame) -> pd.DataFrame:
    """Losses of trained networks: as they are (bits = 0), and with rounded states."""
    names = {'seed': 'lane', 'rnn_width': 'width', 'sensitivity_above': 'above', 'sensitivity_below': 'below'}
    shared = rows.rename(columns=names).assign(network=TRAINED, plain=rows['test_loss'])
    found = [shared.assign(bits=0, held=np.inf, loss=shared['plain'], error=np.nan)]
    for bits in settings.bits:
        loss, error = shared[f'rounded_{bits}'], shared[f'rounded_{bits}_se']
        found.append(shared.assign(bits=bits, held=2 * shared['width'] * bits, loss=loss, error=error))
    return pd.concat(found, ignore_index=True)


def _stored(settings: Settings, seq_len: int) -> list[dict[str, Any]]:
    """Losses of the RNN that stores every token with a few bits each, or exactly (bits = 0)."""
    rows = []
    for bits in (0, *settings.bits):
        errors_B = storing_errors(tasks.build(**_task(seq_len)), bits, settings.storing_prompts)
        loss, error = draws.mean_and_error(errors_B)
        held = bits * (seq_len - 1) if bits else np.inf
        row = {'network': STORING, 'seq_len': seq_len, 'width': seq_len, 'lane': 0, 'plain': 0.0, 'bits': bits}
        rows.append({**row, 'held': held, 'loss': loss, 'error': error})
    return rows


def gaussian_levels(bits: int) -> np.ndarray:
    """The 2^bits levels of the best quantiser of N(0, 1) (Lloyd, Max): each is the mean of what it stands for."""
    from scipy import stats  # slow to import, and few cards need it

    levels = stats.norm.ppf((np.arange(2**bits) + 0.5) / 2**bits)
    for _ in range(2000):
        edges = np.concatenate([[-np.inf], (levels[1:] + levels[:-1]) / 2, [np.inf]])
        levels = -np.diff(stats.norm.pdf(edges)) / np.diff(stats.norm.cdf(edges))
    return levels


def storing_errors(task: SparseTask, bits: int, num_prompts: int) -> np.ndarray:
    """Errors of the RNN that stores every token when each stored number is rounded to one of 2^bits levels.

    At a position N − 1 numbers are stored in the two states together, so these hold B = bits · (N − 1) bits.
    """
    with jax.enable_x64(True):
        task_draw, prompts = draws.draw(task, num_prompts, seed=3)
        bound = max(10.0, float(jnp.max(jnp.abs(prompts.x_NxD))))
        built = recurrences.storing(task, task_draw, bound)
        levels = jnp.asarray(gaussian_levels(bits)) if bits else None

        def error(prompt: tasks.Prompt) -> jax.Array:
            z_NxE = tasks.encode(prompt, task, task_draw)
            states_NxF = sensitivity.recurrent_states(built.module, built.params, z_NxE)
            if levels is not None:
                nearest_NxF = levels[jnp.argmin(jnp.abs(states_NxF[..., None] - levels[None, None]), axis=-1)]
                # A coordinate is zero where its token has not been seen, which the position tells.
                states_NxF = jnp.where(jnp.abs(states_NxF) > 0, nearest_NxF, 0.0)
            prediction_N = jax.vmap(lambda h, z: sensitivity.read_out(built.params, h, z))(states_NxF, z_NxE)
            return jnp.mean((prompt.y_N - prediction_N) ** 2)

        return np.asarray(jax.jit(lambda p: jax.lax.map(error, p, batch_size=min(_CHUNK, num_prompts)))(prompts))


def floor_of(rows: pd.DataFrame, share: float = 1.0) -> np.ndarray:
    """The floor of each row with quantised states."""
    return np.array(
        [floors.proposition8_bits(share * b, n) for b, n in zip(rows['held'], rows['seq_len'], strict=True)]
    )


def checks_of(settings: Settings, rows: pd.DataFrame) -> tuple[check.Check, ...]:
    """The comparisons of the verdict.

    A network whose states were rounded could have crossed the floor if its loss without rounding is below it.
    """
    coarse, exact = rows[rows['bits'] > 0], rows[rows['bits'] == 0]
    stored, plain = coarse[coarse['network'] == STORING], exact[exact['network'] == TRAINED]
    floor, best = floor_of(coarse), plain.groupby('seq_len')['loss'].min()
    rounded, can_fail = (coarse['loss'], floor, coarse['error']), floor > coarse['plain']
    near = math.pi * math.sqrt(3) / 2 * floor_of(stored)
    wrong = check.above('', stored['loss'], floor_of(stored, share=1 / 2), stored['error'])
    return (
        check.above('rounded states: loss ≥ (1 − 1/N) 2^(−2B/(N−1)), B bits', *rounded, can_fail=can_fail),
        check.below('the storing RNN is within a factor π√3/2 of it', stored['loss'], near, stored['error']),
        check.fails('a wrong floor, of half of the bits, is crossed', wrong),
        check.below(f'every N reaches loss {settings.target:g} with d_h ≤ N', best, settings.target),
        check.below('the storing RNN, d_h = N, is exact', exact[exact['network'] == STORING]['loss'], 1e-18),
    )


def card(settings: Settings, rows: dict[str, pd.DataFrame]) -> Card:
    """The card of the sweeps' rows; the storing RNN is made anew."""
    stored = [
        row for n in progress.each(settings.seq_lens, 'proposition8: storing RNN') for row in _stored(settings, n)
    ]
    trained = _trained(settings, pd.concat(rows.values(), ignore_index=True))
    found = pd.concat([pd.DataFrame(stored), trained], ignore_index=True)
    plain, coarse = found[(found['bits'] == 0) & (found['network'] == TRAINED)], found[found['bits'] > 0]
    least = plain[plain['loss'] < settings.target].sort_values(['seq_len', 'width', 'loss'])
    least = least.groupby('seq_len', as_index=False).first()
    return Card(
        statement='Proposition 8',
        claim='An RNN below a constant loss on 1STR has d_h ≥ Ω(N/log(1 + L²‖U‖²)) and L²‖U‖² ≥ Ω(N/log(1 + d_h)); '
        'storing every token, d_h = N d, is enough (Ω is not checked).',
        setting=f'1STR, linear, d = 1, exclusive GRU, f_y with two hidden layers of {settings.readout_width}, AdamW on '
        f'{settings.steps:,} × {settings.batch_size} fresh prompts, {settings.num_lanes} lanes; target loss '
        f'{settings.target:g}.',
        panels=(
            Panel('trained, by width', 'd_h / N', 'test loss'),
            Panel(f'least width for loss {settings.target:g}', 'N', 'd_h'),
            Panel('sensitivity of these networks', 'N', 'L²‖U‖²', log_x=True, log_y=True),
            Panel('states rounded to B bits', '2B/(N − 1)', 'test loss', log_y=True),
        ),
        points=pd.DataFrame(_points(plain, coarse, least)),
        lines=pd.DataFrame(_lines(settings, coarse, least)),
        checks=checks_of(settings, found),
        finding=_finding(settings, plain, least, coarse),
    )


def _finding(settings: Settings, plain: pd.DataFrame, least: pd.DataFrame, coarse: pd.DataFrame) -> str:
    """Least widths with what the grid leaves open, exponents if there are enough points, and the nearest rounding."""
    widths = []
    for row in least.itertuples():
        tried = plain[(plain['seq_len'] == row.seq_len) & (plain['width'] < row.width)]['width']
        narrower = f'; width {tried.max()} fails in every lane' if len(tried) else ''
        widths.append(f'{row.width} (N = {row.seq_len}{narrower})')
    one = coarse[(coarse['network'] == STORING) & (coarse['bits'] == min(settings.bits))].iloc[-1]
    floor = floors.proposition8_bits(one['held'], one['seq_len'])
    text = f'Least widths: {", ".join(widths)}. ' if widths else ''
    if len(least) > 2:
        width, sense = (cards.power('N', least['seq_len'], least[name]) for name in ('width', 'below'))
        text += f'Least width ∝ {width}, its sampled L²‖U‖² ∝ {sense}. '
    return (
        f'{text}The storing RNN with {one["bits"]} bit per token at N = {one["seq_len"]} errs by {one["loss"]:.3f} '
        f'against the floor {floor:.3f}. Ω hides constants: the lines of d_h and L²‖U‖² go through the first point.'
    )


def _points(plain: pd.DataFrame, coarse: pd.DataFrame, least: pd.DataFrame) -> Iterator[dict[str, Any]]:
    for row in plain.itertuples():
        yield point(0, f'N = {row.seq_len}', row.width / row.seq_len, row.loss, row.error)
    for row in least.itertuples():
        yield point(1, 'trained', row.seq_len, row.width)
        yield point(2, 'layer products', row.seq_len, row.above)
        yield point(2, 'sampled', row.seq_len, row.below)
    for row in coarse.itertuples():
        name = STORING if row.network == STORING else f'N = {row.seq_len}'
        yield point(3, name, 2 * row.held / (row.seq_len - 1), row.loss, row.error)


def _lines(settings: Settings, coarse: pd.DataFrame, least: pd.DataFrame) -> list[dict[str, Any]]:
    lengths = list(settings.seq_lens)
    lines = line(0, f'target {settings.target:g}', [0, 1], settings.target)
    lines += line(1, 'storing RNN, d_h = N', lengths, lengths)
    rate = np.linspace(0, 2 * np.max(coarse['held'] / (coarse['seq_len'] - 1)), 40)
    lines += line(3, 'floor 2^(−2B/(N−1)) (1 − 1/N), least N', rate, (1 - 1 / min(lengths)) * 2.0**-rate)
    if len(least) > 1:
        first = least.iloc[0]
        at = list(least['seq_len'])
        widths = [rnn_sizes.proposition8_width(row.seq_len, math.sqrt(row.below)) for row in least.itertuples()]
        lines += line(1, '∝ N/log(1 + L²‖U‖²)', at, [first['width'] * w / widths[0] for w in widths])
        norms = [rnn_sizes.proposition8_norm(row.seq_len, row.width) for row in least.itertuples()]
        lines += line(2, '∝ N/log(1 + d_h)', at, [first['below'] * v / norms[0] for v in norms], of='sampled')
    return lines
