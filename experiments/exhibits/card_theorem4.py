"""Card of Theorem 4: does the norm ball generalise, and what do its capacity, d_e and the search for attention cost?"""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from experiments import cards
from qstr_jax import tasks
from qstr_jax.analysis import check
from qstr_jax.analysis.card import Card, Panel, line, lines_by, point
from qstr_jax.sweeps import Sweep
from qstr_jax.theory import capacity, construction_norm, construction_start, partly_given, twisted_teacher, unasked

ORDER = 340
QUESTION = 'Does the loss of constrained ERM fall as fast as n^(−1/2), and what does finding the attention cost?'
LIMITS = (
    'From which n on the theorem promises a small loss: its constants ask for far more samples than were drawn, so '
    'only the rate is compared. That N enters by logarithms alone: no check asks for it.'
)
# Modules that register what the sweeps name.
PLUGINS = (capacity, construction_norm, construction_start, partly_given, unasked)
NOTHING, ATTENTION, LINK = (f'{part} given' for part in partly_given.PARTS)

_TWISTED = 'twisted teachers are ERMs that fail up to some n ≥ N'


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of the card: Transformers with H = q = 1 by the point-wise risk in the ball of the construction, R = 1.

    Attributes:
        token_dim: d.
        few: d_e below N.
        many: d_e of at least N.
        width: m, width of the ReLU layer.
        num_lanes: lanes of each kind, each with its own (u, ω) and prompts.
        steps: training steps of batches of 64.
        learning_rate: the first one; it falls along a cosine.
        rate_lens: values of N at which test losses are measured against n.
        rate_samples: their values of n.
        seq_lens: values of N for random labels, twisted teachers and given parts.
        label_multiples: values of n/N of random labels.
        label_risk: training risk at which random labels count as fitted.
        twists: draws of twisted teachers.
        unseen_len: N of the runs that never ask for the indices beyond N/2.
        unseen_samples: their n.
        unseen_dims: their values of d_e.
        given_samples: values of n for networks that are given a part of the construction.
        threshold: test loss that counts as learnt.
        test_samples: test prompts.
    """

    token_dim: int = 10
    few: int = 10
    many: int = 75
    width: int = 32
    num_lanes: int = 5
    steps: int = 3000
    learning_rate: float = 3e-3
    rate_lens: tuple[int, ...] = (16, 32)
    rate_samples: tuple[int, ...] = (400, 800, 1600, 3200, 6400)
    seq_lens: tuple[int, ...] = (12, 24, 48)
    label_multiples: tuple[int, ...] = (30, 60, 120)
    label_risk: float = 0.1
    twists: int = 5
    unseen_len: int = 32
    unseen_samples: int = 4000
    unseen_dims: tuple[int, ...] = (8, 16, 75)
    given_samples: tuple[int, ...] = (100, 400, 1600, 3200)
    threshold: float = 0.1
    test_samples: int = 500


# Settings of the small version, which takes seconds.
REDUCED = {
    'token_dim': 2, 'few': 4, 'many': 12, 'width': 4, 'num_lanes': 1, 'steps': 10, 'rate_lens': (3,),
    'rate_samples': (8, 16), 'seq_lens': (3,), 'label_multiples': (2,), 'twists': 1, 'unseen_len': 4,
    'unseen_samples': 8, 'unseen_dims': (2, 4), 'given_samples': (8,), 'test_samples': 20,
}  # fmt: skip


def _task(settings: Settings, encoding_dim: int, name: str = 'qstr') -> dict[str, Any]:
    """Name and settings of 1STR with encodings as incoherent as their dimension allows at these N."""
    coherence = 0.5 if encoding_dim >= settings.many else 0.8 if encoding_dim >= settings.few else 1.0
    sizes = {'sparsity': 1, 'token_dim': settings.token_dim, 'encoding_dim': encoding_dim}
    return {'name': name, 'link': 'linear', 'encoding_scale': 'scaled', 'max_coherence': coherence, **sizes}


def _sweep(
    settings: Settings, task: dict[str, Any], lengths: Sequence[int], sizes: Sequence[float], **more: Any
) -> Sweep:
    """Constrained ERMs from W_QK = 0 for every N and n; `more` may change the model and the learner."""
    common = {'risk': 'pointwise', 'batch_size': 64, 'schedule': 'cosine', 'max_steps': settings.steps}
    common |= {'check_every': settings.steps, 'test_samples': settings.test_samples, 'validation_samples': 1}
    common |= {'learning_rate': settings.learning_rate}
    ball = {'radius_unit': 'construction', 'radius': 1.0, 'starts': ('attention:0',)}
    model = {'num_heads': 1, 'mlp_width': settings.width}
    standard = {'models': 'transformer', 'transformer': {**model, 'attention': 'merged'}, 'learners': 'constrained'}
    if 'parts' in more:
        standard = {'models': 'partly_given', 'partly_given': {**model, 'part': more.pop('parts')}, 'learners': 'adamw'}
        ball = {'starts': ('given',), 'weight_decay': 0.0}
    arguments = {**standard, 'learner': {**common, **ball, **more.pop('learner', {})}, **more}
    task = {**task, 'seq_len': tuple(lengths)}
    return cards.own_draws(task, settings.num_lanes, num_samples=tuple(sizes), **arguments)


def sweeps(settings: Settings) -> dict[str, Sweep]:
    """Constrained ERM against n beside the construction; random labels; indices never asked; parts that are given."""
    few = _task(settings, settings.few)
    beside = {'reference': 'construction', 'erm_tolerance': 0.01}
    found = {'rate': _sweep(settings, few, settings.rate_lens, settings.rate_samples, learner=beside)}
    for dim in (settings.few, settings.many):
        multiples = [multiple / settings.token_dim for multiple in settings.label_multiples]
        task = _task(settings, dim, 'random_labels')
        found[f'labels, d_e = {dim}'] = _sweep(settings, task, settings.seq_lens, multiples, samples_unit='Nd')
    for dim in settings.unseen_dims:
        task, size = _task(settings, dim, 'first_half'), [settings.unseen_samples]
        found[f'unseen, d_e = {dim}'] = _sweep(settings, task, [settings.unseen_len], size, test_task='second_half')
    ends = settings.seq_lens[:: max(1, len(settings.seq_lens) - 1)]
    found['given'] = _sweep(settings, few, ends, settings.given_samples, parts=tuple(partly_given.PARTS))
    return found


def _labels(settings: Settings, rows: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """How many random labels the ball fits, and up to which n a twisted teacher is an ERM that fails, by N and d_e."""
    found = []
    for dim in (settings.few, settings.many):
        fitted = rows[f'labels, d_e = {dim}']
        for (seq_len, _), lane in fitted.groupby(['seq_len', 'seed']):
            known = capacity.capacity(lane['num_samples'], lane['train_risk'], settings.label_risk)
            # Where all n were fitted, or none, the capacity is known from one side only.
            side = ', at least' if np.isinf(known.missed) else '' if known.fitted else ', at most'
            found.append((f'random labels{side}', seq_len, dim, known.value))
        for seq_len in settings.seq_lens:
            task = tasks.build(**_task(settings, dim), seq_len=seq_len)
            twisted = twisted_teacher.samples(task, range(settings.twists))
            found += [('twisted teacher', seq_len, dim, samples) for samples in twisted]
    return pd.DataFrame(found, columns=['kind', 'seq_len', 'encoding_dim', 'num_samples'])


def card(settings: Settings, rows: dict[str, pd.DataFrame]) -> Card:
    """The card of the sweeps' rows."""
    unseen = pd.concat([rows[f'unseen, d_e = {dim}'] for dim in settings.unseen_dims])
    given = rows['given'].assign(part=rows['given']['partly_given_part'] + ' given', lane=rows['given']['seed'])
    return card_of(settings, rows['rate'], _labels(settings, rows), unseen, given)


def card_of(
    settings: Settings, rate: pd.DataFrame, labels: pd.DataFrame, unseen: pd.DataFrame, given: pd.DataFrame
) -> Card:
    """The card of measured rows."""
    cost = costs(settings, given)
    return Card(
        statement='Theorem 4',
        claim='Constrained ERM of the point-wise risk has R ≲ √(polylog(nN)/n): its loss falls at least as fast as '
        'n^(−1/2), and N enters by logarithms as long as d_e does (N is not checked).',
        setting=f'1STR, linear, d = {settings.token_dim}, scaled encodings of coherence ≤ 0.8 (d_e = {settings.few}) '
        f'and 0.5 (d_e = {settings.many}); ball of the construction, W_QK = 0 at the start, Adam, {settings.steps:,} × '
        f'64, {settings.num_lanes} lanes; random labels to risk {settings.label_risk:g}, learnt: loss < '
        f'{settings.threshold:g}.',
        panels=(
            Panel(f'constrained ERM, d_e = {settings.few}', 'n', 'test loss', log_x=True, log_y=True),
            Panel('fitted without learning', 'N', 'n', log_x=True, log_y=True),
            Panel(f'indices never asked, N = {settings.unseen_len}', 'd_e', 'test loss', log_x=True),
            Panel(f'what finding costs, d_e = {settings.few}', 'N', 'n to learn', log_x=True, log_y=True),
        ),
        points=pd.DataFrame(_points(rate, labels, unseen, cost)),
        lines=pd.DataFrame(_lines(settings, rate, unseen)),
        checks=checks_of(settings, rate, labels, unseen, cost),
        finding=_finding(labels, cost),
    )


def costs(settings: Settings, given: pd.DataFrame) -> pd.DataFrame:
    """The n from which on a lane has learnt, for each N and part that is given."""
    groups = given.groupby(['seq_len', 'part', 'lane'], sort=False)
    rows = [(*place, learnt(lane, settings.threshold), lane['num_samples'].max()) for place, lane in groups]
    cost = pd.DataFrame(rows, columns=['seq_len', 'part', 'lane', 'num_samples', 'largest'])
    is_learnt = np.isfinite(cost['num_samples'])
    return cost.assign(learnt=is_learnt, num_samples=cost['num_samples'].where(is_learnt, 2 * cost['largest']))


def decline(rate: pd.DataFrame) -> pd.DataFrame:
    """Geometric mean losses of ERMs from the first n below 1 on, beside n^(−1/2) through that n.

    Above a loss of 1 the theorem says nothing: zero does better.
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
) -> tuple[check.Check, ...]:
    """The comparisons of the verdict."""
    twisted, later = labels[labels['kind'] == 'twisted teacher'], decline(rate)
    lookup = twisted[twisted['encoding_dim'] == settings.many]
    is_many = unseen['encoding_dim'] >= settings.unseen_len
    few = unseen[2 * unseen['encoding_dim'] <= settings.unseen_len]
    samples = {part: lanes['num_samples'] for part, lanes in cost.groupby('part')}
    found, both = samples[NOTHING], samples[ATTENTION]
    no_twist = f'd_e = {settings.few} ≤ N/4: no twisted teacher is an ERM that fails, n = 0'
    checks = [
        check.above('share of the fits that are ERMs', np.mean(rate['is_erm'].astype(bool)), 0.8),
        check.below(no_twist, twisted['num_samples'], 0, can_fail=4 * twisted['encoding_dim'] <= twisted['seq_len']),
        check.above(f'd_e = {settings.many}: {_TWISTED}', lookup['num_samples'], lookup['seq_len']),
        check.below('d_e ≤ N/2: loss < 1 on indices never asked', few['test_loss'], 1, few['test_loss_se']),
        check.above('d_e ≥ N: loss ≥ 1 on them', unseen[is_many]['test_loss'], 1, unseen[is_many]['test_loss_se']),
        check.below('attention given: at most half of the samples of nothing given', both, found.min() / 2),
    ]
    rest = later[~later['is_first'].astype(bool)]
    what = 'loss ≤ n^(−1/2) through the first n with loss < 1'
    if len(rest):
        return check.below(what, rest['loss'], rest['line']), *checks
    return check.above(f'points for: {what}', 0, 1), *checks


def _finding(labels: pd.DataFrame, cost: pd.DataFrame) -> str:
    """How capacities grow with N, and what is learnt from how many samples."""
    growth = []
    for (kind, dim), rows in labels.groupby(['kind', 'encoding_dim']):
        if (rows['num_samples'] > 0).all() and ', at ' not in kind:
            growth.append(f'{kind}, d_e = {dim}: {cards.power("N", rows["seq_len"], rows["num_samples"])}')
    told = []
    for (seq_len, part), lanes in cost.groupby(['seq_len', 'part'], sort=False):
        counts = dict.fromkeys(map(_count, lanes.sort_values('num_samples').itertuples()))
        told.append(f'{part} {" or ".join(counts)} (N = {seq_len})')
    return (
        f'Fitted without learning: {"; ".join(growth) or "no exponents"}. Learnt from n: {"; ".join(told)}. Where d_e '
        '≥ N attention is a look-up table, which the ball of Theorem 4 allows; its own constants ask for millions of '
        'samples, so the threshold is not tested, only the rate.'
    )


def _count(row: Any) -> str:
    """The n at which a lane has learnt, or '> n' with the largest n if it has not."""
    return f'{row.num_samples:g}' if row.learnt else f'> {row.largest:g}'


def _points(
    rate: pd.DataFrame, labels: pd.DataFrame, unseen: pd.DataFrame, cost: pd.DataFrame
) -> Iterator[dict[str, Any]]:
    for row in rate.itertuples():
        name = f'N = {row.seq_len}' if row.is_erm else 'no ERM'
        yield point(0, name, row.num_samples, row.test_loss, row.test_loss_se)
    for (kind, dim, seq_len), rows in labels.groupby(['kind', 'encoding_dim', 'seq_len']):
        mean = rows['num_samples'].mean()
        if np.isfinite(mean) and mean > 0:
            yield point(1, f'{kind}, d_e = {dim}', seq_len, mean, rows['num_samples'].sem())
    for row in unseen.itertuples():
        yield point(2, 'asked t ≤ N/2 only', row.encoding_dim, row.test_loss, row.test_loss_se)
    for row in cost.itertuples():
        name, n = (row.part, row.num_samples) if row.learnt else (f'{row.part}: not at', row.largest)
        yield point(3, name, row.seq_len, n)


def _lines(settings: Settings, rate: pd.DataFrame, unseen: pd.DataFrame) -> list[dict[str, Any]]:
    lines = lines_by(0, '∝ n^(−1/2)', decline(rate), by='seq_len', x='num_samples', y='line', of='N = {}')
    lengths = list(settings.seq_lens)
    lines += line(1, 'n = N', lengths, lengths)
    dims = sorted(set(unseen['encoding_dim']))
    lines += line(2, 'zero', dims, 1)
    return lines + line(3, 'n = d', lengths, settings.token_dim)


def learnt(rows: pd.DataFrame, threshold: float) -> float:
    """The smallest n from which on the loss is below a threshold; infinite if it is not at the largest."""
    rows = rows.sort_values('num_samples')
    is_below = (rows['test_loss'] < threshold).to_numpy()
    first = len(is_below) - int(np.argmin(is_below[::-1])) if not is_below.all() else 0
    return float(rows['num_samples'].iloc[first]) if first < len(is_below) else np.inf
