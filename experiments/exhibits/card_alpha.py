"""Card of α_N: is Theorem 7's α_N ≤ 1/N needed? RNNs trained on simple-qSTR with and without it."""

import dataclasses
from typing import Any

import numpy as np
import pandas as pd

from experiments import cards
from qstr_jax.analysis import check
from qstr_jax.analysis.card import Card, Panel, line, points_by
from qstr_jax.sweeps import Sweep

ORDER = 380
QUESTION = 'Do RNNs need the bound on their transitions to learn simple-qSTR?'
LIMITS = (
    'That the theorem holds without the bound: it is an experiment on one task and one optimiser, and the proof '
    'needs it.'
)
FREE, INVERSE, ZERO = 'free', 'α = 1/N', 'α = 0'


@dataclasses.dataclass(frozen=True)
class Settings(cards.Settings):
    """Settings of the card.

    Attributes:
        seq_lens: values of N.
        token_dim: d.
        num_lanes: networks of each kind.
        threshold: test loss at which training ends; otherwise it ends after `steps`.
        windows: how often the test loss is compared with the threshold.
        width: d_h.
        hidden_width: width of the transitions' two hidden layers; those of the read-out have twice as many units.
    """

    seq_lens: tuple[int, ...] = (4, 8, 16, 32)
    token_dim: int = 4
    num_lanes: int = 5
    threshold: float = 0.1
    steps: int = 1600
    windows: int = 80
    width: int = 16
    hidden_width: int = 32
    test_samples: int = 1000


# Settings of the small version, which takes seconds.
REDUCED = {
    'seq_lens': (3,), 'token_dim': 2, 'threshold': 5.0, 'windows': 2, 'width': 4, 'hidden_width': 8, 'num_lanes': 1,
    'steps': 20, 'batch_size': 8, 'test_samples': 50,
}  # fmt: skip


def sweeps(settings: Settings) -> dict[str, Sweep]:
    """RNNs with each bound on the transitions, by N; they stop at the threshold."""
    model = {'width': settings.width, 'cell': 'deep', 'states': 'exclusive', 'readout': 'mlp'}
    model['readout_widths'], model['transition_widths'] = (2 * settings.hidden_width,) * 2, (settings.hidden_width,) * 2
    return {
        f'N = {n}': cards.online(
            settings,
            {'name': 'simple_qstr', 'seq_len': n, 'sparsity': 1, 'token_dim': settings.token_dim, 'link': 'linear'},
            checks=settings.windows,
            models='rnn',
            rnn={**model, 'lipschitz': (None, 1 / n, 0.0)},
            learner={'threshold': settings.threshold, 'schedule': 'constant'},
            probes='transition_lipschitz',
        )
        for n in settings.seq_lens
    }


def measure(rows: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """The rows with the columns that cards have: bound, lane, reached, samples, loss and product."""
    found = pd.concat(rows.values(), ignore_index=True)
    bound = found['rnn_lipschitz'].map(lambda alpha: FREE if pd.isna(alpha) else INVERSE if alpha else ZERO)
    names = {'seed': 'lane', 'num_samples': 'samples', 'test_loss': 'loss', 'transition_lipschitz': 'product'}
    return found.rename(columns=names).assign(bound=bound, reached=found['outcome'] == 'reached')


def compare(rows: pd.DataFrame) -> pd.DataFrame:
    """Prompts to the threshold, or the budget of lanes that miss it: a row per N and lane, a column per bound."""
    return rows.set_index(['seq_len', 'lane', 'bound'])['samples'].unstack()


def ratio(rows: pd.DataFrame) -> tuple[float, float, float]:
    """Prompts of free networks over those of α = 1/N: the geometric mean over pairs of lanes and its 95 % interval."""
    from scipy import stats  # slow to import, and few cards need it

    samples = compare(rows)
    logs = np.log(samples[FREE] / samples[INVERSE])
    half = stats.t.ppf(0.975, len(logs) - 1) * logs.sem() if len(logs) > 1 else 0.0
    low, mean, high = (float(np.exp(logs.mean() + shift)) for shift in (-half, 0.0, half))
    return mean, low, high


def checks_of(rows: pd.DataFrame) -> tuple[check.Check, ...]:
    """The comparisons of the verdict."""
    is_free = rows['bound'] == FREE
    free, bounded = rows[is_free], rows[~is_free]
    _, _, high = ratio(rows)
    return (
        check.below('prompts, free over α = 1/N, upper end of 95 %: ≤ 1.25', high, 1.25),
        check.above('free networks break the bound: N ‖W_L‖⋯‖W_1,h‖ ≥ 1', free['product'] * free['seq_len'], 1),
        check.above('free networks reach the threshold', free['reached'], 1),
        check.above('networks with α ≤ 1/N reach it too', bounded['reached'], 1),
    )


def card(settings: Settings, rows: dict[str, pd.DataFrame]) -> Card:
    """The card of the sweeps' rows."""
    found = measure(rows)
    return Card(
        statement='Theorem 7, its constraint α_N ≤ 1/N',
        claim='The bound on the transitions is not needed in practice: on simple-qSTR free RNNs learn from as few '
        'prompts.',
        setting=f'simple-1STR, linear, d = {settings.token_dim}, deep transitions (d_h = {settings.width}), AdamW, '
        f'batch {settings.batch_size}, to test loss {settings.threshold:g} or {settings.steps * settings.batch_size:,} '
        f'prompts; lanes, each with its own task: {settings.num_lanes}.',
        panels=(
            Panel(f'to test loss {settings.threshold:g}', 'N', 'prompts', log_x=True, log_y=True),
            Panel('at the end of training', 'N', 'test loss', log_x=True, log_y=True),
            Panel('transitions as stored', 'N', '‖W_L‖⋯‖W_1,h‖', log_x=True, log_y=True),
        ),
        points=pd.DataFrame(_points(found)),
        lines=pd.DataFrame(_lines(settings)),
        checks=checks_of(found),
        finding=_finding(settings, found),
    )


def _finding(settings: Settings, rows: pd.DataFrame) -> str:
    growth = [
        f'{name}: {cards.power("N", lanes["seq_len"], lanes["samples"])}' for name, lanes in rows.groupby('bound')
    ]
    mean, low, high = ratio(rows)
    pairs = len(compare(rows))
    free = rows[rows['bound'] == FREE]
    product = float((free['product'] * free['seq_len']).median())
    resolution = max(1, settings.steps // settings.windows) * settings.batch_size
    return (
        f'Free networks need {mean:.2f} [{low:.2f}, {high:.2f}] times the prompts of α = 1/N ({pairs} pairs of lanes). '
        f'Prompts, known to {resolution:,}: {"; ".join(growth)}. Free products are {product:.0f} times 1/N (median). '
        'An experiment on this task, these N and this optimiser, not a theorem: the bound makes the proof go through.'
    )


def _points(rows: pd.DataFrame) -> list[dict[str, Any]]:
    points = points_by(0, rows[rows['reached']], '{bound}', 'seq_len', 'samples')
    points += points_by(1, rows, '{bound}', 'seq_len', 'loss')
    return points + points_by(2, rows[rows['bound'] == FREE], '{bound}', 'seq_len', 'product')


def _lines(settings: Settings) -> list[dict[str, Any]]:
    lengths = list(settings.seq_lens)
    lines = line(0, 'budget', lengths, settings.steps * settings.batch_size)
    lines += line(1, 'threshold', lengths, settings.threshold)
    return lines + line(2, '1/N', lengths, [1 / n for n in lengths])
