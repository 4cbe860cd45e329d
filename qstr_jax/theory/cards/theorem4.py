"""Card of Theorem 4: does the norm ball generalise, and what do its capacity, d_e and the search for attention cost?"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from qstr_jax.theory import partly_given
from qstr_jax.theory.cards import card, fits
from qstr_jax.theory.cards import theorem4_runs as runs
from qstr_jax.theory.cards.theorem4_runs import Settings

__all__ = ['NAME', 'Settings', 'card_of', 'make']

NAME = 'theorem4'


def make(settings: Settings, bar: card.Bar) -> card.Card:
    """Makes the card.

    Args:
        settings: of the card.
        bar: progress bar.
    """
    measured = (
        runs.rate(settings, bar),
        runs.labels(settings, bar),
        runs.unseen(settings, bar),
        runs.given(settings, bar),
    )
    return card_of(settings, *measured)


def card_of(
    settings: Settings, rate: pd.DataFrame, labels: pd.DataFrame, unseen: pd.DataFrame, given: pd.DataFrame
) -> card.Card:
    """The card of measured rows.

    Args:
        settings: of the card.
        rate: of `theorem4_runs.rate`.
        labels: of `theorem4_runs.labels`.
        unseen: of `theorem4_runs.unseen`.
        given: of `theorem4_runs.given`.
    """
    cost = costs(settings, given)
    return card.Card(
        name=NAME,
        statement='Theorem 4',
        claim='Constrained ERM of the point-wise risk has R ≲ √(polylog(nN)/n): its loss falls at least as fast as '
        'n^(−1/2), and N enters by logarithms as long as d_e does.',
        setting=f'1STR, linear, d = {settings.token_dim}, scaled encodings of coherence ≤ 0.8 (d_e = {settings.few}) '
        f'and 0.5 (d_e = {settings.many}); ball of the construction, W_QK = 0 at the start, Adam, {settings.steps:,} × '
        f'64, {settings.num_lanes} lanes; random labels to risk {settings.label_risk:g}, learnt: loss < '
        f'{settings.threshold:g}.',
        panels=(
            card.Panel(f'constrained ERM, d_e = {settings.few}', 'n', 'test loss', log_x=True, log_y=True),
            card.Panel('fitted without learning', 'N', 'n', log_x=True, log_y=True),
            card.Panel(f'indices never asked, N = {settings.unseen_len}', 'd_e', 'test loss', log_x=True),
            card.Panel(f'what finding costs, d_e = {settings.few}', 'N', 'n to learn', log_x=True, log_y=True),
        ),
        points=pd.DataFrame(_points(rate, labels, unseen, cost)),
        lines=pd.DataFrame(_lines(settings, rate, unseen)),
        checks=checks_of(settings, rate, labels, unseen, cost),
        finding=_finding(labels, cost),
    )


def costs(settings: Settings, given: pd.DataFrame) -> pd.DataFrame:
    """The n from which on a lane has learnt, for each N and part that is given.

    Args:
        settings: of the card.
        given: of `theorem4_runs.given`.

    Returns:
        A row per lane: seq_len, part, lane, learnt, and num_samples, twice the largest n if the lane never learns.
    """
    groups = given.groupby(['seq_len', 'part', 'lane'], sort=False)
    rows = [(*place, runs.learnt(lane, settings.threshold), lane['num_samples'].max()) for place, lane in groups]
    cost = pd.DataFrame(rows, columns=['seq_len', 'part', 'lane', 'num_samples', 'largest'])
    learnt = np.isfinite(cost['num_samples'])
    return cost.assign(learnt=learnt, num_samples=cost['num_samples'].where(learnt, 2 * cost['largest']))


def decline(rate: pd.DataFrame) -> pd.DataFrame:
    """Geometric mean losses of ERMs from the first n below 1 on, beside n^(−1/2) through that n.

    Above a loss of 1 the theorem says nothing: zero does better.

    Args:
        rate: of `theorem4_runs.rate`.

    Returns:
        A row per N and n, with loss, line and is_first.
    """
    erms = rate[rate['is_erm'].astype(bool)]
    means = np.exp(np.log(erms['test_loss']).groupby([erms['seq_len'], erms['num_samples']]).mean())
    rows = []
    for seq_len, losses in means.groupby(level=0):
        losses = losses.droplevel(0).sort_index()
        losses = losses[losses.index >= losses.index[losses < 1].min()] if (losses < 1).any() else losses[:0]
        for n, loss in losses.items():
            line = losses.iloc[0] * np.sqrt(losses.index[0] / n)
            rows.append({'seq_len': seq_len, 'num_samples': n, 'loss': loss, 'line': line, 'is_first': loss == line})
    return pd.DataFrame(rows, columns=['seq_len', 'num_samples', 'loss', 'line', 'is_first'])


def checks_of(
    settings: Settings, rate: pd.DataFrame, labels: pd.DataFrame, unseen: pd.DataFrame, cost: pd.DataFrame
) -> tuple[card.Check, ...]:
    """The comparisons of the verdict.

    Args:
        settings: of the card.
        rate: of `theorem4_runs.rate`.
        labels: of `theorem4_runs.labels`.
        unseen: of `theorem4_runs.unseen`.
        cost: of `costs`.
    """
    twisted, later = labels[labels['kind'] == 'twisted teacher'], decline(rate)
    lookup = twisted[twisted['encoding_dim'] == settings.many]
    is_many = unseen['encoding_dim'] >= settings.unseen_len
    few = unseen[2 * unseen['encoding_dim'] <= settings.unseen_len]
    samples = {part: lanes['num_samples'] for part, lanes in cost.groupby('part')}
    found, both = samples[partly_given.NOTHING], samples[partly_given.ATTENTION]
    checks = [
        card.above('share of the fits that are ERMs', np.mean(rate['is_erm'].astype(bool)), 0.8),
        card.below(
            f'd_e = {settings.few} ≤ N/4: no twisted teacher is an ERM that fails, n = 0',
            twisted['num_samples'],
            0,
            can_fail=4 * twisted['encoding_dim'] <= twisted['seq_len'],
        ),
        card.above(f'd_e = {settings.many}: it does up to n ≥ N', lookup['num_samples'], lookup['seq_len']),
        card.below('d_e ≤ N/2: loss < 1 on indices never asked', few['test_loss'], 1, few['test_loss_se']),
        card.above('d_e ≥ N: loss ≥ 1 on them', unseen[is_many]['test_loss'], 1, unseen[is_many]['test_loss_se']),
        card.below('attention given: at most half of the samples of nothing given', both, found.min() / 2),
    ]
    rest = later[~later['is_first'].astype(bool)]
    what = 'loss ≤ n^(−1/2) through the first n with loss < 1'
    if len(rest):
        return card.below(what, rest['loss'], rest['line']), *checks
    return card.above(f'points for: {what}', 0, 1), *checks


def _finding(labels: pd.DataFrame, cost: pd.DataFrame) -> str:
    """How capacities grow with N, and what is learnt from how many samples."""
    growth = []
    for (kind, dim), rows in labels.groupby(['kind', 'encoding_dim']):
        mean = rows.groupby('seq_len')['num_samples'].mean()
        if len(mean) > 1 and (mean > 0).all() and ', at ' not in kind:
            growth.append(f'{kind}, d_e = {dim}: N^{fits.exponent(mean.index, mean)}')
    told = []
    for (seq_len, part), lanes in cost.groupby(['seq_len', 'part'], sort=False):
        told.append(f'{part} {", ".join(map(_count, lanes.itertuples()))} (N = {seq_len})')
    return (
        f'Fitted without learning: {"; ".join(growth) or "no exponents"}. Learnt from n: {"; ".join(told)}. Where d_e '
        '≥ N attention is a look-up table, which the ball of Theorem 4 allows; its own constants ask for millions of '
        'samples, so the threshold is not tested, only the rate.'
    )


def _count(row: Any) -> str:
    """n of a lane that has learnt, or that it needs more than the largest n."""
    return f'{row.num_samples:g}' if row.learnt else f'> {row.largest:g}'


def _points(
    rate: pd.DataFrame, labels: pd.DataFrame, unseen: pd.DataFrame, cost: pd.DataFrame
) -> Iterator[dict[str, Any]]:
    for row in rate.itertuples():
        name = f'N = {row.seq_len}' if row.is_erm else 'no ERM'
        yield card.point(0, name, row.num_samples, row.test_loss, row.test_loss_se)
    for (kind, dim, seq_len), rows in labels.groupby(['kind', 'encoding_dim', 'seq_len']):
        mean = rows['num_samples'].mean()
        if np.isfinite(mean) and mean > 0:
            yield card.point(1, f'{kind}, d_e = {dim}', seq_len, mean, rows['num_samples'].sem())
    for row in unseen.itertuples():
        yield card.point(2, 'asked t ≤ N/2 only', row.encoding_dim, row.test_loss, row.test_loss_se)
    for row in cost.itertuples():
        name, n = (row.part, row.num_samples) if row.learnt else (f'{row.part}: not at', row.largest)
        yield card.point(3, name, row.seq_len, n)


def _lines(settings: Settings, rate: pd.DataFrame, unseen: pd.DataFrame) -> list[dict[str, Any]]:
    lines = []
    for i, (seq_len, rows) in enumerate(decline(rate).groupby('seq_len')):
        label = '∝ n^(−1/2)' if i == 0 else ''
        lines += card.line(0, label, rows['num_samples'], rows['line'], of=f'N = {seq_len}')
    lengths = list(settings.seq_lens)
    lines += card.line(1, 'n = N', lengths, lengths)
    dims = sorted(set(unseen['encoding_dim']))
    lines += card.line(2, 'zero', dims, [1.0] * len(dims))
    return lines + card.line(3, 'n = d', lengths, [settings.token_dim] * len(lengths))
